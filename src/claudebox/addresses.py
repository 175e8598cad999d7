"""Says of an address whether it is on the internet, or which range keeps a box away from it."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_interface, ip_network

from claudebox.ranges import GLOBAL, NAT64, rejected_ranges

Address = IPv4Address | IPv6Address

# What is not GLOBAL is rejected as a whole. These are names for its best known parts.
NOT_GLOBAL = (("fc00::/7", "private"), ("fe80::/10", "link-local"), ("ff00::/8", "multicast"))


def rejected_range(address: Address, near: tuple[str, ...]) -> tuple[str, str] | None:
    """The narrowest range for which tier `inet` rejects this address, and why; None if the address may pass."""
    four, six = rejected_ranges(near)
    ranges = four if address.version == 4 else [*six, *NOT_GLOBAL]
    rows = [(ip_interface(text).network, reason) for text, reason in ranges]
    found = [(network, reason) for network, reason in rows if address in network]
    if found:
        network, reason = max(found, key=lambda row: row[0].prefixlen)
        return str(network), reason
    if address.version == 6 and not any(address in ip_network(text) for text in (GLOBAL, f"{NAT64}/96")):
        return str(address), f"outside of {GLOBAL}, the addresses that are given out"
    return None
