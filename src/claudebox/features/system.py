"""The programs of the system, and the empty places that every box has."""

from __future__ import annotations

import posixpath

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host.programs import another
from claudebox.host.secrets import secret_value
from claudebox.host.system import BOX_NAME, JAVA, NIX_STORE, OF_ETC, read_hosts
from claudebox.host.tree import Tree
from claudebox.host.variables import is_loopback
from claudebox.model import (
    DEV,
    FILE,
    FROM_HOST,
    HIDE,
    PROC,
    RO,
    SYMLINK,
    TMPFS,
    Directory,
    Finding,
    Mount,
    Origin,
    Person,
    Plan,
    Program,
)
from claudebox.paths import is_inside
from claudebox.settings.table import ALLOWLIST, AMOUNT, FULL, NETWORK, Setting
from claudebox.settings.types import Quantity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features import CheckRow, Settings
    from claudebox.host import Host, system

BOX = Origin.of_rule("box", "made for this box, gone when it ends")
SYSTEM = Origin.of_rule("system", "programs and libraries of this system")

ROOT_TREES = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")

ETC = Origin.of_rule("etc", "configuration that programs need to run")
PUBLIC_BY_NATURE = ("alternatives", "ca-certificates", "fonts", "ssl/certs", "terminfo")

IDENTITY = Origin.of_rule("identity", "written for this box instead of the host's file")
MACHINE_ID = "c1a0deb0c1a0deb0c1a0deb0c1a0deb0"
OWN_HOSTS = ("127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback", f"127.0.1.1 {BOX_NAME}")
UNKNOWN_SIZE = 1 << 30  # of /tmp, where the kernel does not tell how much memory there is
MOST_BYTES = 1 << 62  # bwrap takes no larger number
UNBOUNDED = Finding(
    Finding.NOTE, "bwrap", "is older than 0.7: /tmp and the box's home may each take half of the memory"
)
NOBODY = 65534
ROOT_IN_BOX = 1000


TMP_SIZE = Setting(
    *("tmp_size", AMOUNT),
    "the most that /tmp may hold, and the home as much again (default: a quarter of the memory)",
    Quantity("4G", 16 << 20, is_size=True),
)


class System(Feature):
    """The system's programs and libraries, and the empty places."""

    settings = (TMP_SIZE,)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        size, named_home = tmp_size(facts), facts.host.environ.get("HOME", "")
        # Through these the host names the home, such as /home -> var/home.
        links = facts.tree.links(named_home) if named_home else ()
        return Contribution(
            mounts=(
                Mount(TMPFS, "/", BOX),
                *empty_places(facts.person, size),
                *(Mount(SYMLINK, link, BOX, source=target) for link, target in links),
                *system_mounts(facts.tree, facts.system),
            ),
            path=tuple(Directory(path, Directory.SYSTEM) for path in facts.system.path),
            findings=() if size else (UNBOUNDED,),
        )


class Etc(Feature):
    """The configuration of the system that programs need."""

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        mounts = etc_mounts(facts.tree, facts.is_root)
        hides = root_only_hides(facts.tree, mounts) if facts.is_root else []
        return Contribution(mounts=tuple(mounts), hides=tuple(hides))


class Identity(Feature):
    """Who the agent is, and what the machine is called."""

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        return Contribution(mounts=tuple(identity_files(facts)))


class Certificates(Feature):
    """The bundle of certificates, unless another mount shows it."""

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        bundle = facts.certificates
        shown = any(is_inside(bundle, mount.path) for mount in draft.mounts if mount.kind in (*FROM_HOST, SYMLINK))
        origin = Origin.of_rule("certificates", "to verify TLS connections")
        return Contribution(mounts=() if not bundle or shown else (Mount(RO, bundle, origin, source=bundle),))

    def check(self, host: Host, settings: Settings) -> list[CheckRow]:
        from claudebox.host.system import find_certificates, install_command
        from claudebox.process.trial import FAIL, OK, CheckRow

        if bundle := find_certificates(host.tree, host.environ):
            return [CheckRow(OK, "certificates", bundle)]
        fix = (install_command(host.tree, "ca-certificates"),)
        return [CheckRow(FAIL, "certificates", "no bundle found", "nothing in the box could use TLS", fix)]


