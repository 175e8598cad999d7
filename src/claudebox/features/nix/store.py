"""Decides how the box uses Nix: with the host's daemon if that is no way out, with a store of its own, or with the
host's store to read.

The daemon builds outside of the box, for whoever can connect to it. So the box gets it only if it does not trust the
user, if it builds in a sandbox of its own, and if the box has the host's network anyhow, with which it downloads.
"""

from __future__ import annotations

from claudebox.errors import Problem, quote
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features.nix import NIX_FEATURE, PACKAGES, Nix, Package, Packages
from claudebox.features.nix.packages import (
    REGISTRIES,
    find_nix,
    grant,
    is_store_path,
    package_findings,
    package_text,
    plan_packages,
    program_directories,
    short_name,
    store_paths,
    stored,
    to_resolve,
)
from claudebox.host import Host
from claudebox.host.nix_daemon import CONFIG, SOCKET, groups_of, read_config
from claudebox.host.secrets import secret_value
from claudebox.host.system import NIX_SOCKETS, NIX_STORE
from claudebox.host.tree import Tree, sha256
from claudebox.model import FILE, RO, RW, Directory, EnvVar, Finding, Mount, Origin, Plan, Preparation, Question
from claudebox.paths import is_below, is_inside, normalize
from claudebox.sandbox.mounts import arrange, find_hides
from claudebox.settings import Settings, Word
from claudebox.settings.table import AUTO, DAEMON, FULL, NETWORK, NIX, OFF, PRIVATE, STORE
from claudebox.state import SHOWN, Instance, find_state, memory
from claudebox.state.memory import Form
from claudebox.state.reach import reach_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.output.section import Section

RULE = "nix"
WORKS = Origin.of_rule(RULE, "so that nix works")
MEANING = {
    DAEMON: "the store, read-only, and the host's daemon, which builds outside of the box",
    PRIVATE: "a store of this project's own: what is built stays in the box",
    STORE: "the store, read-only; nothing can be built",
    OFF: "nothing of it",
}
REMOTES = {DAEMON: "daemon", PRIVATE: "local"}  # what Nix calls them
PARTS = ("store", "var")  # of /nix
GLOBAL_REGISTRY = "/etc/nix/flake-registry.json"
# Settings of the host's nix.conf that a client needs. None can hold a credential, as access-tokens or netrc-file can.
SHARED_SETTINGS = (
    *("substituters", "trusted-substituters", "trusted-public-keys", "connect-timeout"),
    *("http-connections", "fallback", "warn-dirty", "use-registries"),
)
ALWAYS = "experimental-features = nix-command flakes\nnix-path = nixpkgs=flake:nixpkgs\n"
# Without user namespaces there is no sandbox for builds. The box is their sandbox.
BUILDS_INSIDE = "sandbox = false\nbuild-users-group =\n"
CLOSED = "closed"
OPEN = "open"
UNKNOWN = "unknown"
TRIED = {
    OPEN: "a build that was tried saw this host's files, whatever the configuration says",
    UNKNOWN: "its builds failed, so it is not known whether they are in a sandbox (to try again: rm "
    f"{SHOWN.nix_trial})",
}
# Builds may see these: the box shows them anyhow, or they hold no files of a person.
HARMLESS_IN_BUILDS = (NIX_STORE, *"/bin /usr /lib /lib32 /lib64 /dev /run/binfmt /run/current-system".split())


def decide(facts: Facts, _: Draft) -> Contribution:
    host, settings = facts.host, facts.settings
    nix = None  # if this host has none, and nobody asked for it
    if settings[NIX].text not in (AUTO, OFF) or facts.tree.is_dir(NIX_STORE):
        nix = plan_nix(host, settings, facts.claude.instance, is_nix_host=facts.system.is_nix)
    packages = plan_packages(host, settings, nix) if settings[PACKAGES] else ()
    programs = [Directory(path, Directory.PACKAGE) for path in program_directories(facts.tree, packages)]
    findings = package_findings(facts.tree, packages)
    unknown = [
        Question(NIX_FEATURE, package.reference)
        for package in to_resolve(packages)
        if package.reference not in facts.answered
    ]
    if nix is None:
        contribution = Contribution()
    else:
        programs += [Directory(path, Directory.LAST) for path in nix_path(host, nix, facts.system.path)]
        unknown += [Question(NIX_FEATURE, "whether builds see this host")] if nix.needs_trial else []
        contribution = Contribution(
            mounts=tuple(nix_mounts(host, nix)),
            variables=(EnvVar("NIX_REMOTE", REMOTES[nix.mode], WORKS),) if nix.mode in REMOTES else (),
            preparations=nix_preparations(nix),
            # Otherwise no mount shows the daemon, not even one of /nix.
            shown_places=(NIX_SOCKETS,) if nix.mode == DAEMON else (),
        )
        findings = [*nix_findings(nix), *findings]
    return contribution.replace(
        path=tuple(programs),
        findings=tuple(findings),
        unknown=tuple(unknown),
        grants=tuple(map(grant, packages)),
        records=(*([nix] if nix is not None else []), Packages(packages)),
    )


