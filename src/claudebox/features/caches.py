"""What package managers download, kept for the project, so that the second installation is warm.

One directory of the project's state is mounted, writable, and symlinks in the box's home lead into it. They are cheaper
than mounts, of which each costs a start a third of a millisecond; and `rm -rf ~/.cache` leaves no link to nowhere.

Whatever is in there was written by an agent. Nothing on the host reads it, and no box of another project sees it.
"""

from __future__ import annotations

import os

from claudebox import files
from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.files import c_call
from claudebox.host.secrets import contained_secret
from claudebox.host.system import keeps_namespaces_from_us
from claudebox.model import RW, SYMLINK, Finding, Launch, Mount, Origin, Plan, Preparation, Step
from claudebox.paths import is_inside, parents
from claudebox.record import Record
from claudebox.settings.table import MOUNTS, NONE, SHOWN, Setting
from claudebox.settings.types import Choice
from claudebox.state import CACHE_LOCK, Instance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from claudebox.features import Companion, Section

HOST, PROJECT = "host", "project"
CACHE = Setting(
    *("cache", SHOWN),
    "what package managers download: kept for the project (default), over the host's, or none",
    Choice(HOST, PROJECT, NONE, default=PROJECT),
    usage="WHERE",
    help_in_files="where what package managers download is kept: host means over this host's own, read-only",
)


class Cache(Record):
    """What package managers download, kept for the project."""

    directory: str  # the box has it writable
    over_host: str = ""  # the same, if the host's own caches lie underneath
    layers: str = ""  # where the kernel keeps what the box changes in them
    lower: tuple[tuple[str, str], ...] = ()  # each cache of the host, and where it appears below `over_host`


class Over(Record):
    """Whether this box has the host's caches."""

    is_ours: bool


RULE = "cache"
PLACE = "/var/cache/claudebox"  # in the box
BOXES_OWN = Origin.of_rule(RULE, "kept for this project: ~/.cache, ~/.npm, ~/.cargo/registry and their like lead there")

# Each place in the home, who keeps content there, and what lies beside it and stays outside.
PLACES = (
    ("~/.cache", "pip, uv, Yarn, Go, Poetry, PDM, Composer, Deno, ccache, coursier, pre-commit, browsers for tests"),
    ("~/.npm", "npm and npx; the token is in ~/.npmrc"),
    ("~/.local/share/pnpm/store", "pnpm; its programs are beside it"),
    ("~/.yarn/berry", "Yarn 2 and later; the token is in ~/.yarnrc.yml"),
    ("~/.bun/install/cache", "Bun; its program is in ~/.bun/bin"),
    ("~/.cargo/registry", "Cargo: crates; the token is in ~/.cargo/credentials.toml"),
    ("~/.cargo/git", "Cargo: repositories"),
    ("~/go/pkg/mod", "Go: modules; the programs are in ~/go/bin"),
    ("~/.m2/repository", "Maven; the passwords are in ~/.m2/settings.xml"),
    ("~/.gradle/caches", "Gradle; the passwords are in ~/.gradle/gradle.properties"),
    ("~/.gradle/wrapper/dists", "Gradle itself, as the wrapper downloads it"),
    ("~/.ivy2/cache", "Ivy and sbt; passwords are in ~/.ivy2/.credentials"),
    ("~/.sbt/boot", "sbt itself; passwords are in ~/.sbt"),
    ("~/.nuget/packages", "NuGet; passwords are in ~/.nuget/NuGet"),
    ("~/.bundle/cache", "Bundler; passwords are in ~/.bundle/config"),
    ("~/.hex/packages", "Hex; the key is in ~/.hex/hex.config"),
    ("~/.cabal/packages", "Cabal; the token is in ~/.cabal/config"),
    ("~/.cabal/store", "Cabal: built packages"),
    ("~/.stack/pantry", "Stack; the password is in ~/.stack/upload"),
    ("~/.stack/snapshots", "Stack: built packages"),
    ("~/.pub-cache/hosted", "Dart; the token is in ~/.pub-cache/credentials.json"),
    ("~/.conan2/p", "Conan; logins are beside it"),
    ("~/.opam/download-cache", "opam"),
)