def system_mounts(tree: Tree, system: system.System) -> list[Mount]:
    if system.is_nix:
        # Just two programs are outside of the store, for `#!` lines.
        links = {path: tree.resolve(path) for path in ("/bin/sh", "/usr/bin/env")}
        return [Mount(SYMLINK, path, SYSTEM, source=real) for path, real in links.items() if real is not None]
    # /usr/local may be a symlink out of /usr (Fedora Silverblue).
    local = tree.resolve("/usr/local") if tree.is_link("/usr/local") else None
    shown = ["/usr", *([local] if local and not is_inside(local, "/usr") else [])]
    mounts = [Mount(RO, path, SYSTEM, source=path) for path in shown]
    # /bin and the like are as the host has them: a symlink where /usr is merged, else a directory.
    for path in ROOT_TREES:
        if tree.is_link(path):
            mounts.append(Mount(SYMLINK, path, SYSTEM, source=tree.link_target(path)))
        elif tree.is_dir(path):
            mounts.append(Mount(RO, path, SYSTEM, source=path))
    return mounts


def tmp_size(facts: Facts) -> int:
    """The most bytes that /tmp may hold; 0 if this bwrap cannot bound it, and nobody has asked for a bound."""
    said = facts.settings[TMP_SIZE]
    program = facts.tree.read(facts.bwrap) or b""
    if program.startswith(b"\x7fELF") and b"--size" not in program:
        if said is not None:
            raise Problem(f"{said.origin.shown} needs bwrap 0.7 or later", another("bwrap"))
        return 0
    if said is not None:
        return min(said.number, MOST_BYTES)
    first, _, rest = (facts.tree.text("/proc/meminfo") or "").partition(" kB")
    memory = first.removeprefix("MemTotal:").strip()
    return int(memory) * 1024 // 4 if rest and memory.isascii() and memory.isdigit() else UNKNOWN_SIZE


