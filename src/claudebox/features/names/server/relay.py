"""Accepts what the box opens, and decides: carry it, or say why not. One thread does it all, but for dialling.

Copying in one thread takes a second of processor for a gigabyte; `splice` is no faster, and `asyncio` half as fast.
"""

from __future__ import annotations

import resource
import select
import socket
import struct
import time

from claudebox.features.names.rules import NameList, can_be_listed
from claudebox.features.names.server.connection import (
    ANSWERING,
    CARRYING,
    DIALLING,
    LEAVING,
    REFUSING,
    Connection,
    Route,
    make_quick,
    original_destination,
)
from claudebox.features.names.server.diallers import Diallers
from claudebox.features.names.server.hello import BadHello, is_tls, server_name
from claudebox.features.names.server.invented import Invented
from claudebox.features.names.server.lookups import answer_datagrams, answer_stream
from claudebox.features.names.server.notes import Notes
from claudebox.features.names.server.refusal import ILLEGAL_PARAMETER, UNRECOGNIZED_NAME, Refusal, in_words_of
from claudebox.features.names.terms import DATAGRAMS, HOST_PORT, LOOKUPS, PUBLISHED

CHUNK = 1 << 16
MOST_CONNECTIONS = 1000  # those beyond wait in the kernel
DESCRIPTORS_FOR_OTHERS = 64
AT_ONCE = 64  # connections or queries, before it is another's turn
FIRST_BYTES = 1 << 14
MOST_FIRST_BYTES = 1 << 16
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close at once, and let the other end know
SWEEP_SECONDS = 0.5
HELLO_SECONDS = 10.0
LOOKUP_SECONDS = 10.0
# A client that says nothing is refused without words; on a busy machine it takes seconds to begin.
SILENCE_SECONDS = 5.0
LEAVE_SECONDS = 5.0  # to read what the client still says: else the refusal would be lost in a reset


class Listener:
    """A socket on which something arrives: queries, or connections of one kind."""

    def __init__(self, own: socket.socket, kind: str, port: int = 0) -> None:
        own.setblocking(False)
        self.socket = own
        self.kind = kind
        self.port = port


