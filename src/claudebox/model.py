"""The vocabulary: what a box is made of.

A Plan holds everything that the launch does. The audit, the dry run and the launch read the same Plan.
"""

from __future__ import annotations

from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from claudebox.state import Instance, State

    # A file is the user's own, or comes with claudebox; the project's is another matter: the agent can write it.
    Kind = Literal["rule", "default", "option", "variable", "file", "project file"]

RO = "ro"
RW = "rw"
TMPFS = "tmpfs"
FILE = "file"
COVER = "cover"  # a file of the host with its content as it was read, read-only
MASK = "mask"  # a file of the host with made-up values, read-only
SYMLINK = "symlink"
PROC = "proc"
DEV = "dev"
HIDE = "hide"
ABSENT = "absent"  # an empty directory, for what the host does not have

FROM_HOST = (RO, RW)
UNSEEN = (0, 0)


class Origin(Record):
    """Where something in the box comes from: a rule of claudebox's own, or a place where somebody said it."""

    kind: Kind
    name: str  # of the rule, the option, the variable or the file
    reason: str = ""
    line: int = 0  # of the file

    @classmethod
    def of_rule(cls, name: str, reason: str = "") -> Origin:
        return cls("rule", name, reason)

    @classmethod
    def of_option(cls, name: str, reason: str = "") -> Origin:
        return cls("option", name, reason)

    @classmethod
    def of_variable(cls, name: str) -> Origin:
        return cls("variable", name)

    @classmethod
    def of_file(cls, name: str, line: int, *, is_project: bool = False) -> Origin:
        return cls("project file" if is_project else "file", name, "", line)

    @property
    def shown(self) -> str:
        """How people are told: `guard`, `--env`, `CLAUDEBOX_NETWORK`, `~/.claudebox/config.toml:3`. Never parsed."""
        return f"{self.name}:{self.line}" if self.line else self.name

    @property
    def is_said(self) -> bool:
        """Whether somebody asked for it. If nobody did, every box has it."""
        return self.kind not in ("rule", "default")

    @property
    def is_typed(self) -> bool:
        """Whether the user typed it for this start. A variable or a file says the same on every start."""
        return self.kind == "option"

    @property
    def is_default(self) -> bool:
        return self.kind == "default"

    @property
    def is_projects(self) -> bool:
        return self.kind == "project file"

    def is_rule(self, *names: str) -> bool:
        """Whether one of these rules put it there. Options and files do not count, whatever they are called."""
        return self.kind == "rule" and self.name in names


BY_DEFAULT = Origin("default", "default")


class Mount(Record):
    """One thing at one path of the box."""

    kind: str
    path: str
    origin: Origin
    source: str = ""  # host path of ro and rw, target of a symlink
    content: bytes = b""  # of a file that the box makes
    mode: int = 0o755  # of what the box makes
    is_dir: bool = True  # what a hide has to cover
    # Device and inode of a source that an agent may be able to replace; UNSEEN if the launch makes it, or made it anew.
    identity: tuple[int, int] | None = None


class EnvVar(Record):
    """A variable that enters the box."""

    name: str
    value: str
    origin: Origin
    secret: str = ""  # why it looks like a secret: then its value is never shown
    is_ours: bool = False  # made for the box: no secret, and programs need it
    late: bool = False  # set by bwrap inside the box, because the loader of bwrap itself would obey it


class Port(Record):
    """A TCP port of the host's loopback and the one of the box's that it is joined to."""

    host: int
    box: int
    origin: Origin


class Uplink(Record):
    """How a box with a network of its own is connected: pasta carries the packets, nft loads the filter."""

    pasta: str
    options: tuple[str, ...]
    nft: str
    ruleset: str
    near: tuple[str, ...]  # this host and what it is linked to, if the rest is open
    resolv_conf: str
    sysctls: tuple[tuple[str, str], ...] = ()  # of the box's namespace: file below /proc/sys/net, value
    tun_hint: str = ""  # if the device for it cannot be opened here


class Network(Record):
    """What the box can reach."""

    tier: str
    meaning: str
    origin: Origin
    published: tuple[Port, ...] = ()
    host_ports: tuple[Port, ...] = ()
    uplink: Uplink | None = None

    @property
    def is_hosts(self) -> bool:
        """Whether the box shares the host's network."""
        return self.tier == "full"


class Nix(Record):
    """How the box uses Nix."""

    mode: str
    meaning: str
    origin: Origin
    shows_store: bool = False  # the host's own
    directory: str = ""  # of a store of the project's own, on the host
    roots: tuple[str, ...] = ()  # of which it is not known yet what they need, for a store of the project's own
    needs_trial: bool = False  # whether its daemon builds in a sandbox was never tried
    holes: tuple[str, ...] = ()  # why its daemon is a way out of the box


class Finding(Record):
    """Something the user should see before saying yes."""

    SECRET = "secret"
    RISK = "risk"
    NOTE = "note"

    kind: str
    subject: str
    text: str


class Outside(Record):
    """What the host has and the box does not get."""

    variables: int
    places: tuple[SecretPlace, ...]


class SecretPlace(Record):
    """A path that is never mounted. In the table, `~` is the user's home."""

    path: str
    reason: str
    exists: bool = False


class Person(Record):
    """A user account."""

    uid: int
    gid: int
    name: str
    group: str
    home: str
    account_home: str = ""  # if HOME says something else than the account's own entry

    @property
    def homes(self) -> tuple[str, ...]:
        return (self.home, self.account_home) if self.account_home else (self.home,)


