"""The addresses and routes of the host, and the addresses that are not the internet.

They matter only for a box with a network of its own: it must reach neither what is near this host nor what is private.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, AF_NETLINK, SOCK_RAW, inet_ntop, inet_pton, socket

from claudebox.host.tree import Tree
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

    Address = IPv4Address | IPv6Address

NO_DEVICES = ("lo", "*")  # the devices of routes that lead nowhere
IS_UP, HAS_GATEWAY, IS_REJECTED, IS_LOCAL = 0x1, 0x2, 0x200, 0x80000000  # flags of a route
IS_TUNNEL = 0x10  # a flag of a device: IFF_POINTOPOINT

# These numbers are from linux/netlink.h, rtnetlink.h and if_addr.h.
DONE, NEW_ADDRESS, DUMP_ADDRESSES, IS_DUMP_REQUEST = 3, 20, 22, 0x301
HEADER, ADDRESS_HEADER, ATTRIBUTE_HEADER = 16, 8, 4
IFA_ADDRESS, IFA_LOCAL = 1, 2
BUFFER_BYTES = 1 << 18
IPV4, IPV6 = 4, 16  # bytes of an address


class Neighbourhood(Record):
    """What is near this host, and the ways that lead out."""

    addresses: tuple[str, ...]  # its own, each with the length of the link's prefix: 192.168.1.5/24
    gateways: tuple[str, ...]
    has_ipv4: bool  # whether there is a default route
    has_ipv6: bool
    resolvers: tuple[str, ...]
    search: tuple[str, ...]  # the lines of resolv.conf that say how names are looked up
    links: tuple[str, ...] = ()  # prefixes that are on a link, although no address of this host shows it

    @property
    def everything(self) -> tuple[str, ...]:
        """All addresses and prefixes that are near, except those that every host has."""
        near = dict.fromkeys((*self.addresses, *self.links, *self.gateways))
        return tuple(address for address in near if not address.startswith(("127.", "::1/", "fe80:", "ff00:")))


class _Route(Record):
    """Packets for this network leave through this device, and go to the gateway if there is one."""

    network: bytes
    length: int
    gateway: bytes  # b"" if there is none, as on a link or with a VPN
    device: str

    @property
    def text(self) -> str:
        return f"{_text(self.network)}/{self.length}"


def read_neighbourhood(tree: Tree) -> Neighbourhood:
    addresses = own_addresses()
    routes = _routes(tree)
    default = [route for route in routes if route.length == 0]
    told = {_network(address) for address in addresses}
    links = [route.text for route in routes if route.text not in told and _is_link(tree, route)]
    resolvers, search = _resolvers(tree)
    return Neighbourhood(
        addresses=addresses,
        gateways=tuple(dict.fromkeys(_text(route.gateway) for route in default if route.gateway)),
        has_ipv4=any(len(route.network) == IPV4 for route in default),
        has_ipv6=any(len(route.network) == IPV6 for route in default),
        resolvers=resolvers,
        search=search,
        links=tuple(dict.fromkeys(links)),
    )


def _routes(tree: Tree) -> list[_Route]:
    """The routes that are in use. IPv4 has its addresses in the byte order of the machine, and a mask."""
    four = [line.split() for line in (tree.text("/proc/net/route") or "").splitlines()[1:]]
    six = [line.split() for line in (tree.text("/proc/net/ipv6_route") or "").splitlines()]
    rows = [(row[0], row[3], row[1], row[2], int(row[7], 16).bit_count(), -1) for row in four if len(row) > 7]
    rows += [(row[9], row[8], row[0], row[4], int(row[1], 16), 1) for row in six if len(row) > 9]
    return [
        _Route(
            bytes.fromhex(network)[::order],
            length,
            bytes.fromhex(gateway)[::order] if int(flags, 16) & HAS_GATEWAY else b"",
            device,
        )
        for device, flags, network, gateway, length, order in rows
        if device not in NO_DEVICES and int(flags, 16) & (IS_UP | IS_REJECTED | IS_LOCAL) == IS_UP
    ]


def _is_link(tree: Tree, route: _Route) -> bool:
    """Whether the machines of this network are neighbours. A tunnel does not count: anything may be behind it."""
    flags = (tree.text(f"/sys/class/net/{route.device}/flags") or "").strip()
    is_tunnel = flags.startswith("0x") and bool(int(flags, 16) & IS_TUNNEL)
    return route.length > 0 and not route.gateway and not is_tunnel


def _network(address: str) -> str:
    """The network of an address: 192.168.1.0/24 for 192.168.1.5/24."""
    text, _, length = address.partition("/")
    packed = inet_pton(AF_INET6 if ":" in text else AF_INET, text)
    rest = 8 * len(packed) - int(length) if length else 0
    number = int.from_bytes(packed, "big") >> rest << rest
    return f"{_text(number.to_bytes(len(packed), 'big'))}/{8 * len(packed) - rest}"


def _resolvers(tree: Tree) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines that the C library would understand. A DHCP server of any network can write others there."""
    lines = [line.split() for line in (tree.text("/etc/resolv.conf") or "").splitlines()]
    servers = [words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"]
    search = [" ".join(words) for words in lines if words and words[0] in ("search", "domain", "options")]
    return tuple(filter(_is_address, servers)), tuple(filter(str.isprintable, search))


def _is_address(text: str) -> bool:
    try:
        inet_pton(AF_INET6 if ":" in text else AF_INET, text)
    except (OSError, ValueError):
        return False  # an address with a zone, fe80::1%eth0, is refused, too: the box is on another link
    return True


def own_addresses() -> tuple[str, ...]:
    """Every address of this host. The kernel is asked, because no file of /proc has the prefixes of IPv4."""
    kernel = socket(AF_NETLINK, SOCK_RAW)
    try:
        question = (HEADER + ADDRESS_HEADER, DUMP_ADDRESSES, IS_DUMP_REQUEST, 1, 0)
        sizes = (4, 2, 2, 4, 4)
        request = b"".join(value.to_bytes(size, "little") for value, size in zip(question, sizes, strict=True))
        kernel.send(request + bytes(ADDRESS_HEADER))
        found: dict[str, None] = {}
        while _take_addresses(kernel.recv(BUFFER_BYTES), found):
            pass
        return tuple(found)
    finally:
        kernel.close()


def _take_addresses(answer: bytes, found: dict[str, None]) -> bool:
    """Note the addresses in one datagram of the dump. False if it was the last one."""
    while len(answer) >= HEADER:
        length, kind = int.from_bytes(answer[:4], "little"), int.from_bytes(answer[4:6], "little")
        if kind != NEW_ADDRESS:
            return kind != DONE
        found.update(dict.fromkeys(_addresses(answer[HEADER:length])))
        answer = answer[(length + 3) & ~3 :]
    return True


def _addresses(body: bytes) -> list[str]:
    """The address with its prefix. On a tunnel that one is the other end, and the host's own comes second."""
    length, attributes = body[1], body[ADDRESS_HEADER:]
    found = {}
    while len(attributes) > ATTRIBUTE_HEADER:
        size, kind = int.from_bytes(attributes[:2], "little"), int.from_bytes(attributes[2:4], "little")
        found[kind] = attributes[ATTRIBUTE_HEADER:size]
        attributes = attributes[(size + 3) & ~3 :]
    prefix = found.get(IFA_ADDRESS) or found[IFA_LOCAL]
    own = found.get(IFA_LOCAL, prefix)
    return [f"{_text(prefix)}/{length}", *([_text(own)] if own != prefix else [])]


def _text(packed: bytes) -> str:
    return inet_ntop(AF_INET if len(packed) == IPV4 else AF_INET6, packed)


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


# What is not GLOBAL is rejected as a whole. These are names for its best known parts.
NOT_GLOBAL = (("fc00::/7", "private"), ("fe80::/10", "link-local"), ("ff00::/8", "multicast"))


def rejected_range(address: str, near: tuple[str, ...]) -> tuple[str, str] | None:
    """The narrowest range for which tier `inet` rejects this address, and why; None if the address may pass."""
    address = address.partition("%")[0]
    if not _is_address(address):
        return address, "no address"
    is_four = ":" not in address
    four, six = rejected_ranges(near)
    rows = [(_network(text), reason) for text, reason in (four if is_four else [*six, *NOT_GLOBAL])]
    found = [(network, reason) for network, reason in rows if _is_in(address, network)]
    if found:
        return max(found, key=lambda row: int(row[0].partition("/")[2]))
    if not is_four and not any(_is_in(address, network) for network in (GLOBAL, f"{NAT64}/96")):
        return address, f"outside of {GLOBAL}, the addresses that are given out"
    return None


def _is_in(address: str, network: str) -> bool:
    return _network(f"{address}/{network.partition('/')[2]}") == network
