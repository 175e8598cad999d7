"""What several features need to know, found out once before anything is decided."""

from __future__ import annotations

import posixpath

from claudebox.host import Host
from claudebox.host.claude import ClaudeInstall
from claudebox.host.git.repository import Repository
from claudebox.host.system import System
from claudebox.host.walk import Entry
from claudebox.model import Login, Origin, Person, SecretPlace, Secrets
from claudebox.paths import is_inside
from claudebox.problem import Problem
from claudebox.reach import Reach, TrustedSource
from claudebox.record import Record
from claudebox.settings.values import Named, Settings
from claudebox.settings.words import Request
from claudebox.state import LOGIN_FILE, Instance, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.host.tree import Tree

TYPED = Origin.of_option("claude")  # a word for claude on the command line


class ClaudeHome(Record):
    """Where Claude's home is, on the host and in the box."""

    kept: State  # on the host, of all projects
    instance: Instance  # on the host, of this one
    place: str  # in the box
    users: str  # the user's own ~/.claude on the host
    auth_place: str  # in the box

    @property
    def state(self) -> str:
        return self.instance.claude


class Facts(Record):
    """The host, what was asked for, and what follows from both before a single feature has decided anything."""

    host: Host
    request: Request
    settings: Settings
    person: Person  # who the agent is in the box
    bwrap: str
    places: tuple[SecretPlace, ...]
    system: System
    repository: Repository
    certificates: str
    install: ClaudeInstall | None  # None: a box for another program does without Claude
    claude: ClaudeHome
    state: Instance | None  # None: this host keeps nothing, and a box without Claude does without that
    reach: Reach
    trusted: TrustedSource
    entries: tuple[Entry, ...]  # what lies in the project and is of interest by its name
    secrets: Secrets | None  # what of that holds some; None: nothing can
    answered: tuple[str, ...] = ()  # what was asked in this launch already, and is not asked twice

    @property
    def tree(self) -> Tree:
        return self.host.tree

    @property
    def home(self) -> str:
        """The agent's home, which is called as the user's own is."""
        return self.person.home

    @property
    def project(self) -> str:
        return self.host.cwd

    @property
    def is_root(self) -> bool:
        return self.host.person.uid == 0

    @property
    def words(self) -> tuple[Named, ...]:
        """What claude is told, each word with where it was said: in files first, then by who started it."""
        return (*self.settings.claude_args, *(Named(word, TYPED) for word in self.request.claude))

    @property
    def runs_claude(self) -> bool:
        return self.request.run is None and not self.request.shell


def claude_home(kept: State, instance: Instance, person: Person, environ: dict[str, str]) -> ClaudeHome:
    users = environ.get("CLAUDE_CONFIG_DIR", "")
    return ClaudeHome(
        kept=kept,
        instance=instance,
        place=f"{person.home}/.claude",
        users=posixpath.normpath(users) if users.startswith("/") else f"{kept.home}/.claude",
        auth_place=f"/run/user/{person.uid}/claude-auth",
    )


def claudes_own_place(tree: Tree, claude: ClaudeHome, project: str) -> SecretPlace:
    """The user's own Claude directory stays outside, wherever CLAUDE_CONFIG_DIR says that it is."""
    real = tree.resolve(claude.users) or claude.users
    if is_inside(real, project) or is_inside(claude.users, project) or is_inside(project, real):
        raise Problem(f"{claude.users}, Claude's own directory, and the project lie inside each other", "cd elsewhere")
    return SecretPlace(real, "Claude's login and the history of all projects", tree.exists(real))


def find_login(facts: Facts) -> Login:
    """The file of a login for boxes only, else that of the host's own Claude, else none: then boxes keep their own."""
    claude = facts.claude
    kept = claude.kept
    file, locks = facts.trusted.find(kept.login, is_dir=False), kept.directory
    if file is None:
        file, locks = facts.trusted.find(f"{claude.users}/{LOGIN_FILE}", is_dir=False), claude.users
    return Login(file or "", locks, kept, claude.instance.own_login, claude.auth_place)
