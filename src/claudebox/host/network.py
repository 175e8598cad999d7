"""The host's place in its networks. Read only for a box that has a network of its own."""

from __future__ import annotations

from claudebox.host.tree import Tree
from claudebox.record import Record

LOOPBACK = "lo"
ZERO4 = "00000000"
ZERO6 = "0" * 32
IS_UP = 0x1
IS_REJECTED = 0x200

# From linux/netlink.h, rtnetlink.h and if_addr.h.
DUMP_ADDRESSES = 22
IS_DUMP_REQUEST = 0x301
NEW_ADDRESS = 20
DONE = 3
HEADER = 16
ADDRESS_HEADER = 8
ATTRIBUTE_HEADER = 4
IFA_ADDRESS = 1
IFA_LOCAL = 2
BUFFER = 1 << 18


class Neighbourhood(Record):
    """What is near to this host, and the ways that lead out."""

    addresses: tuple[str, ...]  # its own, each with the length of the prefix that is on the link: 192.168.1.5/24
    gateways: tuple[str, ...]
    has_ipv4: bool  # a default route
    has_ipv6: bool
    resolvers: tuple[str, ...]
    search: tuple[str, ...]  # the lines of resolv.conf that say how names are looked up

    @property
    def everything(self) -> tuple[str, ...]:
        """But for what every host has."""
        near = dict.fromkeys((*self.addresses, *self.gateways))
        return tuple(address for address in near if not address.startswith(("127.", "::1/", "fe80:")))


def read_neighbourhood(tree: Tree) -> Neighbourhood:
    four, six = _default_gateways4(tree), _default_gateways6(tree)
    resolvers, search = _resolvers(tree)
    return Neighbourhood(
        addresses=own_addresses(),
        gateways=tuple(gateway for gateway in (*four, *six) if gateway),
        has_ipv4=bool(four),
        has_ipv6=bool(six),
        resolvers=resolvers,
        search=search,
    )


def _default_gateways4(tree: Tree) -> list[str]:
    """Of each default route; "" for one without a gateway, as a VPN has it."""
    rows = [line.split() for line in (tree.text("/proc/net/route") or "").splitlines()[1:]]
    return [_dotted(row[2]) for row in rows if len(row) > 7 and row[1] == row[7] == ZERO4 and int(row[3], 16) & IS_UP]


def _dotted(little_endian: str) -> str:
    return "" if little_endian == ZERO4 else ".".join(str(byte) for byte in reversed(bytes.fromhex(little_endian)))


def _default_gateways6(tree: Tree) -> list[str]:
    rows = [line.split() for line in (tree.text("/proc/net/ipv6_route") or "").splitlines()]
    return [
        "" if row[4] == ZERO6 else _text(bytes.fromhex(row[4]))
        for row in rows
        if len(row) > 9 and row[0] == ZERO6 and row[1] == "00" and row[9] != LOOPBACK and _is_used(row[8])
    ]


def _is_used(flags: str) -> bool:
    return bool(int(flags, 16) & IS_UP) and not int(flags, 16) & IS_REJECTED


def _resolvers(tree: Tree) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the C library would understand: whoever gives out addresses on a network also writes here."""
    lines = [line.split() for line in (tree.text("/etc/resolv.conf") or "").splitlines()]
    servers = [words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"]
    search = [" ".join(words) for words in lines if words and words[0] in ("search", "domain", "options")]
    return tuple(filter(_is_address, servers)), tuple(filter(str.isprintable, search))


def _is_address(text: str) -> bool:
    import _socket

    try:
        _socket.inet_pton(_socket.AF_INET6 if ":" in text else _socket.AF_INET, text)
    except (OSError, ValueError):
        return False  # with a zone too, fe80::1%eth0: the box is on another link
    return True


def own_addresses() -> tuple[str, ...]:
    """Every address of this host, from the kernel: no file of /proc tells IPv4 prefixes."""
    import _socket

    kernel = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, 0)
    try:
        question = (HEADER + ADDRESS_HEADER, DUMP_ADDRESSES, IS_DUMP_REQUEST, 1, 0)
        sizes = (4, 2, 2, 4, 4)
        request = b"".join(value.to_bytes(size, "little") for value, size in zip(question, sizes, strict=True))
        kernel.send(request + bytes(ADDRESS_HEADER))
        found: dict[str, None] = {}
        while _take_addresses(kernel.recv(BUFFER), found):
            pass
        return tuple(found)
    finally:
        kernel.close()


def _take_addresses(answer: bytes, found: dict[str, None]) -> bool:
    """Note what one datagram of the dump tells. False at its end."""
    while len(answer) >= HEADER:
        length, kind = int.from_bytes(answer[:4], "little"), int.from_bytes(answer[4:6], "little")
        if kind != NEW_ADDRESS:
            return kind != DONE
        found.update(dict.fromkeys(_addresses(answer[HEADER:length])))
        answer = answer[(length + 3) & ~3 :]
    return True


def _addresses(body: bytes) -> list[str]:
    """The address with its prefix. On a tunnel that is the other end, and the host's own comes beside it."""
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
    import _socket

    return _socket.inet_ntop(_socket.AF_INET if len(packed) == 4 else _socket.AF_INET6, packed)
