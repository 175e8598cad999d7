"""The addresses and routes of the host. They are read only for a box with a network of its own."""

from __future__ import annotations

import socket

from claudebox.host.tree import Tree
from claudebox.record import Record

NO_DEVICES = ("lo", "*")  # the devices of routes that lead nowhere
IS_UP = 0x1
HAS_GATEWAY = 0x2
IS_REJECTED = 0x200
IS_LOCAL = 0x80000000
IS_TUNNEL = 0x10  # a flag of a device: IFF_POINTOPOINT

# These numbers are from linux/netlink.h, rtnetlink.h and if_addr.h.
DUMP_ADDRESSES = 22
IS_DUMP_REQUEST = 0x301
NEW_ADDRESS = 20
DONE = 3
HEADER = 16
ADDRESS_HEADER = 8
ATTRIBUTE_HEADER = 4
IFA_ADDRESS = 1
IFA_LOCAL = 2
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
    packed = socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
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
        socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    except (OSError, ValueError):
        return False  # an address with a zone, fe80::1%eth0, is refused, too: the box is on another link
    return True


def own_addresses() -> tuple[str, ...]:
    """Every address of this host. The kernel is asked, because no file of /proc has the prefixes of IPv4."""
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
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
    return socket.inet_ntop(socket.AF_INET if len(packed) == IPV4 else socket.AF_INET6, packed)
