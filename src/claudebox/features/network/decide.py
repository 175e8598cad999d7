"""Which networks the box reaches: the host's own, the internet alone, or none."""

from __future__ import annotations

from claudebox.model import (
    Network,
    Uplink,
)
from claudebox.problem import Problem
from claudebox.settings.table import (
    FULL,
    INET,
    NO_NETWORK,
)
from claudebox.settings.values import Settings

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