class Preparation(Record):
    """Something of claudebox's own state on the host that has to be there before the box starts."""

    DIRECTORY = "directory"
    FILE = "file"  # with this content
    EMPTY_FILE = "empty file"  # something to mount on; its content does not matter
    LINK = "link"  # a symlink that says `content`, unless something is there
    SANDBOX = "sandbox"  # what the agent is told, a view of the finished Plan
    USED = "used"  # note the time

    kind: str
    path: str
    content: bytes = b""
    is_private: bool = False  # never shown


class Login(Record):
    """Claude's login: the user's own file, and the copy that all boxes share."""

    file: str  # "" if there is none
    locks: str  # the directory in which Claude locks that file
    kept: State  # which knows where the boxes' copy is
    own_file: str  # where a Claude that does not know of that copy keeps its own, in the project's state
    place: str  # of the copy's directory in the box


class Broker(Record):
    """Who talks to the API for the box: the credential stays outside, and the box gets a socket."""

    shown: str  # which credential: a variable of the host, or a file
    variable: str  # that holds it; "" for a login
    file: str  # of the login
    locks: str  # the directory in which Claude locks that file
    url: str  # of the API, if it is not the usual one
    certificates: str
    token_name: str  # the variable of the box that gets the token of the launch
    sockets: str  # a directory, in which each launch makes one with its socket
    place: str  # that directory in the box
    lock: str  # of brokers among each other, around a renewal
    journal: str
    limits: tuple[tuple[str, int], ...] = ()
    login: str = ""  # the file of one, used or not


class Package(Record):
    """Something of Nix that shall be on PATH."""

    reference: str  # as Nix is asked for it
    paths: tuple[str, ...]  # in the store, what it is; empty until Nix was asked
    closure: tuple[str, ...]  # these and all that they need
    origin: Origin


class Profile(Record):
    """Settings that can be asked for by name."""

    name: str
    file: str  # as it is shown
    description: str


class Guarded(Record):
    """A place on the host that something there runs or believes later."""

    path: str
    group: str
    reason: str


class Guard(Record):
    """What the agent may not change because the host runs it later, and what no mount can keep it from."""

    held: tuple[Guarded, ...] = ()  # read-only in the box
    opened: tuple[Guarded, ...] = ()  # writable, because somebody said so
    loose: tuple[Guarded, ...] = ()  # there, but reached through a symlink
    absent: tuple[Guarded, ...] = ()  # would count if they appeared
    others: tuple[Guarded, ...] = ()  # the agent's to write, and looked at when the box has ended
    roots: tuple[str, ...] = ()  # the project, and what else of the host can be written
    git_configs: tuple[str, ...] = ()  # the user's own


class Trace(Record):
    """A file or symlink at one moment. Its content is None if it is large; of a symlink it is where that leads."""

    identity: tuple[int, ...]
    content: bytes | None
    mode: int


class Limits(Record):
    """How much of the machine the box may use; 0 where there is no limit. systemd is asked for them."""

    busctl: str
    memory: int  # bytes
    pids: int
    cpu: int  # microseconds in each second


class Step(Record):
    """Something that a feature does besides what bwrap does: `act.py` of that feature has a function for the moment."""

    BEFORE = "before"  # before the box is made
    BESIDE = "beside"  # a process that lives as long as the box does
    INSIDE = "inside"  # in the process that becomes bwrap, just before it does
    AFTER = "after"  # when the box has ended

    moment: str
    feature: str


class Directory(Record):
    """A directory of programs, and how early it stands in PATH."""

    CLAUDE, ASKED_FOR, PACKAGE, SYSTEM, LAST = range(5)

    path: str
    rank: int


class Program(Record):
    """What runs in the box."""

    title: str
    argv: tuple[str, ...]
    origin: Origin


class Plan(Record):
    """Everything about one box, decided before anything is started."""

    project: str
    bwrap: str
    person: Person
    hostname: str
    mounts: tuple[Mount, ...]
    environment: tuple[EnvVar, ...]
    network: Network
    program: Program
    wrapper: tuple[str, ...]  # words before those of the program: small programs that start it
    seccomp: bytes
    drop_groups: bool
    findings: tuple[Finding, ...]
    outside: Outside
    preparations: tuple[Preparation, ...] = ()
    login: Login | None = None
    broker: Broker | None = None
    state: Instance | None = None  # what is kept for the project
    nix: Nix | None = None  # None: this host has none
    packages: tuple[Package, ...] = ()
    policy: str = ""  # what the organisation tells every Claude
    disable_userns: bool = True  # by bwrap; the filter does it, too, unless they are asked for
    owns_pid_namespace: bool = True  # claudebox makes one: everything in it ends with its first process
    guard: Guard = Guard()
    limits: Limits | None = None
    steps: tuple[Step, ...] = ()
    unknown: tuple[str, ...] = ()  # features that have to ask a program of the host first, and be planned again
    kept_out: tuple[tuple[str, str], ...] = ()  # variables that may not enter, whoever asks, and why
    may_ask: bool = False  # when the box has ended, there is somebody to ask

    def acts(self, moment: str) -> list[str]:
        """The features that do something at this moment, in order."""
        return [step.feature for step in self.steps if step.moment == moment]

    @property
    def flagged(self) -> tuple[Finding, ...]:
        """Findings that make a bare Enter mean no."""
        return tuple(finding for finding in self.findings if finding.kind != Finding.NOTE)


class Masked(Record):
    """A file of the host that the box sees otherwise."""

    path: str
    style: str
    reason: str
    inode: int
    decoy: bytes | None  # None: it is seen empty
    mode: int


class Secrets(Record):
    """What was found in the project."""

    masked: tuple[Masked, ...] = ()
    findings: tuple[Finding, ...] = ()
    preparations: tuple[Preparation, ...] = ()  # what remembers them
    ignored: bytes = b""  # for git in the box, which shall not commit a decoy
