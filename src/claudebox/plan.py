"""The one function that turns settings and facts into a Plan."""

from __future__ import annotations

from claudebox.arguments import Request
from claudebox.host import Host
from claudebox.host.claude import ClaudeInstall
from claudebox.host.repository import Repository, find_repository
from claudebox.host.tree import Tree
from claudebox.model import (
    COVER,
    RW,
    TMPFS,
    EnvVar,
    Finding,
    Login,
    Mount,
    Network,
    Origin,
    Outside,
    Person,
    Plan,
    Preparation,
    Program,
    SecretPlace,
    State,
)
from claudebox.paths import expand_home, is_inside
from claudebox.problem import Problem
from claudebox.record import Record
from claudebox.rules import claude_home, environment, git, helpers, programs, seccomp, system, wishes
from claudebox.rules.claude_state import Seed, seed_state
from claudebox.rules.instance import STATE, canonical_root, instance_directory, instance_name
from claudebox.rules.mounts import arrange
from claudebox.rules.network import needs_uplink, plan_network
from claudebox.rules.places import check_project
from claudebox.rules.secrets import secret_places, secret_value
from claudebox.rules.trusted import TrustedSource
from claudebox.settings import PASSTHROUGH, PROJECT_FILE, Settings

PROJECT = Origin("project", "what the agent works on")
SETTINGS_FILE = Origin("project", "read-only: its settings")
ROOT_FINDING = Finding(
    Finding.NOTE, "root", "what the agent makes belongs to root on the host, too; an ordinary account is safer"
)

SELF_FINDING = Finding(
    Finding.RISK, "claudebox", "runs from this very project: the agent can change what you start next time"
)


class _Ground(Record):
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

    @property
    def home(self) -> str:
        return self.person.home

    @property
    def project(self) -> str:
        return self.host.cwd


def make_plan(host: Host, request: Request, settings: Settings) -> Plan:
    """Decide everything about the box. Raises a Problem rather than weaken a promise."""
    if settings.packages:
        raise Problem(f"{settings.packages[0].origin.rule}: packages need Nix, which this version cannot use yet")
    if request.run is None and not request.shell:
        request = request.replace(claude=(*(word.path for word in settings.claude_args), *request.claude))
    ground = _survey(host, request, settings)
    program = _program(ground)
    network = _network(ground)
    layout = _layout(ground, network)
    variables = _variables(ground)
    seed = _seed(ground, layout)
    return Plan(
        project=ground.project,
        bwrap=ground.bwrap,
        person=ground.person,
        hostname=system.HOSTNAME,
        mounts=layout.mounts,
        environment=variables,
        network=network,
        program=program,
        signal_shim=programs.signal_shim(host.tree, host.python),
        seccomp=seccomp.call_filter(host.machine),
        drop_groups=ground.as_root,
        findings=(
            *settings.findings,
            *_findings(ground, program, variables, layout.wished),
            *_network_findings(network, variables, program),
            *seed.findings,
            *ground.trusted.findings(),
        ),
        outside=Outside(
            variables=len(host.environ.keys() - {variable.name for variable in variables}),
            places=tuple(place for place in ground.places if place.exists),
        ),
        preparations=(*settings.preparations, *seed.preparations),
        policy=host.tree.text(f"{claude_home.MANAGED}/CLAUDE.md") or "",
        login=ground.login,
        state=_state(ground),
    )


def _survey(host: Host, request: Request, settings: Settings) -> _Ground:
    tree, environ, home = host.tree, host.environ, host.person.home
    places = _check_places(host)
    bwrap = helpers.choose_bwrap(tree, settings.bwrap, environ.get("PATH", ""), host.cwd, *_agents_places(host))
    repository = find_repository(tree, host.cwd)
    person = system.box_person(host.person)
    instance = instance_directory(home, canonical_root(host.cwd, repository))
    claude = claude_home.claude_home(instance, home, person, environ)
    places = (*places, *(place for place in _claude_place(tree, claude, host.cwd) if place not in places))
    base = system.find_system(tree, environ.get("PATH", ""))
    install = _find_claude(host, request, settings, places)
    with_login = settings.auth == PASSTHROUGH and install is not None
    trusted = TrustedSource(tree, claude.users, host.cwd, host.person.homes, places, f"{home}/{STATE}")
    return _Ground(
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
        certificates=system.find_certificates(tree, environ),
        install=install,
        claude=claude,
        trusted=trusted,
        login=claude_home.find_login(trusted, claude, home) if with_login else None,
    )


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
    agents = (host.cwd, f"{host.person.home}/{STATE}/instances")
    try:
        found = programs.choose_claude(host.tree, settings.claude, host.environ.get("PATH", ""), host.cwd, agents)
        programs.check_claude_files(found, host.person.homes, places)
        return found
    except Problem:
        if request.run is None and not request.shell:
            raise
        return None


