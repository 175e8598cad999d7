"""Which networks the box reaches: the host's own, the internet alone, or none."""

from __future__ import annotations

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.host.tree import Tree
from claudebox.model import RO, Mount, Network, Origin, Plan, Step, Uplink
from claudebox.problem import Problem
from claudebox.settings.table import FULL, INET, NO_NETWORK
from claudebox.settings.values import Settings
from claudebox.tools import choose_uplink

MEANING = {
    FULL: "the host's network: internet, LAN, VPNs and this host's localhost",
    INET: "the internet alone: no LAN, no VPN, nothing of this host",
    NO_NETWORK: "nothing but the box's own localhost",
}


def needs_uplink(settings: Settings) -> bool:
    """Whether something has to connect the box with the outside."""
    has_ports = bool(settings.publish or settings.host_ports)
    if settings.network.tier == FULL and has_ports:
        port = (*settings.publish, *settings.host_ports)[0]
        raise Problem(
            f"{port.origin.shown} has no meaning with the host's own network: the box reaches every port of this host",
            "choose a network of its own for the box: --network inet (or none)",
        )
    _check_ports(settings)
    return settings.network.tier == INET or has_ports


def _check_ports(settings: Settings) -> None:
    """A port of the box that leads to the host cannot lead back: one connection would open thousands."""
    taken = {port.box for port in settings.host_ports}
    for port in settings.publish:
        if port.box in taken:
            raise Problem(
                f"port {port.box} of the box is named by --publish and by --host-port: it is either a server in the "
                "box or one of this host",
                "choose one of the two",
            )


def plan_network(settings: Settings, uplink: Uplink | None) -> Network:
    tier = settings.network.tier
    return Network(tier, MEANING[tier], settings.network.origin, settings.publish, settings.host_ports, uplink)


RESOLVER = Origin.of_rule("resolver", "name servers")


def resolver_mounts(tree: Tree) -> list[Mount]:
    """The file at the end of the chain of symlinks that /etc/resolv.conf often is."""
    real = tree.resolve("/etc/resolv.conf")
    return [Mount(RO, "/etc/resolv.conf", RESOLVER, source=real)] if real is not None else []


def decide(facts: Facts, _: Draft) -> Contribution:
    settings = facts.settings
    if settings.network.tier == FULL and not needs_uplink(settings):
        network = plan_network(settings, None)
        return Contribution(mounts=tuple(resolver_mounts(facts.tree)), decided=(("network", network),))
    return _own_network(facts)


def _own_network(facts: Facts) -> Contribution:
    """The host's neighbourhood is looked at only for a box that must not reach it."""
    if not needs_uplink(facts.settings):
        return Contribution(decided=(("network", plan_network(facts.settings, None)),))
    from claudebox.features.network.uplink import own_resolver_mounts, plan_uplink

    host, settings = facts.host, facts.settings
    named = {"pasta": settings.pasta, "nft": settings.nft}
    pasta, nft = choose_uplink(host.tree, named, host.environ.get("PATH", ""), host.cwd, facts.reach)
    uplink = plan_uplink(settings, host.neighbourhood(host.tree), host.tree, host.person.uid, pasta, nft)
    return Contribution(
        mounts=tuple(own_resolver_mounts(uplink)),
        decided=(("network", plan_network(settings, uplink)),),
        steps=(Step(Step.INSIDE, "network"),),
    )


def complete(_: Facts, __: Draft, plan: Plan) -> Plan:
    """Say what will not work as it does on the host."""
    if plan.network.is_hosts:
        return plan
    from claudebox.features.network.uplink import network_findings

    # With a broker, claude needs no network.
    is_claude = plan.program.title == "claude" and plan.broker is None
    findings = network_findings(plan.network, plan.environment, is_claude=is_claude)
    return plan.replace(findings=(*plan.findings, *findings))
