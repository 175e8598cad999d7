"""Runs the process outside: takes the box's sockets, decides about each connection, and says why if it carries none."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from functools import partial

from claudebox.features.names.act import ALL, LIFE
from claudebox.features.names.namespace import CONNECTIONS, DATAGRAMS, HOST_PORT, LOOKUPS
from claudebox.features.names.rules import NameList, can_be_listed
from claudebox.features.names.server.dial import THE_NETWORKS, Surroundings, dial_address, dial_localhost, dial_name
from claudebox.features.names.server.dns import Invented, answer_datagrams, answer_stream
from claudebox.features.names.server.greeting import (
    ILLEGAL_PARAMETER,
    UNRECOGNIZED_NAME,
    BadHello,
    Refusal,
    in_words_of,
    is_tls,
    server_name,
)
from claudebox.features.names.server.notes import Asker, Notes
from claudebox.model import Names
from claudebox.process.companion import READY
from claudebox.servers.carrier import Carrier, Connection, Flow, raise_file_limit

# Where a connection leads: to a name, an address, a port of this host, or to the box's name server.
NAME, ADDRESS, LOCALHOST, LOOKUP = range(4)
# What is being done with it.
DIALLING, REFUSING, LEAVING, ANSWERING = range(4)

LONGEST_WORDS = 64
ORIGINAL_DESTINATION = 80  # SO_ORIGINAL_DST, and IP6T_SO_ORIGINAL_DST
FIRST_BYTES = 1 << 14
MOST_FIRST_BYTES = 1 << 16
HELLO_SECONDS = 10.0
LOOKUP_SECONDS = 10.0
# A client that says nothing is refused without words; on a busy machine it takes seconds to begin.
SILENCE_SECONDS = 5.0
LEAVE_SECONDS = 5.0  # to read what the client still says: else the refusal would be lost in a reset


def run(names: Names, channel: int, end: int, report: int) -> None:
    """Serve the box until `end` can be read. `report` is told that all is ready."""
    # A name of the box that fails would be asked for again, with what this host appends to its own names.
    os.environ["LOCALDOMAIN"] = ""
    raise_file_limit()
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    received = list(_receive(socket.socket(fileno=channel)))
    listing = NameList(names.allowed)
    asker = Asker(names.notifier, listing) if names.notifier else None
    relay = Relay(listing, Notes(names.journal, names.refused, asker), Surroundings(names.near))
    for words, own in received:
        kind, _, port = words.partition(" ")
        if kind != LIFE:
            relay.take(socket.socket(fileno=own), kind, int(port or 0))
    os.write(report, READY)
    relay.run(end)


def _receive(channel: socket.socket) -> Iterator[tuple[str, int]]:
    """What the box's network consists of: words that say what a descriptor is for, and the descriptor."""
    while True:
        words, descriptors, _, _ = socket.recv_fds(channel, LONGEST_WORDS, 1)
        if words == ALL.encode():
            return
        if not words:
            os._exit(1)  # whoever makes the box's network has ended before it was made
        yield words.decode(), descriptors[0]


class Opened(Connection):
    """What a program of the box has opened."""

    def __init__(self, client: socket.socket, kind: int, name: str, port: int) -> None:
        super().__init__(client, name, port)
        self.kind = kind
        self.is_listed = kind in (NAME, ADDRESS)  # the list decides about it, and the journal knows it
        self.state = DIALLING
        self.first = b""  # what the client said, before it is known what that is
        self.is_checked = kind != NAME  # only a name can be compared with what the client says
        self.refusal: Refusal | None = None


