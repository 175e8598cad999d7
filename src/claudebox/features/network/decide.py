"""Decides about a box that shares the host's network, and which ports make sense. uplink.py decides the rest."""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.host.tree import Tree
from claudebox.model import RO, Mount, Network, Origin, Port, Uplink
from claudebox.settings import Settings
from claudebox.settings.table import ALLOWLIST, FULL, HOST_PORTS, INET, NETWORK, NO_NETWORK, PUBLISH

RESOLVER = Origin.of_rule("resolver", "name servers")
MEANING = {
    FULL: "the host's network: internet, LAN, VPNs and this host's localhost",
    INET: "the internet alone: no LAN, no VPN, nothing of this host",
    ALLOWLIST: "the hosts in a list, by name: nothing else, and no DNS for other names",
    NO_NETWORK: "nothing but the box's own localhost",
}


def decide(facts: Facts, _: Draft) -> Contribution:
    check_ports(facts.settings)
    network = plan_network(facts.settings, None)
    return Contribution(mounts=tuple(resolver_mounts(facts.tree)), network=network)


def check_ports(settings: Settings) -> None:
    """Raise a Problem if the ports that are asked for have no meaning, or lead to two places or in a circle."""
    seen: dict[int, Port] = {}
    for port in settings[PUBLISH]:
        first = seen.setdefault(port.host, port)
        if first.box != port.box:
            raise Problem(
                f"{port.origin.shown}: port {port.host} of the host already leads to port {first.box} of the box "
                f"({first.origin.shown})",
                "choose another",
            )
    if settings[NETWORK].text == FULL:
        _refuse_with_hosts_network(settings)
    # A port of the box that leads to the host cannot lead back: one connection would open thousands.
    taken = {port.box for port in settings[HOST_PORTS]}
    for port in settings[PUBLISH]:
        if port.box in taken:
            raise Problem(
                f"port {port.box} of the box is named by --publish and by --host-port: it is either a server in the "
                "box or one of this host",
                "choose one of the two",
            )


def _refuse_with_hosts_network(settings: Settings) -> None:
    """Say that nothing has to be joined where both have the same ports, and what would give the box its own."""
    for port in settings[PUBLISH]:
        spec = str(port.host) if port.host == port.box else f"{port.host}:{port.box}"
        raise Problem(
            f"{port.origin.shown}: the box has this host's own network, so a server in it is on this host already: "
            f"localhost:{port.box}",
            f"leave it out, and open localhost:{port.box}\n"
            f"      or give the box a network of its own: --network inet --publish {spec}",
        )
    for port in settings[HOST_PORTS]:
        raise Problem(
            f"{port.origin.shown}: the box has this host's own network, and reaches localhost:{port.host} already",
            f"leave it out\n      or give the box a network of its own: --network inet --host-port {port.host}",
        )


def plan_network(settings: Settings, uplink: Uplink | None) -> Network:
    tier = settings[NETWORK].text
    return Network(tier, MEANING[tier], settings[NETWORK].origin, settings[PUBLISH], settings[HOST_PORTS], uplink)


def resolver_mounts(tree: Tree) -> list[Mount]:
    """Show the file at the end of the chain of symlinks that /etc/resolv.conf often is."""
    real = tree.resolve("/etc/resolv.conf")
    return [Mount(RO, "/etc/resolv.conf", RESOLVER, source=real)] if real is not None else []
