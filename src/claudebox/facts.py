"""What features are given, and what they give.

The Facts are found out once, before anything is decided. A Contribution is what one feature decides, and the Draft is
what those before it have.
"""

from __future__ import annotations

import stat

from claudebox.errors import Problem
from claudebox.host import Host
from claudebox.host.git import Repository
from claudebox.host.programs import ClaudeInstall
from claudebox.host.system import System
from claudebox.host.tree import Tree
from claudebox.host.walk import Entry
from claudebox.model import (
    Directory,
    EnvVar,
    Finding,
    Grant,
    Kernel,
    Login,
    Mount,
    Network,
    Origin,
    Person,
    Preparation,
    Program,
    Question,
    SecretPlace,
    Step,
    find,
)
from claudebox.paths import is_inside, normalize
from claudebox.record import Record
from claudebox.settings import MountWish, Settings, Word
from claudebox.settings.table import CLAUDE, CLAUDE_ARGS, OFF, ON, PROGRAM, REVIEW
from claudebox.settings.words import Request
from claudebox.state import LOGIN_FILE, Instance, State
from claudebox.state.claude_settings import UsersSettings
from claudebox.state.reach import Reach, TrustedSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

TYPED = Origin.of_option("claude")  # a word for claude on the command line


class ClaudeHome(Record):
    """Where Claude's home is, on the host and in the box."""

    all_projects: State  # what claudebox keeps on the host, for all projects
    instance: Instance  # what it keeps for this project
    place: str  # ~/.claude in the box
    users: str  # the user's own ~/.claude on the host
    auth_place: str  # the directory of the login, in the box

    @property
    def state(self) -> str:
        return self.instance.claude


class Masked(Record):
    """A file of the host that the box sees with other content."""

    path: str
    how: str  # how much of it is secret
    reason: str
    inode: int
    device: int
    decoy: bytes  # what the box sees
    mode: int


class Secrets(Record):
    """The files with secrets that were found in the project."""

    masked: tuple[Masked, ...] = ()
    findings: tuple[Finding, ...] = ()
    closed: tuple[tuple[str, str], ...] = ()  # directories that are hidden as a whole, and why
    preparations: tuple[Preparation, ...] = ()
    ignored: bytes = b""  # a list for git in the box, which must not commit a decoy
    shown: tuple[str, ...] = ()  # files that could be masked, and are as they are because git has them
    also: tuple[tuple[str, str], ...] = ()  # files and directories, each with another name by which it counts


class Facts(Record):
    """The host, what was asked for, and what follows from both before any feature decides something."""

    host: Host
    request: Request
    settings: Settings
    person: Person  # who the agent is in the box
    bwrap: str
    places: tuple[SecretPlace, ...]
    system: System
    repository: Repository
    certificates: str
    install: ClaudeInstall | None  # None: the box is for another program, and there is no Claude
    claude: ClaudeHome
    state: Instance | None  # None: this host keeps nothing, and a box without Claude can do without
    reach: Reach
    trusted: TrustedSource
    users: UsersSettings  # the user's own settings of Claude
    entries: tuple[Entry, ...]  # files of the project whose names are of interest
    directories: tuple[str, ...]  # of the project, as far as they were searched, nearest to its root first
    hidden: frozenset[str]  # what the user hides of it, which was not searched
    since: int  # when a box started here last, in nanoseconds; 0 if none ever did
    secrets: Secrets | None  # those of them that hold secrets; None: none of them can
    answered: tuple[str, ...] = ()  # what this launch has asked already, and does not ask again

    @property
    def tree(self) -> Tree:
        return self.host.tree

    @property
    def home(self) -> str:
        """The agent's home, which has the same path as the user's own."""
        return self.person.home

    @property
    def project(self) -> str:
        return self.host.cwd

    @property
    def is_root(self) -> bool:
        return self.host.person.uid == 0

    @property
    def is_reviewed(self) -> bool:
        """Whether all that the box changes in the project is kept in a layer."""
        return self.settings[REVIEW].text == ON

    @property
    def is_shared(self) -> bool:
        """Whether a group shares the project, by directories that are setgid: then `chmod 755 directory` asks for that
        bit.

        The same bit on a program is for members of the group what setuid is for the user. The report names such files.
        """
        repository = self.repository
        statuses = map(self.tree.lstat, filter(None, (self.project, repository.git_dir, repository.outside)))
        return any(status is not None and status.st_mode & stat.S_ISGID for status in statuses)

    @property
    def has_layer(self) -> bool:
        """Whether some of it may be."""
        return self.settings[REVIEW].text != OFF

    @property
    def why_no_layers(self) -> str:
        """Why the directories that are guarded are read-only rather than layers; "" if they can be layers.

        Who asked for layers has no doubts: they get them, or no box.
        """
        from claudebox.overlay.machine import find_doubt

        if not self.settings[REVIEW].origin.is_default:
            return ""
        if self.state is None:
            return "the state cannot be used"
        return find_doubt(self.tree, self.host.person.uid, self.claude.all_projects)

    @property
    def words(self) -> tuple[Word, ...]:
        """The arguments for claude, each with its origin: first those from files, then those that were typed."""
        return (*self.settings[CLAUDE_ARGS], *(Word(word, TYPED) for word in self.request.claude))

    @property
    def runs_claude(self) -> bool:
        return self.starts_agent and self.settings[PROGRAM].text == CLAUDE

    @property
    def starts_agent(self) -> bool:
        """Whether Claude or another agent is started, rather than a command or a shell."""
        return self.request.run is None and not self.request.shell


