"""Which networks the box reaches: the host's own, the internet alone, or none."""

from __future__ import annotations

from claudebox.model import Network, Uplink
from claudebox.problem import Problem
from claudebox.settings import FULL, INET, NO_NETWORK, Settings

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
            f"{port.origin.rule} has no meaning with the host's own network: the box reaches every port of this host",
            "choose a network of its own for the box: --network inet (or none)",
        )
    return settings.network.tier == INET or has_ports


def plan_network(settings: Settings, uplink: Uplink | None) -> Network:
    tier = settings.network.tier
    return Network(tier, MEANING[tier], settings.network.origin, settings.publish, settings.host_ports, uplink)
