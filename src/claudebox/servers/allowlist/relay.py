"""The process outside of the box that knows the list: it answers the box's DNS and carries its connections.

It lives on the host's network and holds sockets that were made in the box's. What it does not carry leads nowhere:
the box's network has one device, its loopback, and every address of the world is local there.

A name is looked up when the box connects, and the address that was looked at is the one that is connected to. So a
name cannot lead to something private, whatever its owner says in the next second.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from errno import EINPROGRESS
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from claudebox.host.network import read_neighbourhood, rejected_range
from claudebox.host.tree import Tree
from claudebox.process.companion import READY
from claudebox.servers.allowlist import DNS_PORT, LIFE, HostList, can_be_listed, greeting
from claudebox.servers.allowlist.dns import NameServer
from claudebox.servers.allowlist.greeting import NO_ALERT, Refusal
from claudebox.servers.allowlist.notes import Notes
from claudebox.servers.carrier import Carrier, Connection, Flow

# Where a connection leads: to a name, an address, a port of this host, or to the box's name server.
NAME, ADDRESS, LOCALHOST, LOOKUP = range(4)

FIRST_BYTES, MOST_FIRST_BYTES = 1 << 14, 1 << 16
HELLO_SECONDS = LOOKUP_SECONDS = 10.0
# A client that says nothing is refused without words; on a busy machine it takes seconds to begin.
SILENCE_SECONDS = 5.0
LEAVE_SECONDS = 5.0  # to read what the client still says: else the refusal would be lost in a reset

REMEMBERED_SECONDS = 5  # what is near, as somebody may join another network; and names, as programs connect often
MOST_REMEMBERED = 4096
PATIENCE_SECONDS = 20.0
NEXT_ADDRESS_MILLISECONDS = 250  # RFC 8305: an address that does not answer must not hold up the next
LOCAL_SECONDS = 5.0
ORIGINAL_DESTINATION = 80  # SO_ORIGINAL_DST, and IP6T_SO_ORIGINAL_DST
Address = IPv4Address | IPv6Address


def run(relay: Relay, channel: int, end: int, report: int) -> None:
    """Serve the sockets that the channel brings until `end` can be read. `report` is told that all is ready."""
    # A name of the box that fails would be asked for again, with what this host appends to its own names.
    os.environ["LOCALDOMAIN"] = ""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    for own in _receive(socket.socket(fileno=channel)):
        relay.take(own)
    os.write(report, READY)
    relay.run(end)


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


class Opened(Connection):
    """A connection that a program of the box has opened."""

    def __init__(self, client: socket.socket, kind: int, name: str, port: int) -> None:
        super().__init__(client, name, port)
        self.kind = kind
        self.is_listed = kind in (NAME, ADDRESS)  # the list decides about it, and the journal knows it
        self.first = b""  # what the client said, before it is known what that is
        self.is_checked = kind != NAME  # only a name can be compared with what the client says
        self.refusal: Refusal | None = None
        self.is_leaving = False  # it was told why


class Relay(Carrier[Opened]):
    """All traffic between the box and the world."""

    def __init__(self, hosts: HostList, notes: Notes, near: tuple[str, ...], host_ports: set[int]) -> None:
        super().__init__(dial)
        self.hosts = hosts
        self.name_server = NameServer(hosts, notes.refused_lookup)
        self.notes = notes
        self.near = near
        self.host_ports = host_ports

    def take(self, own: socket.socket) -> None:
        """Serve a socket of the box's network."""
        port = own.getsockname()[1]
        if own.type == socket.SOCK_DGRAM:
            own.setblocking(False)
            self.handle(own.fileno(), lambda _: self.name_server.answer_datagrams(own))
        elif port == DNS_PORT:
            self.listen(own, lambda client: Opened(client, LOOKUP, "", 0))
        elif port in self.host_ports:
            self.listen(own, lambda client: Opened(client, LOCALHOST, "localhost", port))
        else:
            self.listen(own, self._opened)

    def _opened(self, client: socket.socket) -> Opened:
        packed, port = original_destination(client)
        name = self.name_server.name_of(packed)
        if name:
            return Opened(client, NAME, name, port)
        family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
        return Opened(client, ADDRESS, socket.inet_ntop(family, packed), port)

    def begin(self, connection: Opened) -> None:
        refusal = self._objection(connection)
        if refusal is None and connection.kind != LOOKUP:
            super().begin(connection)
            return
        self.admit(connection)
        if refusal is not None:
            self.refuse(connection, refusal)
        else:
            self._listen_until(connection, LOOKUP_SECONDS)

    def _objection(self, connection: Opened) -> Refusal | None:
        """Why the list does not allow this; None if it does."""
        name, port = connection.name, connection.port
        if not connection.is_listed or self.hosts.permits(name, port):
            return None
        if connection.kind == ADDRESS and not self.hosts.knows(name):
            text = f"{name} is not in this box's list: it reaches names, and addresses that are listed"
        else:
            text = f"port {port} of {name} is not in this box's list"
        return Refusal(text, is_lists=port != 0 and can_be_listed(name, self.near))

    # Refusals

    def refuse(self, connection: Opened, failure: Exception) -> None:
        """Say why, in the client's own protocol: so the client has to speak first."""
        unknown = f"{connection.name}: {type(failure).__name__}"
        connection.refusal = failure if isinstance(failure, Refusal) else Refusal(unknown, NO_ALERT)
        if connection.is_listed:
            self.notes.not_made(connection.name, connection.port, connection.refusal)
        if connection.server is not None:
            self.forget(connection.server)
            connection.server = connection.flows = None
        self._listen_until(connection, SILENCE_SECONDS)
        if connection.first:
            self._say_why(connection, connection.refusal)

    def _say_why(self, connection: Opened, refusal: Refusal) -> None:
        said = greeting.in_words_of(connection.first, refusal)
        if said is None and len(connection.first) < MOST_FIRST_BYTES:
            return  # more would tell
        if not said:
            self.close(connection, reset=True)
            return
        connection.client.send(said)
        connection.client.shutdown(socket.SHUT_WR)
        connection.is_leaving = True
        self._listen_until(connection, LEAVE_SECONDS)

    def _listen_until(self, connection: Opened, seconds: float) -> None:
        connection.deadline = time.monotonic() + seconds
        self.watch(connection.client.fileno(), select.EPOLLIN)

    def hear(self, connection: Opened, event: int) -> None:
        if connection.refusal is None and connection.kind != LOOKUP:
            super().hear(connection, event)
            return
        data = connection.client.recv(FIRST_BYTES)
        if not data:
            self.close(connection)
        elif connection.refusal is None:
            rest = self.name_server.answer_stream(connection.client, connection.first + data)
            if rest is None:
                self.close(connection)
            else:
                connection.first = rest
        elif not connection.is_leaving:
            connection.first += data
            self._say_why(connection, connection.refusal)

    # What is carried

    def move(self, connection: Opened, flow: Flow) -> None:
        if flow.source is connection.client and not connection.is_checked:
            self._check_first(connection, flow)
        else:
            super().move(connection, flow)

    def _check_first(self, connection: Opened, out: Flow) -> None:
        """Look at what the client says first. If it is TLS, it has to name the host that it asked DNS for."""
        data = connection.client.recv(FIRST_BYTES)
        connection.first += data
        if not connection.first:
            connection.is_checked = True
            out.end()
            return
        try:
            is_known = not greeting.is_tls(connection.first) or _names_its_host(connection, is_all=not data)
        except Refusal as refusal:
            self.refuse(connection, refusal)
            return
        if not is_known:
            connection.deadline = connection.since + HELLO_SECONDS
            return
        connection.is_checked, connection.deadline = True, 0.0
        out.rest, connection.first = connection.first, b""
        out.move(self.buffer)

    def close(self, connection: Opened, *, reset: bool = False) -> None:
        if connection.flows is not None and connection.is_listed and not connection.is_closed:
            lasted = round((time.monotonic() - connection.since) * 1000)
            out, back = (flow.carried for flow in connection.flows)
            self.notes.carried(connection.name, connection.port, out, back, lasted)
        super().close(connection, reset=reset)