def plan_nix(host: Host, settings: Settings, instance: Instance, *, is_nix_host: bool) -> Nix:
    """Choose what the user asked for, or else the most that is safe. `instance` is where the project's store is."""
    wish, has_store = settings[NIX], host.tree.is_dir(NIX_STORE)
    if wish.text in (DAEMON, STORE) and not has_store:
        raise Problem(f"{wish.origin.shown}: there is no {NIX_STORE} on this host", "--nix private, or --nix off")
    if wish.text == PRIVATE:
        return Nix(PRIVATE, MEANING[PRIVATE], wish.origin, directory=instance.nix)
    if wish.text not in (AUTO, DAEMON):
        return Nix(wish.text, MEANING[wish.text], wish.origin, shows_store=wish.text == STORE or is_nix_host)
    holes = find_holes(host, settings)
    if wish.text == DAEMON:
        if host.tree.lstat(SOCKET) is None:
            what = f"{wish.origin.shown}: there is no Nix daemon here ({SOCKET})"
            raise Problem(what, "--nix private builds in the box")
        return Nix(DAEMON, MEANING[DAEMON], wish.origin, shows_store=True, holes=holes)
    outcome = recall_outcome(host) if not holes else CLOSED
    if outcome in TRIED:
        holes = (TRIED[outcome],)
    mode = STORE if holes else DAEMON
    return Nix(mode, MEANING[mode], wish.origin, shows_store=True, needs_trial=not outcome, holes=holes)


def find_holes(host: Host, settings: Settings) -> tuple[str, ...]:
    """Ways to get out of the box through the daemon. What cannot be known counts as one."""
    if host.tree.lstat(SOCKET) is None:
        return ("there is no daemon",)
    tier = settings[NETWORK].text
    holes = [f"it has the host's network, whatever --network {tier} says"] if tier != FULL else []
    config = read_config(host.tree)
    daemon = host.ask_daemon()
    if not daemon.answers:
        return (*holes, "it does not answer, or does not let you in")
    trusts = daemon.trusts if daemon.trusts is not None else _is_listed(host, config)
    if trusts is None:
        holes.append("it cannot be found out whether it trusts you")
    elif trusts:
        holes.append("it trusts you, and whom it trusts can make it run programs as root (trusted-users)")
    return (*holes, *_open_builds(host.tree, config))


def _is_listed(host: Host, config: dict[str, str] | None) -> bool | None:
    """Whether the configuration names this user as trusted."""
    if host.person.uid == 0:
        return True
    if config is None:
        return None
    mine, known = groups_of(host.tree, host.person.name, host.person.gid)
    names = config.get("trusted-users", "root").split()
    if host.person.name in names or "*" in names or any(f"@{group}" in names for group in mine):
        return True
    # A group may come from another source, such as LDAP: then its members are not known.
    return None if any(name.startswith("@") and name[1:] not in known for name in names) else False


def _open_builds(tree: Tree, config: dict[str, str] | None) -> list[str]:
    if config is None:
        return ["its configuration cannot be read, so nobody knows whether builds are in a sandbox"]
    sandbox = config.get("sandbox", "true")
    if sandbox != "true":
        return [f"its builds are not in a sandbox, and can read this host's files (sandbox = {sandbox})"]
    entries = (entry.removesuffix("?") for entry in config.get("sandbox-paths", "").split())
    shown = (normalize(entry.partition("=")[2] or entry) for entry in entries)
    return [
        f"its builds can read {path}"
        for path in shown
        if not any(is_inside(tree.resolve(path) or path, place) for place in HARMLESS_IN_BUILDS)
    ]


