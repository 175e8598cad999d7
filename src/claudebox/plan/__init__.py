"""The one function that turns settings and facts into a Plan."""

from __future__ import annotations

from claudebox import tools as helpers
from claudebox.features.claude import home as claude_home
from claudebox.features.claude import program as programs
from claudebox.features.environment import decide as environment
from claudebox.features.git import decide as git
from claudebox.features.kernel import decide as kernel
from claudebox.features.kernel import seccomp
from claudebox.features.network.decide import (
    needs_uplink,
    plan_network,
)
from claudebox.features.system import decide as system
from claudebox.features.wishes import decide as wishes
from claudebox.host import Host
from claudebox.model import (
    Broker,
    EnvVar,
    Finding,
    Limits,
    Mount,
    Network,
    Outside,
    Plan,
    Program,
)
from claudebox.mounts import identified
from claudebox.paths import is_inside
from claudebox.plan.ground import (
    Ground,
    agents_places,
    survey,
)
from claudebox.plan.kept import (
    find_state,
    plan_seed,
)
from claudebox.plan.layout import plan_layout
from claudebox.plan.project import (
    find_secrets,
    look_through,
    walk_findings,
)
from claudebox.secret_values import secret_value
from claudebox.settings.values import Settings
from claudebox.settings.words import Request
from claudebox.state import STATE

ROOT_FINDING = Finding(
    Finding.NOTE, "root", "what the agent makes belongs to root on the host, too; an ordinary account is safer"
)

SELF_FINDING = Finding(
    Finding.RISK, "claudebox", "runs from this very project: the agent can change what you start next time"
)


def make_plan(host: Host, request: Request, settings: Settings) -> Plan:
    """Decide everything about the box. Raises a Problem rather than weaken a promise."""
    if request.run is None and not request.shell:
        request = request.replace(claude=(*(word.path for word in settings.claude_args), *request.claude))
    ground = survey(host, request, settings)
    plan = _plan_box(ground)
    if ground.nix is not None and ground.nix.directory:
        from claudebox.features.nix.closure import with_closure

        return with_closure(plan, host, settings.hides)
    return plan


def _plan_box(ground: Ground) -> Plan:
    host, settings = ground.host, ground.settings
    program = _program(ground)
    network = _network(ground)
    entries, state = look_through(ground), find_state(ground)
    found = find_secrets(ground, entries, state)
    layout = plan_layout(ground, network, entries, found)
    variables = _variables(ground)
    seed = plan_seed(ground, layout)
    alone = not kernel.keeps_namespaces_from_us(host.tree, host.person.uid)
    userns = kernel.allows_userns(settings.userns, as_root=ground.as_root)
    return Plan(
        project=ground.project,
        bwrap=ground.bwrap,
        person=ground.person,
        hostname=system.HOSTNAME,
        mounts=identified(host.tree, layout.mounts, f"{host.person.home}/{STATE}"),
        environment=variables,
        network=network,
        program=program,
        signal_shim=(*programs.signal_shim(host.tree, host.python), *_forwarder(ground)),
        seccomp=seccomp.call_filter(host.machine, with_namespaces=userns),
        drop_groups=ground.as_root,
        disable_userns=not userns and kernel.can_disable_userns(host.tree, ground.bwrap),
        findings=(
            *settings.findings,
            *_findings(ground, program, variables, layout.wished),
            *layout.findings,
            *_network_findings(ground, network, variables, program),
            *_package_findings(ground),
            *seed.findings,
            *ground.trusted.findings(),
            *([] if alone else [kernel.LIFE_FINDING]),
            *walk_findings(ground, entries),
            *(found.findings if found else ()),
        ),
        outside=_outside(ground, variables),
        preparations=(*settings.preparations, *seed.preparations, *(found.preparations if found else ())),
        packages=ground.packages,
        policy=host.tree.text(f"{claude_home.MANAGED}/CLAUDE.md") or "",
        login=ground.login,
        broker=_broker(ground),
        nix=ground.nix,
        alone=alone,
        state=state,
        guard=layout.guard,
        limits=_limits(ground),
    )


def _limits(ground: Ground) -> Limits | None:
    settings = ground.settings
    if not (settings.memory or settings.pids or settings.cpu):
        return None
    from claudebox.features.limits.decide import plan_limits

    return plan_limits(ground.host.tree, settings, ground.host.person.uid)


def _outside(ground: Ground, variables: tuple[EnvVar, ...]) -> Outside:
    return Outside(
        variables=len(ground.host.environ.keys() - {variable.name for variable in variables}),
        places=tuple(place for place in ground.places if place.exists),
    )


def _program(ground: Ground) -> Program:
    if ground.request.run is not None:
        return programs.run_program(ground.request.run)
    if ground.install is None or ground.request.shell:
        return programs.shell_program(ground.base)
    return programs.claude_program(ground.install, ground.request.claude, ground.home)


