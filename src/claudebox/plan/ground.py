"""What several families of rules need to know, found out once."""

from __future__ import annotations

from claudebox import tools as helpers
from claudebox.features.claude import home as claude_home
from claudebox.features.claude import program as programs
from claudebox.features.git import decide as git
from claudebox.features.system import decide as system
from claudebox.host import Host
from claudebox.host.claude import ClaudeInstall
from claudebox.host.git.repository import (
    Repository,
    find_repository,
)
from claudebox.host.tree import Tree
from claudebox.model import (
    Broker,
    Login,
    Nix,
    Package,
    Person,
    SecretPlace,
)
from claudebox.paths import (
    expand_home,
    is_inside,
)
from claudebox.places import check_project
from claudebox.problem import Problem
from claudebox.reach import TrustedSource
from claudebox.record import Record
from claudebox.secret_values import (
    NIX_SOCKETS,
    secret_places,
)
from claudebox.settings.table import (
    AUTO,
    BROKER,
    DAEMON,
    OFF,
    PASSTHROUGH,
)
from claudebox.settings.values import Settings
from claudebox.settings.words import Request
from claudebox.state import (
    Instance,
    State,
    canonical_root,
)


class Ground(Record):
    """What several families of rules need to know."""

    host: Host
    request: Request
    settings: Settings
    person: Person  # who the agent is
    as_root: bool
    bwrap: str
    places: tuple[SecretPlace, ...]
    base: system.System
    repository: Repository
    identity: git.Identity
    certificates: str
    install: ClaudeInstall | None
    claude: claude_home.ClaudeHome
    trusted: TrustedSource
    login: Login | None
    broker: Broker | None
    nix: Nix | None
    packages: tuple[Package, ...]

    @property
    def home(self) -> str:
        return self.person.home

    @property
    def project(self) -> str:
        return self.host.cwd

    @property
    def path(self) -> tuple[str, ...]:
        """Where programs are looked for in the box."""
        first = tuple(expand_home(entry.path, self.home) for entry in self.settings.path)
        if not self.packages:
            return (*first, *self.base.path)
        from claudebox.features.nix.packages import program_directories

        return (*first, *program_directories(self.host.tree, self.packages), *self.base.path)

    @property
    def shares_login(self) -> bool:
        return self.settings.auth == PASSTHROUGH


def survey(host: Host, request: Request, settings: Settings) -> Ground:
    tree, environ, home = host.tree, host.environ, host.person.home
    places = _check_places(host)
    bwrap = helpers.choose_bwrap(tree, settings.bwrap, environ.get("PATH", ""), host.cwd, *agents_places(host))
    repository = find_repository(tree, host.cwd)
    person = system.box_person(host.person)
    state = State(home)
    instance = state.instance(canonical_root(host.cwd, repository))
    claude = claude_home.claude_home(state, instance, person, environ)
    places = (*places, *(place for place in _claude_place(tree, claude, host.cwd) if place not in places))
    base = system.find_system(tree, environ.get("PATH", ""))
    install = _find_claude(host, request, settings, places)
    with_login = settings.auth == PASSTHROUGH and install is not None
    trusted = TrustedSource(tree, claude.users, host.cwd, host.person.homes, places, state.directory)
    certificates = system.find_certificates(tree, environ)
    nix = _find_nix(host, settings, base, instance)
    if nix is not None and nix.mode == DAEMON:  # otherwise no mount shows it, be it one of /nix
        places = tuple(place for place in places if place.path != NIX_SOCKETS)
    return Ground(
        host=host,
        request=request,
        settings=settings,
        person=person,
        as_root=host.person.uid == 0,
        bwrap=bwrap,
        places=places,
        base=base,
        repository=repository,
        identity=git.find_identity(tree, environ, home, repository.git_dir),
        certificates=certificates,
        install=install,
        claude=claude,
        trusted=trusted,
        login=claude_home.find_login(trusted, claude) if with_login else None,
        broker=_find_broker(host, settings, trusted, claude, person, certificates) if install is not None else None,
        nix=nix,
        packages=_find_packages(host, settings, nix),
    )


def _find_broker(
    host: Host,
    settings: Settings,
    trusted: TrustedSource,
    claude: claude_home.ClaudeHome,
    person: Person,
    certificates: str,
) -> Broker | None:
    if settings.auth != BROKER:
        return None
    from claudebox.features.broker.decide import plan_broker

    return plan_broker(host, settings, trusted, claude, person, certificates)


def _find_nix(host: Host, settings: Settings, base: system.System, instance: Instance) -> Nix | None:
    if settings.nix.path in (AUTO, OFF) and not host.tree.is_dir(system.NIX_STORE):
        return None
    from claudebox.features.nix.decide import plan_nix

    return plan_nix(host, settings, instance, is_nix_host=base.is_nix)


def _find_packages(host: Host, settings: Settings, nix: Nix | None) -> tuple[Package, ...]:
    if not settings.packages:
        return ()
    from claudebox.features.nix.packages import plan_packages

    return plan_packages(host, settings, nix)


def _claude_place(tree: Tree, claude: claude_home.ClaudeHome, project: str) -> list[SecretPlace]:
    """The user's own Claude directory, wherever CLAUDE_CONFIG_DIR says it is: a place that stays outside."""
    real = tree.resolve(claude.users) or claude.users
    if is_inside(real, project) or is_inside(claude.users, project) or is_inside(project, real):
        raise Problem(f"{claude.users}, Claude's own directory, and the project are one in the other", "cd elsewhere")
    return [SecretPlace(real, "Claude's login and the history of all projects", tree.exists(real))]


def _check_places(host: Host) -> tuple[SecretPlace, ...]:
    """The secret places, once home and project are known to be usable."""
    home, homes = host.person.home, host.person.homes
    if home == "/" or ":" in home or not home.isprintable():
        raise Problem(f"HOME is {home!r}, which cannot be a home in the box", "export HOME=/path/to/your/home")
    places = secret_places(host.tree, homes)
    check_project(host.cwd, homes, places)
    return places


def _find_claude(
    host: Host, request: Request, settings: Settings, places: tuple[SecretPlace, ...]
) -> ClaudeInstall | None:
    """A command or a shell gets claude too if it is there; without it, only claude itself cannot start."""
    agents = (host.cwd, State(host.person.home).instances)
    try:
        found = programs.choose_claude(host.tree, settings.claude, host.environ.get("PATH", ""), host.cwd, agents)
        programs.check_claude_files(found, host.person.homes, places)
        return found
    except Problem:
        if request.run is None and not request.shell:
            raise
        return None


def agents_places(host: Host) -> tuple[tuple[str, ...], str]:
    """Where agents can write: this project and claudebox's own state, which tells of other projects."""
    state = State(host.person.home).directory
    return (host.cwd, state), state
