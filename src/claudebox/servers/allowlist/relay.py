"""The process outside of the box that knows the list: it answers the box's DNS and carries its connections.

It lives on the host's network and holds sockets that were made in the box's. What it does not carry leads nowhere:
the box's network has one device, its loopback, and every address of the world is local there.

A name is looked up when the box connects, and the address that was looked at is the one that is connected to. So a
name cannot lead to something private, whatever its owner says in the next second.
"""

from __future__ import annotations

import math
import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from errno import EINPROGRESS
from functools import lru_cache, partial
from ipaddress import IPv4Address, IPv6Address, ip_address

from claudebox.host.network import read_neighbourhood, rejected_range
from claudebox.host.tree import Tree
from claudebox.process.companion import READY
from claudebox.servers.allowlist import LIFE, HostList, can_be_listed, greeting
from claudebox.servers.allowlist.dns import NameServer
from claudebox.servers.allowlist.greeting import NO_ALERT, Refusal
from claudebox.servers.allowlist.notes import Notes
from claudebox.servers.carrier import CHUNK, LOOPBACKS, Flow, Listener, carry, carry_to, make_lasting, say_last, serve

MOST_FIRST_BYTES = 1 << 16
HELLO_SECONDS = 10.0
# A client that says nothing is refused without words; on a busy machine it takes seconds to begin.
SILENCE_SECONDS = 5.0
LEAVE_SECONDS = 5.0  # to read what the client still says

REMEMBERED_SECONDS = 5  # what is near, as somebody may join another network; and names, as programs connect often
MOST_REMEMBERED = 4096
PATIENCE_SECONDS = 20.0
NEXT_ADDRESS_MILLISECONDS = 250  # RFC 8305: an address that does not answer must not hold up the next
ORIGINAL_DESTINATION = 80  # SO_ORIGINAL_DST, and IP6T_SO_ORIGINAL_DST
Address = IPv4Address | IPv6Address


def run(relay: Relay, channel: int, end: int, report: int) -> None:
    """Serve the sockets that the channel brings until `end` can be read. `report` is told that all is ready."""
    # A name of the box that fails would be asked for again, with what this host appends to its own names.
    os.environ["LOCALDOMAIN"] = ""
    listeners = relay.take(_receive(socket.socket(fileno=channel)))
    os.write(report, READY)
    serve(listeners, (end,))


def _receive(channel: socket.socket) -> Iterator[socket.socket]:
    """The sockets of the box's network. The end of the box's pipe comes last, and is never closed."""
    while True:
        word, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
        if word == LIFE:
            return
        if not word:
            os._exit(1)  # whoever makes the box's network has ended before it was made
        yield socket.socket(fileno=descriptors[0])


def original_destination(client: socket.socket) -> tuple[bytes, int]:
    """The packed address and the port to which a program wanted to connect before nft redirected it."""
    is_ipv6 = client.family == socket.AF_INET6
    level, size = (socket.IPPROTO_IPV6, 28) if is_ipv6 else (socket.IPPROTO_IP, 16)
    raw = client.getsockopt(level, ORIGINAL_DESTINATION, size)
    return raw[8:24] if is_ipv6 else raw[4:8], int.from_bytes(raw[2:4], "big")


class Relay:
    """All traffic between the box and the world."""

    def __init__(self, hosts: HostList, notes: Notes, near: tuple[str, ...], host_ports: set[int]) -> None:
        self.hosts = hosts
        self.name_server = NameServer(hosts, notes.refused_lookup)
        self.notes = notes
        self.near = near
        self.host_ports = host_ports

    def take(self, sockets: Iterator[socket.socket]) -> list[Listener]:
        """Answer at the sockets for DNS, and say what has to be done at the others."""
        listeners: list[Listener] = []
        for own in sockets:
            port = own.getsockname()[1]
            if own.type == socket.SOCK_DGRAM:
                threading.Thread(target=self.name_server.serve, args=(own,), daemon=True).start()
            elif port in self.host_ports:
                listeners.append((own, partial(carry_to, LOOPBACKS[:1], port)))
            else:
                listeners.append((own, self._serve))
        return listeners

    def _serve(self, client: socket.socket) -> None:
        packed, port = original_destination(client)
        name = self.name_server.name_of(packed)
        self.connect(client, name or socket.inet_ntop(client.family, packed), port, is_name=bool(name))

    def connect(self, client: socket.socket, host: str, port: int, *, is_name: bool) -> None:
        """Carry what a program says to this host, and back; or say why not."""
        started, first = time.monotonic(), b""
        try:
            self._check(host, port, is_name=is_name)
            with dial(host, port, is_name=is_name) as server:
                make_lasting(server)
                out = Greeting(client, server, host) if is_name else Flow(client, server)
                back = Flow(server, client)
                try:
                    carry(out, back)
                except Refusal:
                    first = out.rest
                    raise
            self.notes.carried(host, port, out.carried, back.carried, round((time.monotonic() - started) * 1000))
        except Refusal as refusal:
            self.notes.not_made(host, port, refusal)
            refuse(client, first, refusal)

    def _check(self, host: str, port: int, *, is_name: bool) -> None:
        """Raise a Refusal if the list does not allow this."""
        if self.hosts.permits(host, port):
            return
        text = f"port {port} of {host} is not in this box's list"
        if not is_name and not self.hosts.knows(host):
            text = f"{host} is not in this box's list: it reaches names, and addresses that are listed"
        raise Refusal(text, is_lists=port != 0 and can_be_listed(host, self.near))