def find_claude_home(all_projects: State, instance: Instance, person: Person, environ: dict[str, str]) -> ClaudeHome:
    users = environ.get("CLAUDE_CONFIG_DIR", "")
    return ClaudeHome(
        all_projects=all_projects,
        instance=instance,
        place=f"{person.home}/.claude",
        users=normalize(users) if users.startswith("/") else f"{all_projects.home}/.claude",
        auth_place=f"/run/user/{person.uid}/claude-auth",
    )


def find_claudes_own_place(tree: Tree, claude: ClaudeHome, project: str) -> SecretPlace:
    """The user's own Claude directory, which stays outside wherever CLAUDE_CONFIG_DIR puts it."""
    real = tree.resolve(claude.users) or claude.users
    if is_inside(real, project) or is_inside(claude.users, project) or is_inside(project, real):
        raise Problem(f"{claude.users}, Claude's own directory, and the project lie inside each other", "cd elsewhere")
    return SecretPlace(real, "Claude's login and the history of all projects", tree.exists(real))


def find_login(facts: Facts) -> Login:
    """The login that only boxes use; else that of the host's Claude; else none, and then boxes keep their own."""
    claude = facts.claude
    all_projects = claude.all_projects
    locks = all_projects.directory
    file = facts.trusted.find(all_projects.login, is_dir=False)
    if file is None:
        locks = claude.users
        file = facts.trusted.find(f"{claude.users}/{LOGIN_FILE}", is_dir=False)
    return Login(file or "", locks, all_projects, claude.instance, claude.auth_place)


class Contribution(Record):
    """What one feature gives to the box, or several as one. Every field may be empty."""

    mounts: tuple[Mount, ...] = ()
    hides: tuple[Mount, ...] = ()  # they beat every mount
    wishes: tuple[MountWish, ...] = ()  # mounts that are judged as if the user had asked for them
    wished: tuple[Mount, ...] = ()  # those of the mounts that somebody asked for
    pins: tuple[str, ...] = ()  # paths in the box whose directories must stay where they are
    variables: tuple[EnvVar, ...] = ()
    kept_out: tuple[tuple[str, str], ...] = ()  # variables that may not enter, whoever asks, each with the reason
    path: tuple[Directory, ...] = ()
    wrapper: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    grants: tuple[Grant, ...] = ()  # what the user agrees to beyond mounts, variables and the program
    told: tuple[str, ...] = ()  # sentences for the agent
    preparations: tuple[Preparation, ...] = ()
    shown_places: tuple[str, ...] = ()  # secret places that the feature shows on purpose
    steps: tuple[Step, ...] = ()
    unknown: tuple[Question, ...] = ()
    records: tuple[Record, ...] = ()  # what the feature decides beyond that, each in a type of its own
    # One feature alone decides each of these.
    program: Program | None = None
    network: Network | None = None
    environment: tuple[EnvVar, ...] = ()
    kernel: Kernel | None = None
    policy: str = ""

    def and_then(self, other: Contribution) -> Contribution:
        """Both as one. What one feature alone decides is the other's, if that has decided it."""
        mine, its = self.__dict__, other.__dict__
        # In the order of the fields: every start does this for each feature, and a Record is made fastest like that.
        both = (mine[one] + its[one] if isinstance(its[one], tuple) else its[one] or mine[one] for one in self._fields)
        return Contribution(*both)

    def get(self, kind: type[T]) -> T | None:
        """What a feature before has decided."""
        return find(self.records, kind)

    @property
    def search_path(self) -> tuple[str, ...]:
        """The directories in which the box looks for programs, in order."""
        in_order = sorted(self.path, key=lambda directory: directory.rank)
        return tuple(dict.fromkeys(directory.path for directory in in_order))

    def hidden_places(self, places: tuple[SecretPlace, ...]) -> tuple[SecretPlace, ...]:
        """The secret places, without those that a feature shows on purpose."""
        return tuple(place for place in places if place.path not in self.shown_places)


Draft = Contribution  # what the features before one in the table have given
