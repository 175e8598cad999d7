"""Makes the box's own network: one loopback device, on which every address of the world is local.

What a program sends arrives on that device again, at the listeners that are made here and whose other end is a process
outside. nft leads every TCP connection there, whatever its port. If it did not, nothing would be reached: the network
has no way out, so the rules are a convenience and not the fence.
"""

from __future__ import annotations

import os
import socket
import struct

from claudebox.errors import Problem
from claudebox.features.names.decide import BOX
from claudebox.process.companion import filter_problem, load_ruleset
from claudebox.process.isolation import advice, enter_network_namespace

# What a socket of the box's network is for. A port may follow.
DATAGRAMS = "datagrams"  # queries over UDP
LOOKUPS = "lookups"  # queries over TCP
CONNECTIONS = "connections"
HOST_PORT = "host-port"

# From linux/netlink.h, rtnetlink.h and if_addr.h.
NEW_LINK, NEW_ADDRESS, NEW_ROUTE = 16, 20, 24
REQUEST, ACKNOWLEDGE, CREATE, ONLY_NEW = 1, 4, 0x400, 0x200
HEADER = struct.Struct("=IHHII")
IS_UP = 1
IFA_ADDRESS, IFA_LOCAL = 1, 2
RTA_OUTPUT, RTA_PREFERRED_SOURCE = 4, 7
LOCAL_TABLE, BY_ADMINISTRATOR, SCOPE_HOST, SCOPE_UNIVERSE, IS_LOCAL = 255, 4, 254, 0, 2

ANY4, ANY6 = "0.0.0.0", "::"  # noqa: S104  (of a network that nobody else is in)
LOOPBACK4, LOOPBACK6 = "127.0.0.1", "::1"
BACKLOG = 1024
DNS_PORT = 53
PACKET_INFO = 8  # IP_PKTINFO: tells to which address a datagram was sent
FREE_BIND = 78  # IPV6_FREEBIND: IPv6 believes in local addresses, but not in local routes

# Nobody may ping: an answer would come from the box itself. A single local route takes all of IPv6.
KERNEL_SETTINGS = (("ipv6/conf/default/accept_dad", "0"), ("ipv4/ping_group_range", "1 0"))

Made = list[tuple[str, socket.socket]]


def make_network(nft: str, host_ports: tuple[int, ...]) -> Made:
    """Enter a new network namespace and make its sockets. Returns each with the words that say what it is for."""
    enter_network_namespace(KERNEL_SETTINGS)
    try:
        has_ipv6 = _make_everything_local()
        made, port = _make_sockets(host_ports, has_ipv6)
    except OSError as error:
        raise Problem(f"the box's network cannot be made: {error.strerror}", *advice()) from None
    refusal = load_ruleset(nft, ruleset(port))
    if refusal:
        raise filter_problem(refusal)
    return made


def _make_everything_local() -> bool:
    """Whether there is IPv6, too. The address is one that is not on the loopback network: without one, the C library
    would not ask for addresses of the internet. And without a preferred source, it would equal the destination."""
    device = socket.if_nametoindex("lo")
    own = socket.inet_aton(BOX)
    link = struct.pack("=BBHiII", 0, 0, 0, device, IS_UP, IS_UP)
    address = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, device)
    output = _attribute(RTA_OUTPUT, struct.pack("=I", device))
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    try:
        _ask(kernel, NEW_LINK, 0, link)
        _ask(kernel, NEW_ADDRESS, CREATE, address + _attribute(IFA_LOCAL, own) + _attribute(IFA_ADDRESS, own))
        route = _default_route(socket.AF_INET, SCOPE_HOST)
        _ask(kernel, NEW_ROUTE, CREATE, route + output + _attribute(RTA_PREFERRED_SOURCE, own))
        try:
            _ask(kernel, NEW_ROUTE, CREATE, _default_route(socket.AF_INET6, SCOPE_UNIVERSE) + output)
        except OSError:
            return False
        return os.path.exists("/proc/net/if_inet6")
    finally:
        kernel.close()


def _default_route(family: int, scope: int) -> bytes:
    return struct.pack("=BBBBBBBBI", family, 0, 0, 0, LOCAL_TABLE, BY_ADMINISTRATOR, scope, IS_LOCAL, 0)


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data


def _ask(kernel: socket.socket, kind: int, flags: int, body: bytes) -> None:
    """Send a request, and wait for its answer. Raises what the kernel has against it."""
    flags |= REQUEST | ACKNOWLEDGE | (ONLY_NEW if flags & CREATE else 0)
    kernel.send(HEADER.pack(HEADER.size + len(body), kind, flags, 1, 0) + body)
    (code,) = struct.unpack_from("=i", kernel.recv(4096), HEADER.size)
    if code:
        raise OSError(-code, os.strerror(-code))


def _make_sockets(host_ports: tuple[int, ...], has_ipv6: bool) -> tuple[Made, int]:
    """The sockets, and the port of the listener to which everything is led."""
    made: Made = []
    port = 0
    for everywhere, loopback in ((ANY4, LOOPBACK4), (ANY6, LOOPBACK6))[: 1 + has_ipv6]:
        made.append((DATAGRAMS, _datagrams(everywhere)))
        made.append((LOOKUPS, _listener(everywhere, DNS_PORT)))
        connections = _listener(loopback, port)
        port = connections.getsockname()[1]
        made.append((CONNECTIONS, connections))
    made += [(f"{HOST_PORT} {number}", _listener(LOOPBACK4, number)) for number in host_ports]
    return made, port


def _listener(address: str, port: int) -> socket.socket:
    made = _bound(socket.SOCK_STREAM, address, port)
    made.listen(BACKLOG)
    return made


def _datagrams(address: str) -> socket.socket:
    made = _bound(socket.SOCK_DGRAM, address, DNS_PORT)
    if made.family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        made.setsockopt(socket.IPPROTO_IPV6, FREE_BIND, 1)
    else:
        made.setsockopt(socket.IPPROTO_IP, PACKET_INFO, 1)
    return made


def _bound(kind: int, address: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind | socket.SOCK_CLOEXEC)
    if made.family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    made.bind((address, port))
    return made


def ruleset(port: int | str) -> str:
    """Rules that lead every TCP connection to this port of the box, and refuse what nobody would answer."""
    return f"""\
table inet claudebox {{
	chain connections {{
		type nat hook output priority -100
		ip daddr {{ 127.0.0.0/8, {BOX} }} accept
		ip6 daddr ::1 accept
		tcp dport {DNS_PORT} accept
		meta l4proto tcp redirect to :{port}
	}}
	chain datagrams {{
		type filter hook output priority 0
		ip daddr {{ 127.0.0.0/8, {BOX} }} accept
		ip6 daddr ::1 accept
		udp dport {DNS_PORT} accept
		meta l4proto {{ udp, udplite, icmp }} reject with icmpx type admin-prohibited
	}}
}}
"""
