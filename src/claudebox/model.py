"""The vocabulary: what a box is made of.

A Plan holds everything that the launch does. The audit, the dry run and the launch read the same Plan.
"""

from __future__ import annotations

from claudebox.paths import is_inside
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Literal, TypeVar

    from claudebox.features import Feature
    from claudebox.sandbox.law import Law
    from claudebox.state import Instance, State

    T = TypeVar("T")
    Deed = Callable[[bool], None]  # something to do when the box has ended; it is told whether somebody can be asked

    # A "file" is the user's own or comes with claudebox. The project's has a kind of its own: the agent can write it.
    Kind = Literal["rule", "default", "option", "variable", "file", "project file"]

RO, RW, SYMLINK, TMPFS, PROC, DEV, FILE, HIDE = "ro", "rw", "symlink", "tmpfs", "proc", "dev", "file", "hide"
COVER = "cover"  # a file of the host, read-only, with the content that was read from it
MASK = "mask"  # a file of the host with made-up values, read-only; it has a source once the launch has written it
LAYER = "layer"  # a directory of the host whose changes are kept beside it until they land
ABSENT = "absent"  # an empty directory, for what the host does not have

FROM_HOST = (RO, RW, LAYER)
WRITABLE = (RW, LAYER)  # for the box, not always for the host
UNSEEN = (0, 0)
# How the user agrees to a mount of the host, if not to just this path.
ANY_VERSION = "any version"  # it is updated into a new directory each time
UNASKED = "unasked"  # it follows from the files that exist: its feature shows it, and nobody is asked
MOST_LAYERED = 50  # directories of a project: each is a mount; more of them are read-only


class Origin(Record):
    """Where something in the box comes from: a rule of claudebox, or a place where somebody asked for it."""

    kind: Kind
    name: str  # the name of the rule, the option, the variable or the file
    reason: str = ""
    line: int = 0  # the line in a file; 0 for every other kind

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
        """What people see: `guard`, `--env`, `CLAUDEBOX_NETWORK`, `~/.claudebox/config.toml:3`. It is never parsed."""
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
    content: bytes = b""  # what a file contains that the box makes
    mode: int = 0o755  # the permissions of something that the box makes
    size: int = 0  # the most bytes that a tmpfs may hold; 0: as many as the kernel likes
    is_dir: bool = True  # whether a hide has to cover a directory
    covers: str = ""  # host path of a secret that has to lie below a mask or a hide, which lets nobody see it
    # Device and inode of a source or of what is covered, if an agent could replace it; UNSEEN if the launch makes it.
    identity: tuple[int, int] | None = None
    consent: str = ""  # how the user agrees to it


class EnvVar(Record):
    """A variable that enters the box."""

    name: str
    value: str
    origin: Origin
    secret: str = ""  # why it looks like a secret; if it does, its value is never shown
    is_ours: bool = False  # made for the box: no secret, and programs need it
    late: bool = False  # set by bwrap inside the box, because the loader would obey it while it loads bwrap


class Port(Record):
    """A TCP port on the host's loopback, and the port of the box that it is joined to."""

    host: int
    box: int
    origin: Origin


class Uplink(Record):
    """How a box with a network of its own is connected: pasta carries the packets, nft loads the filter."""

    pasta: str
    options: tuple[str, ...]
    nft: str
    ruleset: str
    near: tuple[str, ...]  # the addresses of this host and of its links, which are rejected if the rest is open
    resolv_conf: str
    sysctls: tuple[tuple[str, str], ...] = ()  # for the box's namespace: a file below /proc/sys/net, and its value


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


class Finding(Record):
    """Something the user should see before saying yes."""

    SECRET, RISK, NOTE = "secret", "risk", "note"

    kind: str
    subject: str
    text: str

    @property
    def is_grave(self) -> bool:
        """Whether it makes a bare Enter mean no."""
        return self.kind != Finding.NOTE


class Grant(Record):
    """Something else that a feature gives to the box, and that the user agrees to."""

    # The first line is noted when the user says yes. The others are broader grants: to have agreed to one is enough.
    lines: tuple[tuple[str, ...], ...]
    label: str
    words: tuple[str, ...]  # how it is shown when it is new
    widens: bool = False  # with it, the box reaches more of the network


class Outside(Record):
    """What the host has and the box does not get."""

    variables: int
    places: tuple[SecretPlace, ...]


class SecretPlace(Record):
    """A path that is never mounted. In the table, `~` is the user's home."""

    path: str
    reason: str
    exists: bool = False
    is_drawer: bool = False  # not mounted as a whole, but a directory in it may be


class Person(Record):
    """A user account."""

    uid: int
    gid: int
    name: str
    group: str
    home: str
    account_home: str = ""  # the home in the account's entry, if HOME says something else

    @property
    def homes(self) -> tuple[str, ...]:
        return (self.home, self.account_home) if self.account_home else (self.home,)