def _program(ground: _Ground) -> Program:
    if ground.request.run is not None:
        return programs.run_program(ground.request.run)
    if ground.install is None or ground.request.shell:
        return programs.shell_program(ground.base)
    return programs.claude_program(ground.install, ground.request.claude, ground.home)


class _Layout(Record):
    """Everything at every path of the box."""

    mounts: tuple[Mount, ...]
    wished: list[Mount]  # those of them that somebody asked for
    preparations: tuple[Preparation, ...]  # without which they cannot be made


def _network(ground: _Ground) -> Network:
    """The host's neighbourhood is looked at only for a box that must not reach it."""
    settings, host = ground.settings, ground.host
    if not needs_uplink(settings):
        return plan_network(settings, None)
    from claudebox.rules.uplink import plan_uplink

    named = {"pasta": settings.pasta, "nft": settings.nft}
    agents, state = _agents_places(host)
    pasta, nft = helpers.choose_uplink(host.tree, named, host.environ.get("PATH", ""), host.cwd, agents, state)
    return plan_network(settings, plan_uplink(settings, host.neighbourhood(host.tree), host.tree, pasta, nft))


def _resolver_mounts(tree: Tree, network: Network) -> list[Mount]:
    if network.is_hosts:
        return system.resolver_mounts(tree)
    from claudebox.rules.uplink import resolver_mounts

    return resolver_mounts(network.uplink)


def _network_findings(network: Network, variables: tuple[EnvVar, ...], program: Program) -> list[Finding]:
    if network.is_hosts:
        return []
    from claudebox.rules.uplink import network_findings

    return network_findings(network, variables, is_claude=program.title == "claude")


def _agents_places(host: Host) -> tuple[tuple[str, ...], str]:
    """Where agents can write: this project and claudebox's own state, which tells of other projects."""
    state = f"{host.person.home}/{STATE}"
    return (host.cwd, state), state


def _layout(ground: _Ground, network: Network) -> _Layout:
    tree, home, project, places = ground.host.tree, ground.home, ground.project, ground.places
    mounts = [
        Mount(TMPFS, "/", system.BOX),
        *system.empty_places(ground.person),
        *system.home_links(tree, ground.host.environ.get("HOME", "")),
        *system.system_mounts(tree, ground.base),
        *system.etc_mounts(tree, ground.as_root),
        *_resolver_mounts(tree, network),
        *system.identity_files(tree, ground.person, ground.base.shell, ground.host.hostname),
        *(programs.claude_mounts(ground.install, home, project) if ground.install else ()),
        *_home_mounts(ground),
        *git.repository_mounts(ground.repository, ground.person.homes, places),
        git.config_file(ground.identity, home, project, ground.repository),
        Mount(RW, project, PROJECT, source=project),
        *_project_file(tree, project),
    ]
    mounts += system.certificate_mounts(ground.certificates, mounts)
    asked = ground.settings.mounts
    preparations: tuple[Preparation, ...] = ()
    if ground.request.claude:
        from claudebox.rules.claude_options import named_paths

        named = named_paths(tree, ground.request.claude, project, home, mounts)
        asked, preparations = (*asked, *named.wishes), named.preparations
    wished = wishes.wished_mounts(tree, asked, project, ground.person.homes, places)
    wished = wishes.settle(tree, wished, mounts)
    mounts += wished
    hides = wishes.hides_inside(tree, mounts, places)
    hides += wishes.hides_asked_for(tree, ground.settings.hides, project, home, mounts)
    if ground.as_root:
        mounts += system.kernel_masks(tree)
        hides += system.root_only_hides(tree, mounts)
    return _Layout(arrange(mounts, hides), wished, preparations)


def _project_file(tree: Tree, project: str) -> list[Mount]:
    """What it says was judged before the start: the agent shall not change it meanwhile."""
    path = f"{project}/{PROJECT_FILE}"
    content = tree.read_plain(path)
    return [] if content is None else [Mount(COVER, path, SETTINGS_FILE, content=content, mode=0o444)]