def empty_places(person: Person, size: int) -> list[Mount]:
    """Directories that are writable, and empty at each start. They are in memory: together they never fill it."""
    return [
        Mount(PROC, "/proc", BOX),
        Mount(DEV, "/dev", BOX),
        Mount(TMPFS, "/dev/shm", BOX, mode=0o1777, size=size // 4),
        Mount(TMPFS, "/tmp", BOX, mode=0o1777, size=size),
        Mount(TMPFS, "/var/tmp", BOX, mode=0o1777, size=size // 4),
        Mount(TMPFS, f"/run/user/{person.uid}", BOX, mode=0o700, size=size // 8),
        Mount(TMPFS, person.home, BOX, mode=0o700, size=size),
    ]


def etc_mounts(tree: Tree, as_root: bool) -> list[Mount]:
    mounts = []
    java = [name for name in tree.entries("/etc") if name.startswith(JAVA)]
    for name in (*OF_ETC, *java):
        path = f"/etc/{name}"
        real = tree.resolve(path)
        if real is None or (as_root and not _is_public(tree, real)):
            continue
        if real.startswith(("/usr/", NIX_STORE + "/")):
            # Its target is in the box anyway, and a symlink costs nothing.
            mounts.append(Mount(SYMLINK, path, ETC, source=real))
        else:
            mounts.append(Mount(RO, path, ETC, source=real))
    return mounts


def _is_public(tree: Tree, path: str) -> bool:
    """Whether everyone may read it. Root can read everything, and what others may not see must stay outside."""
    status = tree.lstat(path)
    return status is not None and bool(status.st_mode & 0o004)


def root_only_hides(tree: Tree, mounts: list[Mount]) -> list[Mount]:
    """Hide what only root may read in mounted parts of /etc and in /usr/local/etc, where administrators keep it."""
    directories = [mount.path for mount in mounts if mount.origin is ETC and mount.kind == RO]
    private = [path for path in directories if path.removeprefix("/etc/") not in PUBLIC_BY_NATURE]
    return [hide for path in ("/usr/local/etc", *private) for hide in _root_only(tree, path)]


def _root_only(tree: Tree, directory: str) -> list[Mount]:
    hides: list[Mount] = []
    for name in tree.entries(directory):
        path = f"{directory}/{name}"
        if tree.is_link(path):
            continue
        if not _is_public(tree, path):
            hides.append(Mount(HIDE, path, Origin.of_rule("root", "only root may read it"), is_dir=tree.is_dir(path)))
        elif tree.is_dir(path):
            hides += _root_only(tree, path)
    return hides


def box_person(person: Person) -> Person:
    """The account of the agent. Root becomes an ordinary one: programs refuse to work as root, or trust it too much."""
    if person.uid != 0:
        return person
    return person.replace(uid=ROOT_IN_BOX, gid=ROOT_IN_BOX, name="claude", group="claude")


def identity_files(facts: Facts) -> list[Mount]:
    person = facts.person
    passwd = (
        f"root:x:0:0:root:/root:/bin/sh\n{person.name}:x:{person.uid}:{person.gid}::{person.home}:{facts.system.shell}\n"
        f"nobody:x:{NOBODY}:{NOBODY}:nobody:/:/bin/false\n"
    )
    group = f"root:x:0:\n{person.group}:x:{person.gid}:\nnogroup:x:{NOBODY}:\n"
    hosts = "\n".join([*OWN_HOSTS, *_entering_hosts(facts), ""])
    files = {"passwd": passwd, "group": group, "hosts": hosts, "machine-id": f"{MACHINE_ID}\n"}
    return [
        Mount(FILE, f"/etc/{name}", IDENTITY, content=text.encode(errors="surrogateescape"), mode=0o444)
        for name, text in files.items()
    ]


def _entering_hosts(facts: Facts) -> list[str]:
    """The lines of the host's /etc/hosts that enter, without the name of the host itself.

    With a list of hosts, none does: a listed name is looked up outside, and has another address in the box.
    """
    tier, lines = facts.settings[NETWORK].text, list[str]()
    if tier == ALLOWLIST:
        return lines
    own = {facts.host.hostname, facts.host.hostname.split(".")[0]} - {"localhost"}
    enters = dict[str, bool]()  # lists against advertisements have thousands of names for one address
    for address, *names in read_hosts(facts.tree):
        named = [name for name in names if name not in own and name.split(".")[0] not in own]
        if named and "localhost" not in named:
            if address not in enters:
                enters[address] = tier == FULL or _may_know(address, facts)
            lines += [" ".join((address, *named))] if enters[address] else []
    return lines


def _may_know(address: str, facts: Facts) -> bool:
    """Whether a box with a network of its own may know the names of an address. Those of the LAN tell what is there."""
    from claudebox.host.network import rejected_range

    if is_loopback(address) or address in ("0.0.0.0", "::"):  # noqa: S104  (in the box, that is the box)
        return True
    # Most files have none of the internet: then nobody asks the kernel what is near.
    is_private = rejected_range(address, ()) or rejected_range(address, facts.host.neighbourhood(facts.tree).everything)
    return is_private is None


class Command(Feature):
    """The command or the shell that runs instead of an agent, and how Ctrl-C reaches what runs."""

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        wrapper = signal_shim(facts.tree, facts.host.python)
        if facts.request.run is not None:
            program = Program("command", facts.request.run, Origin.of_option("--run"))
        elif facts.request.shell or (facts.install is None and not facts.starts_agent):
            program = Program("shell", (facts.system.shell,), Origin.of_option("--shell"))
        else:
            return Contribution(wrapper=wrapper)  # the feature of the agent decides how it is started
        return Contribution(wrapper=wrapper, program=program)

    def complete(self, facts: Facts, draft: Draft, plan: Plan) -> Plan:
        """Warn of secret arguments: everybody on this host can read them, and so can the agent."""
        findings = [
            Finding(Finding.SECRET, f"argument {number}", f"looks secret ({reason})")
            for number, argument in enumerate(plan.program.argv)
            if (reason := secret_value(argument))
        ]
        return plan.replace(findings=(*plan.findings, *findings))

    def check(self, host: Host, settings: Settings) -> list[CheckRow]:
        from claudebox.host.system import install_command
        from claudebox.process.trial import FAIL, OK, CheckRow, run

        try:
            shim = signal_shim(host.tree, host.python)
        except Problem as problem:
            return [CheckRow.of_problem("Ctrl-C", problem)]
        if run(*shim, "true").status == 0:
            return [CheckRow(OK, "Ctrl-C", f"restored in the box by {shim[0]}")]
        fix = (install_command(host.tree, "env"),)
        return [CheckRow(FAIL, "Ctrl-C", f"{' '.join(shim[:2])} failed", "GNU env is needed", fix)]


def signal_shim(tree: Tree, python: str) -> tuple[str, ...]:
    """The words before the program's own that give Ctrl-C back to it.

    bwrap would die of the first Ctrl-C, and take with it a program that wants to finish. So bwrap is started with
    SIGINT and SIGQUIT ignored, which the program inherits unless something in between undoes it.
    """
    env = tree.resolve("/usr/bin/env")
    if env is not None and _resets_signals(tree, env):
        return ("/usr/bin/env", "--default-signal=INT,QUIT")
    code = "import os,signal,sys;[signal.signal(s,signal.SIG_DFL) for s in(2,3)];os.execvp(sys.argv[1],sys.argv[1:])"
    if is_inside(python, "/usr") or is_inside(python, NIX_STORE):
        return (python, "-I", "-S", "-c", code)
    raise Problem("neither GNU env nor a system Python was found for the box", "install GNU coreutils or python3")


def _resets_signals(tree: Tree, env: str) -> bool:
    """Whether this `env` has --default-signal: GNU since 8.31, uutils since 0.6, busybox never."""
    if posixpath.basename(env) == "busybox":
        return False
    return not ("/cargo/" in env and 'VERSION_ID="25.10"' in (tree.text("/etc/os-release") or ""))