class Preparation(Record):
    """Something of claudebox's own state on the host that has to be there before the box starts."""

    DIRECTORY = "directory"
    FILE = "file"  # a file with `content`
    EMPTY_FILE = "empty file"  # something to mount on; its content does not matter
    LINK = "link"  # a symlink that says `content`, unless something is there
    SANDBOX = "sandbox"  # a file with what the agent is told: a view of the rest of the Plan
    USED = "used"  # a file whose time says when the project was used last

    kind: str
    path: str
    content: bytes = b""
    is_private: bool = False  # never shown
    before: bytes | None = None  # what was there when it was planned: lines that others have added since stay


class Login(Record):
    """Claude's login: the user's own file, and the copy that the boxes of one project share."""

    file: str  # "" if there is none
    locks: str  # the directory in which Claude locks that file
    all_projects: State  # knows the lock of those who copy
    instance: Instance  # knows where the copy is
    place: str  # the directory of the copy in the box


class Proxy(Record):
    """An HTTP proxy that is asked for a tunnel."""

    host: str
    port: int
    authorization: str = ""


class Address(Record):
    """A place to which the broker sends requests."""

    host: str
    port: int
    is_tls: bool
    prefix: str = ""  # of every path
    proxy: Proxy | None = None


class Broker(Record):
    """The process that talks to the API for the box: the credential stays outside, and the box gets a port to it."""

    shown: str  # the name of the credential: a variable of the host, or a file
    variable: str  # the variable that holds it; "" for a login
    file: str  # the file of the login
    locks: str  # the directory in which Claude locks that file
    url: str  # the address of the API as somebody wrote it, if it is not the usual one
    api: Address
    renewal: Address  # where a login is renewed
    certificates: str
    token_name: str  # the variable of the box that gets the token of the launch
    port: int  # of the box, at which the broker listens; 0: any that is free, when the box starts
    lock: str  # a file that brokers lock against each other while one renews the login
    journal: str
    fetches: bool  # whether the API may be asked to fetch something for the box
    limits: tuple[tuple[str, int], ...] = ()
    login: str = ""  # the file of a login, even if the broker uses something else
    extra_certificates: str = ""  # a file with more than the bundle


class Guarded(Record):
    """A place that a program on the host runs or believes later."""

    path: str
    group: str
    reason: str


class Ways(Record):
    """How the host reaches into what the agent can write, by links from the home and by PATH."""

    guarded: tuple[Guarded, ...] = ()
    made: tuple[tuple[str, str], ...] = ()  # what tools make anew: it cannot be held either; with the reason
    filled: tuple[str, ...] = ()  # directories of PATH that tools fill with programs: they cannot be held
    above: tuple[tuple[str, str], ...] = ()  # roots that lie in what the host obeys, and by which way
    has_here: bool = False  # whether PATH has the directory in which the user happens to be
    commands: tuple[str, ...] = ()  # directories of PATH that are out of the agent's reach


class Guard(Record):
    """What the agent may not change because the host runs it later, and what no mount can protect."""

    held: tuple[Guarded, ...] = ()  # read-only in the box
    opened: tuple[Guarded, ...] = ()  # writable, because somebody said so
    loose: tuple[Guarded, ...] = ()  # reached through a symlink, so that no mount can hold them
    absent: tuple[Guarded, ...] = ()  # would be guarded if they existed
    others: tuple[Guarded, ...] = ()  # the agent may write them; they are compared when the box has ended
    roots: tuple[str, ...] = ()  # the project, and whatever else of the host the agent can write
    hidden: frozenset[str] = frozenset()  # in the project, by the user's word: at the start nobody looked there
    git_configs: tuple[str, ...] = ()  # the user's own
    ways: Ways = Ways()
    direct: tuple[str, ...] = ()  # directories in those that are held which are not
    walls: str = ""  # why directories are read-only although layers could hold them


class Trace(Record):
    """A file or symlink at one moment. The content is None if the file is large; a symlink's is its target."""

    identity: tuple[int, ...]
    content: bytes | None
    mode: int
    names: int = 1  # more than one: there are hard links to it


class Covered(Record):
    """A directory of the host over which a layer lies, or a place in it that is in no layer."""

    path: str
    identity: tuple[int, int]  # device and inode, as the plan saw them; UNSEEN if the launch makes it


class Review(Record):
    """What the box changes in the project is kept in a layer until the user lands it."""

    origin: Origin
    land: str  # what lands when the box has ended: ask, all or safe
    place: str  # the directory of the project's layers
    project: str
    covered: tuple[Covered, ...]  # the project, or directories in it; and its repository, if that is elsewhere
    git: str = ""  # that repository's directory
    direct: tuple[Covered, ...] = ()  # places in those directories that the box changes on the host itself

    @property
    def is_whole(self) -> bool:
        """Whether the whole project is a layer."""
        return any(covered.path == self.project for covered in self.covered)

    def over(self, path: str) -> int:
        """The number of the directory whose layer a path of the host is in; -1 if it is in none."""
        around = [(len(one.path), number) for number, one in enumerate(self.covered) if is_inside(path, one.path)]
        length, number = max(around, default=(0, -1))
        is_direct = any(is_inside(path, one.path) and len(one.path) > length for one in self.direct)
        return -1 if is_direct else number

    @property
    def places(self) -> tuple[str, ...]:
        """The directories of the project that are covered, by their paths in it; "" is the project itself."""
        return tuple(one.path[len(self.project) + 1 :] for one in self.covered if one.path != self.git)


