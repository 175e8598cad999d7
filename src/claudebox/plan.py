"""The one function that turns settings and facts into a Plan."""

from __future__ import annotations

from claudebox.arguments import Request
from claudebox.host import Host
from claudebox.host.claude import ClaudeInstall
from claudebox.host.repository import Repository, find_repository
from claudebox.model import (
    RW,
    TMPFS,
    EnvVar,
    Finding,
    Mount,
    Network,
    Origin,
    Outside,
    Person,
    Plan,
    Program,
    SecretPlace,
)
from claudebox.problem import Problem
from claudebox.record import Record
from claudebox.rules import environment, git, programs, seccomp, system, wishes
from claudebox.rules.mounts import arrange
from claudebox.rules.places import check_project
from claudebox.rules.secrets import secret_places, secret_value
from claudebox.settings import Settings

FULL = Network("full", "the host's network: internet, LAN, VPNs and this host's localhost", Origin("default"))
PROJECT = Origin("project", "what the agent works on")
ROOT_FINDING = Finding(
    Finding.NOTE, "root", "what the agent makes belongs to root on the host, too; an ordinary account is safer"
)


class _Ground(Record):
    """What several families of rules need to know."""

    host: Host
    request: Request
    settings: Settings
    person: Person  # who the agent is
    as_root: bool
    places: tuple[SecretPlace, ...]
    base: system.System
    repository: Repository
    identity: git.Identity
    certificates: str
    install: ClaudeInstall | None

    @property
    def home(self) -> str:
        return self.person.home

    @property
    def project(self) -> str:
        return self.host.cwd


def make_plan(host: Host, request: Request, settings: Settings) -> Plan:
    """Decide everything about the box. Raises a Problem rather than weaken a promise."""
    search_path = host.environ.get("PATH", "")
    places = _check_places(host)
    bwrap = programs.choose_bwrap(host.tree, settings.bwrap, search_path, host.cwd, host.cwd)
    repository = find_repository(host.tree, host.cwd)
    ground = _Ground(
        host=host,
        request=request,
        settings=settings,
        person=system.box_person(host.person),
        as_root=host.person.uid == 0,
        places=places,
        base=system.find_system(host.tree, search_path),
        repository=repository,
        identity=git.find_identity(host.tree, host.environ, host.person.home, repository.git_dir),
        certificates=system.find_certificates(host.tree, host.environ),
        install=_find_claude(host, request, settings),
    )
    program = _program(ground)
    mounts, wished = _mounts(ground)
    variables = _variables(ground)
    return Plan(
        project=ground.project,
        bwrap=bwrap,
        person=ground.person,
        hostname=system.HOSTNAME,
        mounts=mounts,
        environment=variables,
        network=FULL,
        program=program,
        signal_shim=programs.signal_shim(host.tree, host.python),
        seccomp=seccomp.keystroke_filter(host.machine),
        drop_groups=ground.as_root,
        findings=_findings(ground, program, variables, wished),
        outside=Outside(
            variables=len(host.environ.keys() - {variable.name for variable in variables}),
            places=tuple(place for place in places if place.exists),
        ),
    )


def _check_places(host: Host) -> tuple[SecretPlace, ...]:
    """The secret places, once home and project are known to be usable."""
    home, homes = host.person.home, host.person.homes
    if home == "/" or ":" in home or not home.isprintable():
        raise Problem(f"HOME is {home!r}, which cannot be a home in the box", "export HOME=/path/to/your/home")
    places = secret_places(host.tree, homes)
    check_project(host.cwd, homes, places)
    return places


def _find_claude(host: Host, request: Request, settings: Settings) -> ClaudeInstall | None:
    """A command or a shell gets claude too if it is there; without it, only claude itself cannot start."""
    try:
        return programs.choose_claude(host.tree, settings.claude, host.environ.get("PATH", ""), host.cwd, host.cwd)
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


def _mounts(ground: _Ground) -> tuple[tuple[Mount, ...], list[Mount]]:
    """Everything at every path of the box, and which of it somebody wished for."""
    tree, home, project, places = ground.host.tree, ground.home, ground.project, ground.places
    mounts = [
        Mount(TMPFS, "/", system.BOX),
        *system.empty_places(ground.person),
        *system.home_links(tree, ground.host.environ.get("HOME", "")),
        *system.system_mounts(tree, ground.base),
        *system.etc_mounts(tree, ground.as_root),
        *system.resolver_mounts(tree),
        *system.identity_files(tree, ground.person, ground.base.shell, ground.host.hostname),
        *(programs.claude_mounts(ground.install, home, project) if ground.install else ()),
        *git.repository_mounts(ground.repository, ground.person.homes, places),
        git.config_file(ground.identity, home, project, ground.repository),
        Mount(RW, project, PROJECT, source=project),
    ]
    mounts += system.certificate_mounts(ground.certificates, mounts)
    wished = wishes.wished_mounts(tree, ground.settings.mounts, project, ground.person.homes, places)
    wished = wishes.settle(tree, wished, mounts)
    mounts += wished
    hides = wishes.hides_inside(tree, mounts, places)
    if ground.as_root:
        mounts += system.kernel_masks(tree)
        hides += system.root_only_hides(tree, mounts)
    return arrange(mounts, hides), wished


def _variables(ground: _Ground) -> tuple[EnvVar, ...]:
    claude_path = (f"{ground.home}/.local/bin",) if ground.install else ()
    return environment.plan_environment(
        environ=ground.host.environ,
        person=ground.person,
        path=(*claude_path, *ground.base.path),
        shell=ground.base.shell,
        certificates=ground.certificates,
        wishes=ground.settings.env,
    )


def _findings(
    ground: _Ground, program: Program, variables: tuple[EnvVar, ...], wished: list[Mount]
) -> tuple[Finding, ...]:
    return (
        *environment.environment_findings(variables, ground.settings.env, ground.host.environ),
        *wishes.wish_findings(wished),
        *_argument_findings(program),
        *git.git_findings(ground.repository, ground.identity, ground.person.homes, ground.places),
        *([ROOT_FINDING] if ground.as_root else []),
    )


def _argument_findings(program: Program) -> list[Finding]:
    return [
        Finding(Finding.SECRET, f"argument {number}", f"looks secret ({reason})")
        for number, argument in enumerate(program.argv)
        if (reason := secret_value(argument))
    ]