def _names_its_host(connection: Opened, *, is_all: bool) -> bool:
    """Whether a ClientHello names the host that it goes to; False if it is not complete yet. Raises a Refusal."""
    name = connection.name
    try:
        said = greeting.server_name(connection.first)
    except greeting.BadHello as bad:
        raise Refusal(f"TLS to {name}: {bad}", greeting.ILLEGAL_PARAMETER) from None
    if said is None and (is_all or len(connection.first) > MOST_FIRST_BYTES):
        raise Refusal(f"TLS to {name}: the ClientHello is not complete", greeting.ILLEGAL_PARAMETER)
    if said is not None and said.removesuffix(".") != name:
        raise Refusal(f"TLS for {said or 'no name'} on a connection to {name}", greeting.UNRECOGNIZED_NAME)
    return said is not None


# To connect: threads do it


def dial(connection: Opened) -> socket.socket:
    """Connect to where this one leads. Raises a Refusal if no address of the internet answers."""
    name, port = connection.name, connection.port
    if connection.kind == LOCALHOST:
        try:
            return socket.create_connection(("127.0.0.1", port), LOCAL_SECONDS)
        except OSError as error:
            raise Refusal(f"port {port} of this host: {error.strerror or error}", NO_ALERT) from None
    is_name, period = connection.kind == NAME, time.monotonic() // REMEMBERED_SECONDS
    near = _near(period)
    found = dict.fromkeys(map(_as_kernel_sees, _addresses_of(name, period) if is_name else (name,)))
    judged = [(address, rejected_range(address, near)) for address in found]
    public = [address for address, rejected in judged if rejected is None]
    if not public:
        objection = f"{name} leads to a private address" if is_name else "this is a private address"
        raise Refusal(f"{objection}: {next((f'{address} ({why[1]})' for address, why in judged if why), 'none')}")
    return _connect_first(public, port)


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