class Kernel(Record):
    """What of the kernel the box gets, and how claudebox makes it."""

    seccomp: bytes  # the system call filter
    disable_userns: bool = True  # by bwrap; the filter forbids them, too, unless somebody asked for them
    drop_groups: bool = False
    owns_pid_namespace: bool = True  # claudebox makes one, in which everything ends with the first process


class Step(Record):
    """Something that a feature does in addition to bwrap: it has a method named after the moment. In their order:"""

    BESIDE = "beside"  # a process that lives as long as the box does, and the box no longer than it
    BEFORE = "before"  # just before the box is made
    MOUNT = "mount"  # in the process that becomes bwrap, first: changes what it finds on the host
    INSIDE = "inside"  # in the process that becomes bwrap, just before it does
    AFTER = "after"  # looks around while bwrap makes the mounts, and returns what to do when the box has ended
    MADE = "made"  # when bwrap has made the mounts, and nothing has started: also returns what to do afterwards

    moment: str
    feature: Feature


class Question(Record):
    """Something that a feature has to ask a program of the host. Then the box is planned again with the answer."""

    feature: Feature
    subject: str  # no subject is asked about twice


class Directory(Record):
    """A directory of programs, and its rank: a lower one comes earlier in PATH."""

    FIRST, CLAUDE, ASKED_FOR, PACKAGE, TOOLCHAIN, SYSTEM, LAST = range(7)

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
    wrapper: tuple[str, ...]  # words before the program's own: small programs that start it
    kernel: Kernel
    findings: tuple[Finding, ...]
    outside: Outside
    preparations: tuple[Preparation, ...] = ()
    records: tuple[Record, ...] = ()  # what features have decided, each in a type of its own
    state: Instance | None = None  # what is kept for the project
    grants: tuple[Grant, ...] = ()
    told: tuple[str, ...] = ()  # what features tell the agent, in sentences
    policy: str = ""  # what the organisation tells every Claude
    steps: tuple[Step, ...] = ()
    unknown: tuple[Question, ...] = ()
    kept_out: tuple[tuple[str, str], ...] = ()  # variables that may not enter, whoever asks, and why
    law: Law | None = None  # what the box may have, whatever the features decided; without it, nothing starts

    def get(self, kind: type[T]) -> T | None:
        """What a feature has decided; None if it does not apply to this box."""
        return find(self.records, kind)

    def having(self, record: Record) -> Plan:
        """The same plan with another record of this type."""
        return self.replace(records=(*(one for one in self.records if type(one) is not type(record)), record))

    @property
    def guard(self) -> Guard:
        return self.get(Guard) or Guard()

    @property
    def review(self) -> Review | None:
        return self.get(Review)

    @property
    def layered(self) -> frozenset[str]:
        """The directories of the host whose changes land later."""
        return frozenset(() if self.review is None else (covered.path for covered in self.review.covered))

    @property
    def flagged(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.is_grave)


class Launch:
    """What exists only while a box is started and runs. Its Plan stays as it was agreed to."""

    def __init__(self, plan: Plan, *, may_ask: bool = False, is_quiet: bool = False) -> None:
        self.plan = plan
        self.mounts = plan.mounts  # with the sources that were made for this launch
        self.environment = plan.environment  # with the tokens that were
        self.may_ask = may_ask  # whether somebody can be asked when the box has ended
        self.is_quiet = is_quiet  # whether only questions and errors are wanted then
        self.veil = ""  # a directory that lies between the project and its layer, and hides names of secrets
        self.made: list[object] = []

    def keep(self, one: object) -> None:
        """Keep what a feature has made for this launch, in a type of its own."""
        self.made.insert(0, one)

    def get(self, kind: type[T]) -> T:
        """What a feature has made for this launch, or else what it decided."""
        found = find((*self.made, *self.plan.records), kind)
        assert found is not None, kind
        return found

    @property
    def makes_network(self) -> bool:
        """Whether a feature makes the box's network before bwrap starts in it."""
        return bool(self.acts(Step.INSIDE))

    def acts(self, moment: str) -> list[Feature]:
        """The features that do something at this moment, in order."""
        return [step.feature for step in self.plan.steps if step.moment == moment]


def find(records: Iterable[object], kind: type[T]) -> T | None:
    return next((one for one in records if isinstance(one, kind)), None)