def nix_mounts(host: Host, nix: Nix) -> list[Mount]:
    origin = Origin.of_rule(RULE, "the Nix store")
    mounts = [Mount(RO, NIX_STORE, origin, source=NIX_STORE)] if nix.shows_store else []
    if nix.mode == PRIVATE:
        # They are mounted one by one: another box of this project cannot replace a mount point by a symlink.
        origin = Origin.of_rule(RULE, "a store of this project's own")
        mounts += [Mount(RW, f"/nix/{name}", origin, source=f"{nix.directory}/{name}") for name in PARTS]
    if nix.mode == DAEMON:
        # The whole directory is mounted: a daemon that is started anew makes another socket.
        mounts.append(Mount(RO, NIX_SOCKETS, Origin.of_rule(RULE, "the daemon's socket"), source=NIX_SOCKETS))
    return mounts + (_configuration(host, nix) if nix.mode in REMOTES else [])


def _configuration(host: Host, nix: Nix) -> list[Mount]:
    """Make the files that a client of Nix reads. The host's own may hold tokens."""
    config = read_config(host.tree) or {}
    paths = [path.replace("~", host.person.home) for path in REGISTRIES]
    texts = {path: _registry(host, path) for path in paths}
    if config.get("flake-registry", "").startswith("/"):
        texts[GLOBAL_REGISTRY] = _registry(host, config["flake-registry"])
    files = {path: text for path, text in texts.items() if text and not secret_value(text)}
    shared = {name: config[name] for name in SHARED_SETTINGS if config.get(name) and not secret_value(config[name])}
    if GLOBAL_REGISTRY in files:
        shared["flake-registry"] = GLOBAL_REGISTRY
    lines = "".join(f"{name} = {value}\n" for name, value in shared.items())
    files["/etc/nix/nix.conf"] = ALWAYS + lines + (BUILDS_INSIDE if nix.mode == PRIVATE else "")
    # With a line break at the end: the pasted command has such files in here-documents.
    return [
        Mount(FILE, path, WORKS, content=f"{text.rstrip()}\n".encode(errors="surrogateescape"), mode=0o444)
        for path, text in files.items()
    ]


def _registry(host: Host, path: str) -> str | None:
    """Read a registry, but not through a symlink that an agent may have made: it may lead to a key.

    Such a symlink may be in a repository of dotfiles, for example.
    """
    return None if reach_of(host).can_turn(path) else host.tree.text(path)


def nix_preparations(nix: Nix) -> tuple[Preparation, ...]:
    """Make the directories of the store. Without var/nix, newer versions of Nix would look for another place."""
    if not nix.directory:
        return ()
    places = (nix.directory, *(f"{nix.directory}/{name}" for name in (*PARTS, "var/nix")))
    return tuple(Preparation(Preparation.DIRECTORY, place) for place in places)


def nix_path(host: Host, nix: Nix, path: tuple[str, ...]) -> tuple[str, ...]:
    """The directory in which nix itself is, unless the box finds nix anyhow."""
    if nix.mode not in REMOTES or any(host.tree.is_executable(f"{place}/nix") for place in path):
        return ()
    found = find_nix(host)
    return (found.rpartition("/")[0],) if is_inside(found, NIX_STORE) else ()


def nix_findings(nix: Nix) -> list[Finding]:
    why = "; ".join(nix.holes)
    if nix.mode == DAEMON and why:
        kind, text = Finding.RISK, f"can be used to get out of the box: {why}"
    elif why:
        kind, text = Finding.NOTE, f"not in the box: {why} (--explain nix)"
    elif nix.needs_trial:
        kind, text = Finding.NOTE, "a build is tried at the start: it is in the box if that sees nothing of this host"
    else:
        return []
    return [Finding(kind, "the Nix daemon", text)]


# Whether a build of the daemon sees this host, which is tried once

TRIAL = Form("Whether the Nix daemon builds in a sandbox. claudebox tries it again when this file is gone.")

# Everybody can read this file, and no sandbox shows it. The daemon may have a /var/tmp of its own (systemd's
# PrivateTmp).
PUBLIC_FILE = "/etc/os-release"
# Nix says this if the file is not there. If it cannot be read for another reason, another build will fail, too.
NOT_SEEN = "unable to download 'file://"


