"""The addresses that are not the internet: what a box must not reach unless it shares the host's network.

Tier `inet` has them in its filter; for tier `allowlist` a process outside of the box looks at each address before it
connects. A launch needs the tables alone; `ipaddress`, which is slow to import, is for those who compare.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_interface, ip_network

NAT64 = "64:ff9b::"  # the prefix behind which a network may translate to any IPv4 address
GLOBAL = "2000::/3"  # all IPv6 addresses that have been given out

# These ranges are not the internet. The documentation ranges are not listed: they belong to nobody.
PRIVATE4 = (
    ("0.0.0.0/8", "this network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier NAT, Tailscale, MagicDNS"),
    ("127.0.0.0/8", "loopback"),
    ("168.63.129.16", "Azure's metadata"),
    ("169.254.0.0/16", "link-local, cloud metadata"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "protocol assignments, Oracle's metadata"),
    ("192.88.99.0/24", "6to4 relays"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmarks, fake addresses of proxies"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved, broadcast"),
)
# Parts of GLOBAL. The rest of IPv6 is rejected as a whole: loopback, IPv4-mapped, fc00::/7, fe80::/10, ff00::/8 …
PRIVATE6 = (
    ("2001::/23", "protocol assignments: Teredo, benchmarks, the nearest router"),
    ("2002::/16", "6to4: IPv4 inside"),
)
NEAR = "this host and its links"


def rejected_ranges(near: tuple[str, ...]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The ranges of IPv4 and of IPv6 that the box must not reach, each with the reason: the private and the near."""
    four = [*PRIVATE4, *((address, NEAR) for address in near if ":" not in address)]
    six = [*PRIVATE6, *((address, NEAR) for address in near if ":" in address)]
    return four, six + [(translated(address), f"NAT64 of {address}") for address, _ in four]


def translated(network: str) -> str:
    """The IPv6 network in which NAT64 shows an IPv4 network."""
    address, _, length = network.partition("/")
    first, second, third, fourth = (int(octet) for octet in address.split("."))
    return f"{NAT64}{first << 8 | second:x}:{third << 8 | fourth:x}/{96 + int(length or 32)}"


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