def _home_mounts(ground: _Ground) -> list[Mount]:
    if ground.install is None:
        return []
    tree, claude = ground.host.tree, ground.claude
    mounts = [*claude_home.home_mounts(claude, ground.trusted), *claude_home.managed_mounts(tree, claude)]
    return mounts + (claude_home.auth_mounts(claude) if _shares_login(ground) else [])


def _shares_login(ground: _Ground) -> bool:
    return ground.settings.auth == PASSTHROUGH


def _seed(ground: _Ground, layout: _Layout) -> Seed:
    """What has to be written before the box starts."""
    if ground.install is None:
        return Seed((*layout.preparations, *_registration_without_claude(ground, layout)), ())
    tree, claude, home = ground.host.tree, ground.claude, ground.host.person.home
    claude_home.check_state(tree, claude, ground.host.person.uid)
    root = canonical_root(ground.project, ground.repository)
    directories = [
        *claude_home.home_preparations(claude, root, layout.mounts, with_login=_shares_login(ground)),
        *_registration(ground, layout),
    ]

    def can_run(command: str) -> bool:
        from claudebox.rules.runnable import Runnable

        return Runnable(tree, layout.mounts, ground.base.path, home).can_run(command)

    key = ground.host.environ.get("ANTHROPIC_API_KEY", "")
    seed = seed_state(ground.trusted, claude, home, ground.project, key, can_run)
    return seed.replace(preparations=(*layout.preparations, *directories, *seed.preparations))


def _state(ground: _Ground) -> State | None:
    """None where nothing can be kept, which only a box without claude can do without."""
    try:
        claude_home.check_state(ground.host.tree, ground.claude, ground.host.person.uid)
    except Problem:
        return None
    return State(ground.claude.instance, canonical_root(ground.project, ground.repository))


def _registration_without_claude(ground: _Ground, layout: _Layout) -> list[Preparation]:
    """Only where claudebox keeps anything at all: without files of its own, there is no symlink of theirs to trust."""
    state = _state(ground)
    if state is None or ground.host.tree.lstat(f"{ground.host.person.home}/{STATE}") is None:
        return []
    root = state.root.encode(errors="surrogateescape") + b"\n"
    return [*_registration(ground, layout), Preparation(Preparation.FILE, f"{state.directory}/project", root)]


def _registration(ground: _Ground, layout: _Layout) -> list[Preparation]:
    """Note what this box can write, so that later ones trust no symlink in there."""
    writable = [ground.project, *(wish.source for wish in layout.wished if wish.kind == RW)]
    directory = ground.claude.instance
    return [Preparation(Preparation.DIRECTORY, directory)] + [
        Preparation(
            Preparation.FILE,
            f"{directory}/writable-{instance_name(path)}",
            path.encode(errors="surrogateescape") + b"\n",
        )
        for path in writable
    ]


def _variables(ground: _Ground) -> tuple[EnvVar, ...]:
    claude_path = (f"{ground.home}/.local/bin",) if ground.install else ()
    first = tuple(expand_home(entry.path, ground.home) for entry in ground.settings.path)
    return environment.plan_environment(
        environ=ground.host.environ,
        person=ground.person,
        path=(*claude_path, *first, *ground.base.path),
        shell=ground.base.shell,
        certificates=ground.certificates,
        claude=claude_home.home_variables(ground.claude, with_login=_shares_login(ground)) if ground.install else [],
        wishes=ground.settings.env,
        dropped=ground.settings.dropped,
    )


def _findings(
    ground: _Ground, program: Program, variables: tuple[EnvVar, ...], wished: list[Mount]
) -> tuple[Finding, ...]:
    return (
        *environment.environment_findings(variables, ground.settings.env, ground.host.environ),
        *wishes.wish_findings(ground.host.tree, wished),
        *wishes.hide_findings(ground.host.tree, ground.settings.hides, ground.project, ground.home),
        *_argument_findings(program),
        *git.git_findings(ground.repository, ground.identity, ground.person.homes, ground.places),
        *([ROOT_FINDING] if ground.as_root else []),
        *([SELF_FINDING] if is_inside(ground.host.own_source, ground.project) else []),
    )


def _argument_findings(program: Program) -> list[Finding]:
    return [
        Finding(Finding.SECRET, f"argument {number}", f"looks secret ({reason})")
        for number, argument in enumerate(program.argv)
        if (reason := secret_value(argument))
    ]
