"""Connects a box on tier `allowlist`: a process that knows the list starts beside it, and its network is made inside.

The process stays on the host's network. The child that becomes bwrap enters a network without any way out: it has one
loopback device, on which every address of the world is local. So what a program sends arrives there again, at
listeners that the child makes and hands over to the process outside. nft leads every TCP connection to one of them,
whatever its port. Without these rules nothing would be reached: they are a convenience and not the fence.

Until the listeners are served, what the box opens waits in the kernel. If the process ends, its sockets do, and the
parent ends the box. With --publish, the ports of the host are opened here, and a process in the box's network carries
on what arrives.
"""

from __future__ import annotations

import os
import socket
import struct

from claudebox.errors import Problem
from claudebox.features.allowlist.rules import BOX, Allowlist
from claudebox.model import Launch
from claudebox.process.companion import Companion, filter_problem, load_ruleset, open_port, start_beside, watch_own_end
from claudebox.process.isolation import advice, enter_network_namespace
from claudebox.record import Record
from claudebox.servers.allowlist import DNS_PORT, END, LIFE, MEMORY, SOCKET, HostList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

    from claudebox.model import Deed

# From linux/netlink.h, rtnetlink.h and if_addr.h.
NEW_LINK, NEW_ADDRESS, NEW_ROUTE = 16, 20, 24
REQUEST, ACKNOWLEDGE, CREATE, ONLY_NEW = 1, 4, 0x400, 0x200
HEADER = struct.Struct("=IHHII")
IS_UP = 1
IFA_ADDRESS, IFA_LOCAL = 1, 2
RTA_OUTPUT, RTA_PREFERRED_SOURCE = 4, 7
LOCAL_TABLE, BY_ADMINISTRATOR, SCOPE_HOST, SCOPE_UNIVERSE, IS_LOCAL = 255, 4, 254, 0, 2

FAMILIES = ((socket.AF_INET, "0.0.0.0", "127.0.0.1"), (socket.AF_INET6, "::", "::1"))  # noqa: S104  (of the box alone)
BACKLOG = 1024
PACKET_INFO = 8  # IP_PKTINFO: tells to which address a datagram was sent
FREE_BIND = 78  # IPV6_FREEBIND: IPv6 believes in local addresses, but not in local routes

# Nobody may ping: an answer would come from the box itself. A single local route takes all of IPv6.
KERNEL_SETTINGS = (("ipv6/conf/default/accept_dad", "0"), ("ipv4/ping_group_range", "1 0"))


class Outside(Record):
    """Of this launch: the process that knows the list."""

    channel: int  # the socket that leads to it
    refused: mmap  # memory in which it says what it refused
    listeners: tuple[int, ...]  # the ports of this host that are published