class Relay:
    """Everything that is said between the box and the world."""

    def __init__(self, names: NameList, notes: Notes, diallers: Diallers) -> None:
        self.names = names
        self.invented = Invented(names)
        self.notes = notes
        self.diallers = diallers
        self.poll = select.epoll()
        self.listeners: dict[int, Listener] = {}
        self.by_descriptor: dict[int, Connection] = {}
        self.masks: dict[int, int] = {}
        self.connections: set[Connection] = set()
        self.buffer = memoryview(bytearray(CHUNK))
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.most = max(1, min(MOST_CONNECTIONS, (limit - DESCRIPTORS_FOR_OTHERS) // 3))
        self.is_full = False

    def listen(self, listener: Listener) -> None:
        self.listeners[listener.socket.fileno()] = listener
        self.poll.register(listener.socket, select.EPOLLIN)

    def run(self, end: int) -> None:
        """Serve until this descriptor becomes readable."""
        self.poll.register(end, select.EPOLLIN)
        self.poll.register(self.diallers.bell, select.EPOLLIN)
        sweep = 0.0
        while True:
            for descriptor, event in self.poll.poll(1 if self.connections else None):
                if descriptor == end:
                    return
                if descriptor == self.diallers.bell:
                    for connection, server, refusal in self.diallers.take():
                        self._dialled(connection, server, refusal)
                elif descriptor in self.listeners:
                    self._arrived(self.listeners[descriptor])
                elif descriptor in self.by_descriptor:
                    self._serve(self.by_descriptor[descriptor], descriptor, event)
            if time.monotonic() - sweep > SWEEP_SECONDS:
                sweep = time.monotonic()
                for late in [each for each in self.connections if 0 < each.deadline < sweep]:
                    self._close(late, reset=True)

    # What arrives

    def _arrived(self, listener: Listener) -> None:
        if listener.kind == DATAGRAMS:
            answer_datagrams(listener.socket, self.invented, self.notes)
            return
        for _ in range(AT_ONCE):
            if len(self.connections) >= self.most:
                self._set_full(True)
                return
            try:
                client, _ = listener.socket.accept()
            except BlockingIOError:
                return
            except OSError:
                time.sleep(SWEEP_SECONDS / 10)  # no descriptor is left for it, for instance
                return
            try:
                self._begin(client, listener)
            except OSError:
                client.close()  # it has given up already, or the kernel no longer knows where it wanted to go

    def _set_full(self, is_full: bool) -> None:
        """When there are too many connections, those that come are left to the kernel until some have ended."""
        self.is_full = is_full
        for descriptor, listener in self.listeners.items():
            if listener.kind != DATAGRAMS:
                self.poll.modify(descriptor, 0 if is_full else select.EPOLLIN)

    def _begin(self, client: socket.socket, listener: Listener) -> None:
        make_quick(client)
        connection = Connection(client, self._route(client, listener))
        self.connections.add(connection)
        self.by_descriptor[client.fileno()] = connection
        self._watch(client, select.EPOLLRDHUP)
        if connection.route.kind == Route.LOOKUP:
            connection.state, connection.deadline = ANSWERING, connection.since + LOOKUP_SECONDS
            self._watch(client, select.EPOLLIN)
            return
        refusal = self._objection(connection.route)
        if refusal is None:
            self.diallers.dial(connection)
        else:
            self._refuse(connection, refusal)

    def _route(self, client: socket.socket, listener: Listener) -> Route:
        if listener.kind == LOOKUPS:
            return Route(Route.LOOKUP, "", 0)
        if listener.kind == HOST_PORT:
            return Route(Route.HOST_PORT, HOST_PORT, listener.port)
        if listener.kind == PUBLISHED:
            return Route(Route.PUBLISHED, PUBLISHED, listener.port)
        packed, port = original_destination(client)
        name = self.invented.name_of(packed)
        if name:
            return Route(Route.NAME, name, port)
        family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
        return Route(Route.ADDRESS, socket.inet_ntop(family, packed), port)

    def _objection(self, route: Route) -> Refusal | None:
        """Why the list does not allow this; None if it does."""
        if not route.is_listed or self.names.permits(route.name, route.port):
            return None
        if route.kind == Route.ADDRESS and not self.names.knows(route.name):
            text = f"{route.name} is not in this box's list: it reaches names, and addresses that are listed"
        else:
            text = f"port {route.port} of {route.name} is not in this box's list"
        near = self.diallers.surroundings.near
        return Refusal(text, is_lists=route.port != 0 and can_be_listed(route.name, near))

    # What comes of it

    def _dialled(self, connection: Connection, server: socket.socket | None, refusal: Refusal | None) -> None:
        if connection not in self.connections:
            if server is not None:
                server.close()  # nobody waits for it any more
            return
        if server is None:
            self._refuse(connection, refusal or Refusal("no connection", 0))
            return
        connection.join(server)
        self.by_descriptor[server.fileno()] = connection
        self._watch_both(connection)

    def _refuse(self, connection: Connection, refusal: Refusal) -> None:
        """Say why in the client's own protocol, for which it has to speak first."""
        route = connection.route
        if route.is_listed:
            self.notes.not_made(route.name, route.port, refusal)
        if connection.server is not None:
            self._forget(connection.server)
            connection.server = connection.out = connection.back = None
        connection.refusal = refusal
        connection.state, connection.deadline = REFUSING, time.monotonic() + SILENCE_SECONDS
        if connection.first:
            self._say_why(connection, refusal)
        else:
            self._watch(connection.client, select.EPOLLIN)

    def _say_why(self, connection: Connection, refusal: Refusal) -> None:
        said = in_words_of(connection.first, refusal)
        if said is None and len(connection.first) < MOST_FIRST_BYTES:
            self._watch(connection.client, select.EPOLLIN)
            return
        if not said:
            self._close(connection, reset=True)
            return
        try:
            connection.client.send(said)
            connection.client.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(connection, reset=True)
            return
        self._watch(connection.client, select.EPOLLIN)
        connection.state, connection.deadline = LEAVING, time.monotonic() + LEAVE_SECONDS

    # Connections that are there

    def _serve(self, connection: Connection, descriptor: int, event: int) -> None:
        try:
            if event & select.EPOLLERR:
                self._close(connection, reset=True)
            elif connection.state == CARRYING:
                self._carry(connection, descriptor, event)
            elif connection.state == DIALLING:
                self._wait_on(connection, event)
            else:
                self._listen_to(connection)
        except BlockingIOError:
            pass  # an event of a connection that had this number before, earlier in the same batch
        except OSError:
            self._close(connection, reset=True)

    def _wait_on(self, connection: Connection, event: int) -> None:
        if event & select.EPOLLHUP:
            self._close(connection)
        else:
            self._watch(connection.client, 0)  # half closed: it still waits for an answer

    def _listen_to(self, connection: Connection) -> None:
        data = connection.client.recv(FIRST_BYTES)
        if not data:
            self._close(connection)
        elif connection.state == ANSWERING:
            connection.first += data
            if not answer_stream(connection, self.invented, self.notes):
                self._close(connection)
        elif connection.state == REFUSING and connection.refusal is not None:
            connection.first += data
            self._say_why(connection, connection.refusal)

    def _carry(self, connection: Connection, descriptor: int, event: int) -> None:
        assert connection.out is not None
        assert connection.back is not None
        is_clients = descriptor == connection.client.fileno()
        near, far = (connection.out, connection.back) if is_clients else (connection.back, connection.out)
        if event & ~select.EPOLLOUT and not near.is_ended:
            if near is connection.out and not connection.is_checked:
                self._check_first(connection)
                if connection.state != CARRYING:
                    return
            else:
                near.move(self.buffer)
        # What is left over was looked at. An event of a connection that had this number before must move nothing else.
        if event & select.EPOLLOUT and far.rest and not far.is_ended:
            far.move(self.buffer)
        if connection.is_over:
            self._close(connection)
        else:
            self._watch_both(connection)

    def _check_first(self, connection: Connection) -> None:
        """Look at what the client says first. If it is TLS, it has to name the host that it asked DNS for."""
        assert connection.out is not None
        data = connection.client.recv(FIRST_BYTES)
        connection.first += data
        if not data and not connection.first:
            connection.is_checked = True
            connection.out.end()
            return
        try:
            is_known = not is_tls(connection.first) or self._names_its_host(connection, is_all=not data)
        except Refusal as refusal:
            self._refuse(connection, refusal)
            return
        if not is_known:
            connection.deadline = connection.since + HELLO_SECONDS
            return
        connection.is_checked, connection.deadline = True, 0.0
        connection.out.rest, connection.first = connection.first, b""
        connection.out.move(self.buffer)

    def _names_its_host(self, connection: Connection, *, is_all: bool) -> bool:
        """Whether a ClientHello names the host that it goes to; False if it is not complete yet. Else a Refusal."""
        name = connection.route.name
        try:
            said = server_name(connection.first)
        except BadHello as bad:
            raise Refusal(f"TLS to {name}: {bad}", ILLEGAL_PARAMETER) from None
        if said is None and (is_all or len(connection.first) > MOST_FIRST_BYTES):
            raise Refusal(f"TLS to {name}: the ClientHello is not complete", ILLEGAL_PARAMETER)
        if said is not None and said.removesuffix(".") != name:
            raise Refusal(f"TLS for {said or 'no name'} on a connection to {name}", UNRECOGNIZED_NAME)
        return said is not None

    # What the kernel is asked to tell

    def _watch_both(self, connection: Connection) -> None:
        for end, mask in connection.interests():
            self._watch(end, mask)

    def _watch(self, end: socket.socket, mask: int) -> None:
        """Wait for these events. Where there are none to wait for, the kernel would still tell of an end, and again."""
        descriptor = end.fileno()
        known = self.masks.pop(descriptor, 0)
        if mask and not known:
            self.poll.register(descriptor, mask)
        elif known and not mask:
            self.poll.unregister(descriptor)
        elif known != mask:
            self.poll.modify(descriptor, mask)
        if mask:
            self.masks[descriptor] = mask

    def _forget(self, end: socket.socket) -> None:
        self.by_descriptor.pop(end.fileno(), None)
        self.masks.pop(end.fileno(), None)
        end.close()

    def _close(self, connection: Connection, *, reset: bool = False) -> None:
        if connection not in self.connections:
            return
        self.connections.discard(connection)
        connection.is_gone = True
        self.diallers.forget(connection)
        route = connection.route
        if route.is_listed and connection.out is not None and connection.back is not None:
            lasted = round((time.monotonic() - connection.since) * 1000)
            self.notes.carried(route.name, route.port, connection.out.carried, connection.back.carried, lasted)
        for end in (connection.client, connection.server):
            if end is not None:
                if reset:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                self._forget(end)
        if self.is_full and len(self.connections) < self.most * 9 // 10:
            self._set_full(False)