def refuse(client: socket.socket, first: bytes, refusal: Refusal) -> None:
    """Say why, in the client's own protocol: so the client has to speak first. These bytes it has said already."""
    client.settimeout(SILENCE_SECONDS)
    said = greeting.in_words_of(first or client.recv(CHUNK), refusal)
    if not said:
        raise ConnectionResetError
    say_last(client, said, LEAVE_SECONDS)


class Greeting(Flow):
    """What a program says to a host that it has asked DNS for. If it is TLS, it has to name that host first."""

    def __init__(self, source: socket.socket, target: socket.socket, host: str) -> None:
        super().__init__(source, target)
        self.host = host
        self.is_checked = False
        self.until = time.monotonic() + HELLO_SECONDS

    @property
    def waits_for(self) -> tuple[int, int]:
        return super().waits_for if self.is_checked else (self.source.fileno(), select.POLLIN)

    def move(self) -> None:
        if self.is_checked:
            super().move()
            return
        heard = self.source.recv(CHUNK)
        self.rest += heard
        self.is_checked = not greeting.is_tls(self.rest) or _names_host(self.host, self.rest, is_all=not heard)
        self.deadline = math.inf if self.is_checked else self.until
        if not self.rest:
            self.end()


def _names_host(host: str, first: bytes, *, is_all: bool) -> bool:
    """Whether a ClientHello names the host that it goes to; False if it is not complete yet. Raises a Refusal."""
    try:
        said = greeting.server_name(first)
    except greeting.BadHello as bad:
        raise Refusal(f"TLS to {host}: {bad}", greeting.ILLEGAL_PARAMETER) from None
    if said is None and (is_all or len(first) > MOST_FIRST_BYTES):
        raise Refusal(f"TLS to {host}: the ClientHello is not complete", greeting.ILLEGAL_PARAMETER)
    if said is not None and said.removesuffix(".") != host:
        raise Refusal(f"TLS for {said or 'no name'} on a connection to {host}", greeting.UNRECOGNIZED_NAME)
    return said is not None


# To connect


def dial(host: str, port: int, *, is_name: bool) -> socket.socket:
    """Connect. Raises a Refusal if no address of the internet answers."""
    period = time.monotonic() // REMEMBERED_SECONDS
    near = _near(period)
    found = dict.fromkeys(map(_as_kernel_sees, _addresses_of(host, period) if is_name else (host,)))
    judged = [(address, rejected_range(str(address), near)) for address in found]
    public = [address for address, rejected in judged if rejected is None]
    if not public:
        objection = f"{host} leads to a private address" if is_name else "this is a private address"
        raise Refusal(f"{objection}: {next((f'{address} ({why[1]})' for address, why in judged if why), 'none')}")
    try:
        return _connect_first(public, port)
    except OSError as error:  # no descriptor is left for it, for instance
        raise Refusal(f"{host}: {error.strerror or error}", NO_ALERT) from None


@lru_cache(1)
def _near(_period: float) -> tuple[str, ...]:
    return read_neighbourhood(Tree()).everything


@lru_cache(MOST_REMEMBERED)
def _addresses_of(name: str, _period: float) -> tuple[str, ...]:
    """Cached: each address is checked whenever it is used."""
    try:
        return tuple(str(row[4][0]) for row in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Refusal(f"this host cannot resolve {name}: {why}", NO_ALERT) from None


def _as_kernel_sees(text: str) -> Address:
    """The address to which the kernel would send: an IPv4-mapped one is IPv4."""
    address = ip_address(text.partition("%")[0])
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _connect_first(addresses: list[Address], port: int) -> socket.socket:
    """Connect to the first that answers. Each gets a moment before the next one is tried in parallel."""
    end = time.monotonic() + PATIENCE_SECONDS
    poll, trying, waiting, error = select.poll(), dict[int, socket.socket](), [*addresses], "no answer"
    try:
        while (waiting or trying) and time.monotonic() < end:
            if waiting:
                address = waiting.pop(0)
                family = socket.AF_INET if address.version == 4 else socket.AF_INET6
                attempt = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
                trying[attempt.fileno()] = attempt
                code = attempt.connect_ex((str(address), port))
                if code not in (0, EINPROGRESS):
                    trying.pop(attempt.fileno()).close()
                    error = os.strerror(code)
                    continue
                poll.register(attempt, select.POLLOUT)
            left = int((end - time.monotonic()) * 1000)
            for number, _ in poll.poll(NEXT_ADDRESS_MILLISECONDS if waiting else max(0, left)):
                poll.unregister(number)
                attempt = trying.pop(number)
                code = attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code == 0:
                    return attempt
                attempt.close()
                error = os.strerror(code)
    finally:
        for attempt in trying.values():
            attempt.close()
    raise Refusal(f"no connection to {addresses[0]} port {port}: {error}", NO_ALERT)