class Relay(Carrier[Opened]):
    """Everything that is said between the box and the world."""

    def __init__(self, names: NameList, notes: Notes, surroundings: Surroundings) -> None:
        super().__init__(self._dial)
        self.names = names
        self.invented = Invented(names)
        self.notes = notes
        self.surroundings = surroundings

    def take(self, own: socket.socket, kind: str, port: int) -> None:
        """Serve a socket of the box's network."""
        if kind == DATAGRAMS:
            own.setblocking(False)
            answer = partial(answer_datagrams, own, self.invented, self.notes.refused_lookup)
            self.handle(own.fileno(), answer)
        elif kind == CONNECTIONS:
            self.listen(own, self._opened)
        elif kind == LOOKUPS:
            self.listen(own, lambda client: Opened(client, LOOKUP, "", 0))
        elif kind == HOST_PORT:
            self.listen(own, lambda client: Opened(client, LOCALHOST, HOST_PORT, port))

    def _opened(self, client: socket.socket) -> Opened:
        packed, port = original_destination(client)
        name = self.invented.name_of(packed)
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
            return
        connection.state, connection.deadline = ANSWERING, connection.since + LOOKUP_SECONDS
        self.watch(connection.client, select.EPOLLIN)

    def _objection(self, connection: Opened) -> Refusal | None:
        """Why the list does not allow this; None if it does."""
        name, port = connection.name, connection.port
        if not connection.is_listed or self.names.permits(name, port):
            return None
        if connection.kind == ADDRESS and not self.names.knows(name):
            text = f"{name} is not in this box's list: it reaches names, and addresses that are listed"
        else:
            text = f"port {port} of {name} is not in this box's list"
        return Refusal(text, is_lists=port != 0 and can_be_listed(name, self.surroundings.near))

    def _dial(self, connection: Opened) -> socket.socket:
        if connection.kind == NAME:
            return dial_name(connection.name, connection.port, self.surroundings)
        if connection.kind == ADDRESS:
            return dial_address(connection.name, connection.port, self.surroundings)
        return dial_localhost(connection.port)

    # Refusals

    def refuse(self, connection: Opened, failure: Exception | None) -> None:
        """Say why in the client's own protocol, for which it has to speak first."""
        unknown = f"{connection.name}: {type(failure).__name__}"
        refusal = failure if isinstance(failure, Refusal) else Refusal(unknown, THE_NETWORKS)
        if connection.is_listed:
            self.notes.not_made(connection.name, connection.port, refusal)
        if connection.server is not None:
            self.forget(connection.server)
            connection.server = connection.out = connection.back = None
        connection.refusal = refusal
        connection.state, connection.deadline = REFUSING, time.monotonic() + SILENCE_SECONDS
        if connection.first:
            self._say_why(connection, refusal)
        else:
            self.watch(connection.client, select.EPOLLIN)

    def _say_why(self, connection: Opened, refusal: Refusal) -> None:
        said = in_words_of(connection.first, refusal)
        if said is None and len(connection.first) < MOST_FIRST_BYTES:
            self.watch(connection.client, select.EPOLLIN)
            return
        if not said:
            self.close(connection, reset=True)
            return
        try:
            connection.client.send(said)
            connection.client.shutdown(socket.SHUT_WR)
        except OSError:
            self.close(connection, reset=True)
            return
        self.watch(connection.client, select.EPOLLIN)
        connection.state, connection.deadline = LEAVING, time.monotonic() + LEAVE_SECONDS

    def hear(self, connection: Opened, event: int) -> None:
        if connection.state == DIALLING:
            super().hear(connection, event)
            return
        data = connection.client.recv(FIRST_BYTES)
        if not data:
            self.close(connection)
        elif connection.state == ANSWERING:
            said = connection.first + data
            rest = answer_stream(connection.client, said, self.invented, self.notes.refused_lookup)
            if rest is None:
                self.close(connection)
            else:
                connection.first = rest
        elif connection.state == REFUSING and connection.refusal is not None:
            connection.first += data
            self._say_why(connection, connection.refusal)

    # What is carried

    def move(self, connection: Opened, flow: Flow) -> None:
        if flow is connection.out and not connection.is_checked:
            self._check_first(connection, flow)
        else:
            super().move(connection, flow)

    def _check_first(self, connection: Opened, out: Flow) -> None:
        """Look at what the client says first. If it is TLS, it has to name the host that it asked DNS for."""
        data = connection.client.recv(FIRST_BYTES)
        connection.first += data
        if not data and not connection.first:
            connection.is_checked = True
            out.end()
            return
        try:
            is_known = not is_tls(connection.first) or self._names_its_host(connection, is_all=not data)
        except Refusal as refusal:
            self.refuse(connection, refusal)
            return
        if not is_known:
            connection.deadline = connection.since + HELLO_SECONDS
            return
        connection.is_checked, connection.deadline = True, 0.0
        out.rest, connection.first = connection.first, b""
        out.move(self.buffer)

    def _names_its_host(self, connection: Opened, *, is_all: bool) -> bool:
        """Whether a ClientHello names the host that it goes to; False if it is not complete yet. Else a Refusal."""
        name = connection.name
        try:
            said = server_name(connection.first)
        except BadHello as bad:
            raise Refusal(f"TLS to {name}: {bad}", ILLEGAL_PARAMETER) from None
        if said is None and (is_all or len(connection.first) > MOST_FIRST_BYTES):
            raise Refusal(f"TLS to {name}: the ClientHello is not complete", ILLEGAL_PARAMETER)
        if said is not None and said.removesuffix(".") != name:
            raise Refusal(f"TLS for {said or 'no name'} on a connection to {name}", UNRECOGNIZED_NAME)
        return said is not None

    def close(self, connection: Opened, *, reset: bool = False) -> None:
        out, back = connection.out, connection.back
        if connection in self.connections and connection.is_listed and out is not None and back is not None:
            lasted = round((time.monotonic() - connection.since) * 1000)
            self.notes.carried(connection.name, connection.port, out.carried, back.carried, lasted)
        super().close(connection, reset=reset)


def original_destination(client: socket.socket) -> tuple[bytes, int]:
    """Where a program of the box wanted to connect to, before nft led it here: the packed address, and the port."""
    if client.family == socket.AF_INET6:
        raw = client.getsockopt(socket.IPPROTO_IPV6, ORIGINAL_DESTINATION, 28)
        return raw[8:24], int.from_bytes(raw[2:4], "big")
    raw = client.getsockopt(socket.IPPROTO_IP, ORIGINAL_DESTINATION, 16)
    return raw[4:8], int.from_bytes(raw[2:4], "big")