def recall_outcome(host: Host) -> str:
    """The outcome of the last trial; "" if there was none, or of another daemon.

    The daemon's configuration is not enough: the daemon may have been started with other options, or before the file
    was changed, or root may have a file of its own.
    """
    lines = memory.recall(host.tree, find_state(host).nix_trial, TRIAL, host.person.uid)
    known = lines[1] if len(lines) == 2 and lines[0] == _circumstances(host) else ""
    return known if known in (CLOSED, OPEN, UNKNOWN) else ""


def keeping_outcome(host: Host, outcome: str) -> tuple[Preparation, ...]:
    return memory.note_with_directory(find_state(host).nix_trial, TRIAL, (_circumstances(host), outcome))


def copying(place: str, content: bytes, nonce: str) -> str:
    """A build that copies a file whose content is known, and fails if it does not see it.

    What copies is a part of Nix: no program has to be in the sandbox, not even a shell. `place` may hold an expression.
    The nonce makes it another build each time.
    """
    return (
        f'derivation {{ name = "claudebox-trial-{nonce}"; system = "builtin"; builder = "builtin:fetchurl"; '
        f'url = "file://{place}"; outputHashMode = "flat"; outputHashAlgo = "sha256"; '
        f'outputHash = "{sha256(content)}"; preferLocalBuild = true; unpack = false; executable = false; }}'
    )


def copying_its_own(nonce: str) -> str:
    """A build that succeeds in every sandbox, because the file that it copies is in the store."""
    return copying(f'${{builtins.toFile "claudebox-trial" "{nonce}"}}', nonce.encode(), nonce)


def judge(copied: list[bool | None], copied_its_own: bool | None) -> str:
    """The outcome. `copied` says of files of the host whether a build could copy them; None if it failed otherwise."""
    if True in copied:
        return OPEN
    return CLOSED if None not in copied and copied_its_own else UNKNOWN


def _circumstances(host: Host) -> str:
    """A digest of the daemon's configuration, of the socket on which it listens, and of the machine's last start."""
    settings = sorted((read_config(host.tree) or {}).items())
    status = host.tree.lstat(SOCKET)
    file = host.tree.status(CONFIG)
    identity = [(one.st_ino, one.st_mtime_ns) for one in (status, file) if one is not None]
    boot = host.tree.text("/proc/sys/kernel/random/boot_id")
    return sha256(repr((settings, identity, boot)).encode(errors="surrogateescape"))


# What a store of the project's own needs of the host's: it is shown path by path, and Nix in the box is told of it

CLOSURE = Form("What Nix says about paths of its store. claudebox asks again when this file is gone.", largest=16 << 20)
REGISTRATION = "/etc/nix/claudebox-registration"
HOSTS_PROGRAMS = Origin.of_rule(RULE, "programs from the host's store")
# Nix is told once for each set of paths: a mark in the store itself remembers that.
TELL_NIX = (
    'mark=/nix/var/nix/claudebox-$0; [ -e "$mark" ] || { nix-store --load-db < '
    + REGISTRATION
    + ' && touch "$mark"; }; '
    'exec "$@"'
)


def roots_of(plan: Plan) -> tuple[str, ...]:
    """Every store path that the plan names anywhere."""
    words = [
        *(mount.source for mount in plan.mounts),
        *(mount.content.decode(errors="replace") for mount in plan.mounts if mount.origin.is_rule(RULE)),
        *(variable.value for variable in plan.environment if not variable.secret),
        *plan.program.argv,
        *plan.wrapper,
    ]
    return tuple(sorted({path for word in words if NIX_STORE in word for path in store_paths(word)}))


def with_closure(plan: Plan, nix: Nix, host: Host, hides: tuple[Word, ...]) -> Plan:
    """The same box with what it needs of the host's store, or with a note of what has to be asked first."""
    roots = tuple(root for root in roots_of(plan) if host.tree.lstat(root) is not None)
    if not roots:
        return plan
    registration = recall_closure(host, roots)
    paths = registered_paths(registration)
    if not set(roots) <= set(paths) or not all(map(host.tree.lstat, paths)):
        note = Finding(Finding.NOTE, "nix", "what the box needs of the host's store is looked up at the start")
        return plan.having(nix.replace(roots=roots)).replace(
            unknown=(*plan.unknown, Question(NIX_FEATURE, " ".join(roots))),
            findings=(*plan.findings, note),
        )
    # A symlink is not mounted: bwrap would show what it leads to, and whoever built it has chosen that.
    shown = [Mount(RO, path, HOSTS_PROGRAMS, source=path) for path in paths if not host.tree.is_link(path)]
    mounts = [
        *(mount for mount in plan.mounts if not is_below(mount.path, NIX_STORE)),
        *shown,
        Mount(FILE, REGISTRATION, HOSTS_PROGRAMS, content=registration, mode=0o444),
    ]
    name = sha256(registration)[:32]
    return plan.replace(
        mounts=arrange(mounts, find_hides(host.tree, hides, plan.project, host.person.home, shown)),
        preparations=(*plan.preparations, *(_place_for(host.tree, nix, path) for path in paths)),
        wrapper=(*plan.wrapper, "/bin/sh", "-c", TELL_NIX, name),
    )