# With `--cache host`, these of the host's lie underneath, if they exist: what package managers downloaded, and not the
# rest of ~/.cache, where browsers, desktops and tools with logins keep theirs.
HOSTS = (
    *("~/.cache/pip", "~/.cache/uv", "~/.cache/pypoetry/cache", "~/.cache/pypoetry/artifacts", "~/.cache/yarn"),
    *("~/.cache/go-build", "~/.cache/composer/files", "~/.cache/deno", "~/.cache/coursier", "~/.cache/ccache"),
    *("~/.npm/_cacache", "~/.local/share/pnpm/store", "~/.yarn/berry/cache", "~/.bun/install/cache"),
    *("~/.cargo/registry", "~/.cargo/git", "~/go/pkg/mod", "~/.m2/repository", "~/.gradle/caches"),
    *("~/.gradle/wrapper/dists", "~/.ivy2/cache", "~/.sbt/boot", "~/.nuget/packages", "~/.bundle/cache"),
    *("~/.hex/packages", "~/.cabal/packages", "~/.stack/pantry", "~/.pub-cache/hosted", "~/.opam/download-cache"),
)
RUN_LATER = "is a cache of this host and writable: what the box leaves there, programs of this host run later"
PRIVATE_TOO = "the box reads what this host has downloaded, private packages too"


class Caches(Feature):
    settings = (CACHE,)

    def applies(self, facts: Facts) -> bool:
        """A box without Claude on a host without any state leaves none behind, unless somebody asks for it."""
        said, state = facts.settings[CACHE], facts.claude.all_projects.directory
        is_wanted = facts.install is not None or said.origin.is_said or facts.tree.lstat(state) is not None
        return said.text != NONE and is_wanted

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        """Decided after the wishes: what somebody mounts in one of these places is there instead."""
        said, state = facts.settings[CACHE], facts.state
        if state is None:
            if said.origin.is_said:
                directory = facts.claude.all_projects.directory
                raise Problem(f"{said.origin.shown}: {directory} cannot be used", f"ls -ld {directory}")
            return Contribution()
        places = {path: name_of(path, facts.home) for path in free_places(facts.home, draft)}
        links = [Mount(SYMLINK, path, BOXES_OWN, source=f"{PLACE}/{name}") for path, name in places.items()]
        names = list(places.values())
        contribution = Contribution(
            mounts=(Mount(RW, PLACE, BOXES_OWN, source=state.cache), *links),
            preparations=tuple(directories(facts, state.cache, names)),
            records=(Cache(state.cache),),
        )
        return contribution if said.text != HOST else over_host(facts, state, contribution, names)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import WRITABLE, Section

        cache = plan.get(Cache)
        if cache is None:
            return (Section(key="cache"),)
        value = {"directory": cache.over_host or cache.directory, "over": [path for path, _ in cache.lower]}
        return (Section(adds=((WRITABLE, "the cache"),), key="cache", value=value),)

    def beside(self, launch: Launch) -> Companion:
        """Hold the place for changes while the box lives. If another box has it, this one does without the host's."""
        from claudebox.output.terminal import say
        from claudebox.process.companion import Companion

        cache = launch.get(Cache)
        held = files.open_lock(f"{cache.layers}/{CACHE_LOCK}")
        over = Over(files.take_lock(held))
        if not over.is_ours:
            say("claudebox: another box of this project has this host's caches: this one has the project's own alone\n")
            launch.mounts = tuple(
                mount.replace(source=cache.directory) if mount.path == PLACE else mount for mount in launch.mounts
            )
        launch.keep(over)
        return Companion(held)

    def mount(self, launch: Launch) -> None:
        cache = launch.get(Cache)
        if not launch.get(Over).is_ours:
            return
        above, layers = os.open(cache.over_host, files.DIRECTORY), os.open(cache.layers, files.DIRECTORY)
        for lower, inner in cache.lower:
            name = inner.replace("/", "+")
            try:
                target = files.open_below(above, inner)
                sides = [files.open_below(layers, f"{name}.{side}", makes=True) for side in ("upper", "work")]
                _lay(os.open(lower, files.DIRECTORY), target, *sides)
            except OSError as error:
                raise Problem(
                    f"{lower} cannot lie under the project's cache: {error.strerror}",
                    "it needs Linux 5.11, and the project's cache on ext4, btrfs, xfs or tmpfs\n"
                    "      without this host's caches: --cache project",
                ) from None


CACHES = Caches()


