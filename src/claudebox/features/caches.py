"""What package managers download, kept for the project, so that the second installation is warm.

One directory of the project's state is mounted, writable, and symlinks in the box's home lead into it. They are cheaper
than mounts, of which each costs a start a third of a millisecond; and `rm -rf ~/.cache` leaves no link to nowhere.

Whatever is in there was written by an agent. Nothing on the host reads it, and no box of another project sees it.
"""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import RW, SYMLINK, Finding, Mount, Origin, Plan, Preparation
from claudebox.paths import is_inside
from claudebox.settings.table import MOUNTS, NONE, SHOWN, Setting
from claudebox.settings.types import Choice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features import Section

PROJECT = "project"
CACHE = Setting(
    *("cache", SHOWN, "what package managers download: kept for the project (default), or none"),
    Choice(PROJECT, NONE, default=PROJECT),
    usage="WHERE",
    tightens=True,
)


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

RUN_LATER = "is a cache of this host and writable: what the box leaves there, programs of this host run later"


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
        # An agent can remove a directory, or put something else in its place, which harms only its own boxes.
        known = facts.tree.entries(state.cache)
        missing = [f"{state.cache}/{name}" for name in places.values() if name not in known]
        return Contribution(
            mounts=(Mount(RW, PLACE, BOXES_OWN, source=state.cache), *links),
            preparations=tuple(
                Preparation(Preparation.DIRECTORY, path) for path in (*([] if known else [state.cache]), *missing)
            ),
        )

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import WRITABLE, Section

        cache = next((mount for mount in plan.mounts if mount.path == PLACE), None)
        if cache is None:
            return (Section(key="cache"),)
        return (Section(adds=((WRITABLE, "the cache"),), key="cache", value={"directory": cache.source}),)


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
