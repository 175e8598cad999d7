"""The one function that turns settings and facts into a Plan."""

from __future__ import annotations

from claudebox.arguments import Request
from claudebox.host import Host
from claudebox.host.repository import find_repository
from claudebox.model import RW, TMPFS, Finding, Mount, Network, Origin, Outside, Plan, Program
from claudebox.problem import Problem
from claudebox.rules import environment, git, programs, seccomp, system, wishes
from claudebox.rules.mounts import arrange
from claudebox.rules.places import check_project
from claudebox.rules.secrets import secret_places, secret_value
from claudebox.settings import Settings

FULL = Network("full", "the host's network: internet, LAN, VPNs and this host's localhost", Origin("default"))

ROOT_FINDING = Finding(
    Finding.NOTE,
    "root",
    "what the agent makes in the project belongs to root on the host; an ordinary account is safer",
)


def make_plan(host: Host, request: Request, settings: Settings) -> Plan:
    """Decide everything about the box. Raises a Problem rather than weaken a promise."""
    tree, environ, project = host.tree, host.environ, host.cwd
    search_path = environ.get("PATH", "")
    person = system.box_person(host.person)
    as_root = host.person.uid == 0
    home = person.home
    _check_home(home)
    places = secret_places(tree, home)
    check_project(project, home, places)
    bwrap = programs.choose_bwrap(tree, settings.bwrap, search_path, project, project)

    base = system.find_system(tree, search_path)
    repository = find_repository(tree, project)
    identity = git.find_identity(tree, environ, home, repository.git_dir)
    certificates = system.find_certificates(tree, environ)
    program, program_mounts = _program(host, request, settings, base)

    mounts = [
        Mount(TMPFS, "/", system.BOX),
        *system.empty_places(person),
        *system.home_links(tree, environ.get("HOME", "")),
        *system.system_mounts(tree, base),
        *system.etc_mounts(tree, as_root),
        *system.resolver_mounts(tree),
        *system.identity_files(tree, person, base.shell, host.hostname),
    ]
    mounts += program_mounts
    mounts += git.repository_mounts(repository, home, places)
    mounts += [
        git.config_file(identity, home, project, repository),
        Mount(RW, project, Origin("project", "what the agent works on"), source=project),
    ]
    mounts += system.certificate_mounts(certificates, mounts)
    wished = wishes.settle(tree, wishes.wished_mounts(tree, settings.mounts, project, home, places), mounts)
    mounts += wished
    hides = wishes.hides_inside(tree, mounts, places)
    if as_root:
        hides += system.root_only_places(tree)

    path = (f"{home}/.local/bin", *base.path) if program_mounts else base.path
    variables = environment.plan_environment(environ, person, path, base.shell, certificates, settings.env)
    return Plan(
        project=project,
        bwrap=bwrap,
        person=person,
        hostname=system.HOSTNAME,
        mounts=arrange(mounts, hides),
        environment=variables,
        network=FULL,
        program=program,
        signal_shim=programs.signal_shim(tree, base, host.python),
        seccomp=seccomp.keystroke_filter(host.machine),
        drop_groups=as_root,
        findings=(
            *environment.environment_findings(variables, settings.env, environ),
            *wishes.wish_findings(wished),
            *_argument_findings(program),
            *git.git_findings(repository, identity, home, places),
            *([ROOT_FINDING] if as_root else []),
        ),
        outside=Outside(
            variables=len(environ.keys() - {variable.name for variable in variables}),
            places=tuple(place for place in places if place.exists),
        ),
    )


def _check_home(home: str) -> None:
    if home == "/" or ":" in home or not home.isprintable():
        raise Problem(f"HOME is {home!r}, which cannot be a home in the box", "export HOME=/path/to/your/home")


def _program(host: Host, request: Request, settings: Settings, base: system.System) -> tuple[Program, list[Mount]]:
    """What runs, and the mounts that it needs. A command or shell gets claude too if it is there."""
    tree, search_path, project = host.tree, host.environ.get("PATH", ""), host.cwd
    home = host.person.home
    try:
        install = programs.choose_claude(tree, settings.claude, search_path, project, project)
    except Problem:
        if request.run is None and not request.shell:
            raise
        install = None
    mounts = programs.claude_mounts(install, home, project) if install else []
    if request.run is not None:
        return programs.run_program(request.run), mounts
    if request.shell or install is None:
        return programs.shell_program(base), mounts
    return programs.claude_program(install, request.claude, home), mounts


def _argument_findings(program: Program) -> list[Finding]:
    return [
        Finding(Finding.SECRET, f"argument {number}", f"looks secret ({reason})")
        for number, argument in enumerate(program.argv)
        if (reason := secret_value(argument))
    ]