def _place_for(tree: Tree, nix: Nix, path: str) -> Preparation:
    """Make something to mount on. bwrap must not make it: it would follow a symlink that the agent has put there."""
    place = nix.directory + path.removeprefix("/nix")
    if tree.is_link(path):
        return Preparation(Preparation.LINK, place, tree.link_target(path).encode(errors="surrogateescape"))
    return Preparation(Preparation.DIRECTORY if tree.is_dir(path) else Preparation.EMPTY_FILE, place)


def recall_closure(host: Host, roots: tuple[str, ...]) -> bytes:
    """What Nix said about these paths and all that they need; empty if it has to be asked again."""
    lines = memory.recall(host.tree, find_state(host).closure(roots), CLOSURE, host.person.uid)
    return "".join(f"{line}\n" for line in lines).encode()


def keeping_closure(host: Host, roots: tuple[str, ...], registration: bytes) -> tuple[Preparation, ...]:
    lines = registration.decode(errors="replace").removesuffix("\n").split("\n")
    return memory.note_with_directory(find_state(host).closure(roots), CLOSURE, lines)


def registered_paths(registration: bytes) -> tuple[str, ...]:
    """The paths in what `nix-store --dump-db` prints; none if that is not whole.

    It prints for each: path, hash, size, deriver, number of references, references.
    """
    lines = registration.decode(errors="replace").split("\n")
    paths = []
    at = 0
    while at + 5 < len(lines) and is_store_path(lines[at]) and lines[at + 4].isdigit():
        paths.append(lines[at])
        at += 5 + int(lines[at + 4])
    return tuple(paths) if lines[at:] in ([""], []) else ()


# What is shown

TOLD = {
    "daemon": "For a missing tool use Nix: `nix shell nixpkgs#NAME -c COMMAND`, `nix run`, `nix build` or, if "
    "it is installed, comma (`, COMMAND`).",
    "private": "For a missing tool use Nix: `nix shell nixpkgs#NAME -c COMMAND`; what you build is kept for "
    "this project.",
    "store": "Nix cannot build or download here: ask the user for `--package NAME`.",
    "off": "Nix is not available.",
}
FROM_NIX = """
From Nix, on your PATH because the user asked for them:

"""


def show_nix(nix: Nix | None) -> Section:
    from claudebox.output.section import READ_ONLY, TOOLS, Row, Section, fields

    if nix is None:
        return Section(key="nix")
    return Section(
        title="Nix",
        lines=((nix.mode, tuple(nix.meaning.split())),),
        rows=(Row("nix", words=f"{nix.mode}: {nix.meaning}", after=READ_ONLY),),
        key="nix",
        value=fields(nix, "mode", "rule", "holes"),
        told=((TOOLS, f"\n{TOLD[nix.mode]}\n"),),
    )


def show_packages(packages: tuple[Package, ...]) -> Section:
    from claudebox.output.section import READ_ONLY, TOOLS, Row, Section, by_label, fields, plain

    resolved = [f"- `{plain(short_name(one.reference))}`: {stored(one)}\n" for one in packages if one.paths]
    missing = [one.reference for one in packages if not one.paths]
    return Section(
        title="Packages",
        lines=by_label((one.origin.shown, (package_text(one),)) for one in packages),
        rows=(Row("packages", tuple(short_name(one.reference) for one in packages), after=READ_ONLY),),
        key="packages",
        value=[fields(one, "reference", "paths", "rule") for one in packages],
        told=((TOOLS, FROM_NIX + "".join(resolved)),) if resolved else (),
        comment="".join(f"claudebox asks Nix for {quote(one)} first: it is not resolved yet\n" for one in missing),
    )