class Warnings(Feature):
    """Flags a cache of the host that somebody mounts writable."""

    def applies(self, facts: Facts) -> bool:
        return any(one.access == RW for one in facts.settings[MOUNTS])

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        places = [facts.home + written[1:] for written, _ in PLACES]
        writable = [wish.source for wish in draft.wished if wish.kind == RW]
        flagged = [path for path in writable if any(is_inside(path, one) or is_inside(one, path) for one in places)]
        return Contribution(findings=tuple(Finding(Finding.RISK, path, RUN_LATER) for path in flagged))


def name_of(path: str, home: str) -> str:
    """The name in the project's state: `cargo-registry` for ~/.cargo/registry."""
    return "-".join(part.lstrip(".") for part in path.removeprefix(f"{home}/").split("/"))


def free_places(home: str, draft: Draft) -> list[str]:
    """The places where, above which and below which nothing else of the host is mounted.

    A link in a directory of the host would be made on the host, and a mount below a link would be made elsewhere.
    """
    others = [mount.path for mount in draft.mounts if is_inside(mount.path, home) and mount.path != home]
    paths = [home + written[1:] for written, _ in PLACES]
    return [path for path in paths if not any(is_inside(one, path) or is_inside(path, one) for one in others)]


def directories(facts: Facts, cache: str, names: Iterable[str]) -> list[Preparation]:
    """Make what the links lead to. An agent can remove it, or put something else there, which harms only its boxes."""
    known = facts.tree.entries(cache)
    missing = [f"{cache}/{name}" for name in names if name not in known]
    return [Preparation(Preparation.DIRECTORY, path) for path in (*([] if known else [cache]), *missing)]


def over_host(facts: Facts, state: Instance, contribution: Contribution, names: list[str]) -> Contribution:
    """The host's caches underneath, read-only, and what the box adds to them in a place of its own."""
    said = facts.settings[CACHE]
    if keeps_namespaces_from_us(facts.tree, facts.host.person.uid):
        raise Problem(
            f"{said.origin.shown} {said.text}: needs a namespace that claudebox makes, and AppArmor forbids it here",
            "to allow it: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0\n"
            "      or without the host's: --cache project",
        )
    home, link, *links = facts.home, *contribution.mounts
    found = [
        (real, inner) for path in HOSTS if (real := usable(facts, home + path[1:])) for inner in inside(path, names)
    ]
    parts = [part for _, inner in found for part in (*reversed(parents(f"/{inner}")), f"/{inner}") if part != "/"]
    return contribution.replace(
        mounts=(link.replace(source=state.cache_over_host), *links),
        preparations=(
            *contribution.preparations,
            *directories(facts, state.cache_over_host, names),
            *(Preparation(Preparation.DIRECTORY, state.cache_over_host + part) for part in dict.fromkeys(parts)),
            Preparation(Preparation.DIRECTORY, state.cache_layers),
        ),
        findings=(Finding(Finding.RISK, f"{said.origin.shown} {said.text}", PRIVATE_TOO),),
        steps=(Step(Step.BESIDE, CACHES), Step(Step.MOUNT, CACHES)),
        records=(Cache(state.cache, state.cache_over_host, state.cache_layers, tuple(found)),),
    )


def inside(written: str, names: list[str]) -> list[str]:
    """The path below the mounted directory at which a cache of the host appears; none if its place is not linked."""
    for place, _ in PLACES:
        if is_inside(written, place) and (name := name_of(place[2:], "")) in names:
            return [name + written[len(place) :]]
    return []


def usable(facts: Facts, path: str) -> str:
    """The real directory, if no agent can have written it or turned it elsewhere, and nothing secret is in it.

    What lies in a layer cannot be hidden.
    """
    real = facts.tree.resolve(path)
    if not real or not facts.tree.is_dir(real) or facts.reach.leads_through(path):
        return ""
    secret = contained_secret(real, facts.places)
    return "" if secret is not None and secret.exists else real


def _lay(lower: int, target: int, upper: int, work: int) -> None:
    """Mount an overlay. Its directories are named by descriptors: no path can be replaced, or be misread."""
    names = {"lowerdir": lower, "upperdir": upper, "workdir": work}
    options = ",".join([*(f"{key}=/proc/self/fd/{value}" for key, value in names.items()), "userxattr"])
    words = (b"claudebox-cache", f"/proc/self/fd/{target}".encode(), b"overlay", 0, options.encode())
    if c_call("mount", *words) != 0:
        raise OSError(0, "the kernel refuses the overlay")