def _network(ground: Ground) -> Network:
    """The host's neighbourhood is looked at only for a box that must not reach it."""
    settings, host = ground.settings, ground.host
    if not needs_uplink(settings):
        return plan_network(settings, None)
    from claudebox.features.network.uplink import plan_uplink

    named = {"pasta": settings.pasta, "nft": settings.nft}
    agents, state = agents_places(host)
    pasta, nft = helpers.choose_uplink(host.tree, named, host.environ.get("PATH", ""), host.cwd, agents, state)
    near, uid = host.neighbourhood(host.tree), host.person.uid
    return plan_network(settings, plan_uplink(settings, near, host.tree, uid, pasta, nft))


def _network_findings(
    ground: Ground, network: Network, variables: tuple[EnvVar, ...], program: Program
) -> list[Finding]:
    if network.is_hosts:
        return []
    from claudebox.features.network.uplink import network_findings

    # With a broker, claude needs no network.
    others = tuple(variable for variable in variables if variable.origin.rule != environment.BROKER)
    return network_findings(network, others, is_claude=program.title == "claude" and ground.broker is None)


def _package_findings(ground: Ground) -> list[Finding]:
    if not ground.packages:
        return []
    from claudebox.features.nix.packages import package_findings

    return package_findings(ground.host.tree, ground.packages)


def _variables(ground: Ground) -> tuple[EnvVar, ...]:
    claude_path = (f"{ground.home}/.local/bin",) if ground.install else ()
    return environment.plan_environment(
        environ=ground.host.environ,
        person=ground.person,
        path=(*claude_path, *ground.path, *_nix_path(ground)),
        shell=ground.base.shell,
        certificates=ground.certificates,
        nix=_nix_variables(ground),
        claude=_claude_variables(ground),
        wishes=ground.settings.env,
        dropped=ground.settings.dropped,
        kept_out=_brokers_secrets(ground),
    )


def _claude_variables(ground: Ground) -> list[EnvVar]:
    if ground.install is None:
        return []
    variables = claude_home.home_variables(ground.claude, with_login=ground.shares_login)
    if ground.broker is None:
        return variables
    from claudebox.features.broker.decide import broker_variables

    return variables + broker_variables(ground.broker, ground.host.tree)


def _forwarder(ground: Ground) -> tuple[str, ...]:
    if ground.broker is None or ground.install is None:
        return ()
    from claudebox.features.broker.decide import SOCKET
    from claudebox.features.broker.forwarder import forwarder

    return forwarder(ground.host, ground.install, f"{ground.broker.place}/{SOCKET}")


def _broker(ground: Ground) -> Broker | None:
    if ground.broker is None or ground.install is None:
        return ground.broker
    from claudebox.features.broker.trial import needed_trial

    return ground.broker.replace(trial=needed_trial(ground.host, ground.install))


def _brokers_secrets(ground: Ground) -> dict[str, str]:
    if ground.broker is None:
        return {}
    from claudebox.features.broker.decide import kept_out

    return kept_out(ground.broker, ground.host, ground.settings.env)


def _nix_path(ground: Ground) -> tuple[str, ...]:
    if ground.nix is None:
        return ()
    from claudebox.features.nix.decide import nix_path

    return nix_path(ground.host, ground.nix, ground.base.path)


def _nix_variables(ground: Ground) -> list[EnvVar]:
    if ground.nix is None:
        return []
    from claudebox.features.nix.decide import nix_variables

    return nix_variables(ground.nix)


def _nix_findings(ground: Ground) -> list[Finding]:
    if ground.nix is None:
        return []
    from claudebox.features.nix.decide import nix_findings

    return nix_findings(ground.nix)


def _findings(
    ground: Ground, program: Program, variables: tuple[EnvVar, ...], wished: list[Mount]
) -> tuple[Finding, ...]:
    return (
        *environment.environment_findings(variables, ground.settings.env, ground.host.environ),
        *wishes.wish_findings(ground.host.tree, wished),
        *wishes.hide_findings(ground.host.tree, ground.settings.hides, ground.project, ground.home),
        *kernel.userns_findings(ground.settings.userns),
        *kernel.limit_findings(ground.settings),
        *_argument_findings(program),
        *git.git_findings(ground.repository, ground.identity, ground.person.homes, ground.places),
        *_nix_findings(ground),
        *([ROOT_FINDING] if ground.as_root else []),
        *([SELF_FINDING] if is_inside(ground.host.own_source, ground.project) else []),
    )


def _argument_findings(program: Program) -> list[Finding]:
    return [
        Finding(Finding.SECRET, f"argument {number}", f"looks secret ({reason})")
        for number, argument in enumerate(program.argv)
        if (reason := secret_value(argument))
    ]