def beside(launch: Launch) -> Companion:
    from mmap import mmap

    end = watch_own_end("for --network allowlist", "--network inet, or --network none")
    allowlist = launch.get(Allowlist)
    listeners = tuple(map(open_port, launch.plan.network.published))
    host_ports = {port.host for port in launch.plan.network.host_ports}
    ours, theirs = (one.detach() for one in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    refused = mmap(-1, MEMORY)

    def serve(report: int) -> None:
        from claudebox.servers.allowlist.notes import Asker, Notes
        from claudebox.servers.allowlist.relay import Relay, run

        hosts = HostList(allowlist.allowed)
        asker = Asker(allowlist.notifier, hosts) if allowlist.notifier else None
        notes = Notes(allowlist.journal, refused, asker)
        run(Relay(hosts, notes, allowlist.near, host_ports), theirs, end, report)

    life = start_beside(serve, (theirs, end))
    launch.keep(Outside(ours, refused, listeners))
    return Companion(life, ended)


def ended() -> Problem:
    return Problem("the process that knows the box's allowlist was ended, and the box with it", "start it again")


def inside(launch: Launch, life: int, others_end: int) -> None:
    """Make the box's network, and hand its sockets over: with them goes the end of the pipe that the box lives by."""
    outside, network = launch.get(Outside), launch.plan.network
    os.close(life)
    made = make_network(launch.get(Allowlist).nft, tuple(port.host for port in network.host_ports))
    channel = socket.socket(fileno=outside.channel)
    try:
        for own in made:
            socket.send_fds(channel, [SOCKET], [own.fileno()])
        socket.send_fds(channel, [LIFE], [others_end])
    except OSError:
        raise ended() from None
    channel.close()
    os.close(others_end)
    if network.published:
        from claudebox.servers import start_carrier

        boxes = [port.box for port in network.published]
        start_carrier(list(zip(outside.listeners, boxes, strict=True)))


def after(launch: Launch) -> Deed:
    """Say which hosts were refused when the box has ended. With `--quiet` only the journal has them."""
    outside = launch.get(Outside)

    def report(_: bool) -> None:
        text = bytes(outside.refused).partition(END)[0].decode(errors="replace")
        if text and not launch.is_quiet:
            from claudebox.output.terminal import say

            say(text)

    return report


# The box's network


def make_network(nft: str, host_ports: tuple[int, ...]) -> list[socket.socket]:
    """Enter a new network namespace and make its sockets."""
    enter_network_namespace(KERNEL_SETTINGS)
    try:
        has_ipv6 = _make_everything_local()
        port, made = _make_sockets(host_ports, has_ipv6)
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
    address = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, device)
    output = _attribute(RTA_OUTPUT, struct.pack("=I", device))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW) as kernel:
        _ask(kernel, NEW_LINK, 0, struct.pack("=BBHiII", 0, 0, 0, device, IS_UP, IS_UP))
        _ask(kernel, NEW_ADDRESS, CREATE, address + _attribute(IFA_LOCAL, own) + _attribute(IFA_ADDRESS, own))
        route = _default_route(socket.AF_INET, SCOPE_HOST)
        _ask(kernel, NEW_ROUTE, CREATE, route + output + _attribute(RTA_PREFERRED_SOURCE, own))
        try:
            _ask(kernel, NEW_ROUTE, CREATE, _default_route(socket.AF_INET6, SCOPE_UNIVERSE) + output)
        except OSError:
            return False
    return os.path.exists("/proc/net/if_inet6")


def _default_route(family: int, scope: int) -> bytes:
    return struct.pack("=BBBBBBBBI", family, 0, 0, 0, LOCAL_TABLE, BY_ADMINISTRATOR, scope, IS_LOCAL, 0)


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data


def _ask(kernel: socket.socket, kind: int, flags: int, body: bytes) -> None:
    """Send a request and wait for its answer. Raises the kernel's error."""
    flags |= REQUEST | ACKNOWLEDGE | (ONLY_NEW if flags & CREATE else 0)
    kernel.send(HEADER.pack(HEADER.size + len(body), kind, flags, 1, 0) + body)
    (code,) = struct.unpack_from("=i", kernel.recv(4096), HEADER.size)
    if code:
        raise OSError(-code, os.strerror(-code))


def _make_sockets(host_ports: tuple[int, ...], has_ipv6: bool) -> tuple[int, list[socket.socket]]:
    """The port of the listener that gets every connection, and all sockets."""
    made = [_listener("127.0.0.1", number) for number in host_ports]
    port = 0
    for family, everywhere, loopback in FAMILIES[: 1 + has_ipv6]:
        led = _listener(loopback, port)
        port = led.getsockname()[1]
        made += [led, _datagrams(family, everywhere)]
    return port, made


def _listener(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=BACKLOG)


def _datagrams(family: int, address: str) -> socket.socket:
    made = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        for option in (socket.IPV6_V6ONLY, socket.IPV6_RECVPKTINFO, FREE_BIND):
            made.setsockopt(socket.IPPROTO_IPV6, option, 1)
    else:
        made.setsockopt(socket.IPPROTO_IP, PACKET_INFO, 1)
    made.bind((address, DNS_PORT))
    return made


def ruleset(port: int | str) -> str:
    """Rules that redirect every TCP connection to this port of the box, and reject what nobody would answer.

    Nobody listens at TCP port 53: a listed host cannot be asked for names either.
    """
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
