"""One connection of the box: what has become of it, and the bytes that are under way in it."""

from __future__ import annotations

import select
import socket
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features.names.server.refusal import Refusal

# What is being done with a connection.
DIALLING, CARRYING, REFUSING, LEAVING, ANSWERING = range(5)

ORIGINAL_DESTINATION = 80  # SO_ORIGINAL_DST, and IP6T_SO_ORIGINAL_DST
TURN = 8  # pieces of one connection, before it is another's turn


class Route:
    """Where a connection should go: to a name, an address, a port of this host, or a port of the box."""

    __slots__ = ("is_listed", "kind", "name", "port")

    NAME, ADDRESS, HOST_PORT, PUBLISHED, LOOKUP = range(5)

    def __init__(self, kind: int, name: str, port: int) -> None:
        self.kind = kind
        self.name = name
        self.port = port
        self.is_listed = kind in (Route.NAME, Route.ADDRESS)  # the list decides about it, and the journal knows it


class Flow:
    """One direction of a connection."""

    __slots__ = ("carried", "is_ended", "rest", "source", "target")

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source = source
        self.target = target
        self.rest = b""  # what was read and could not be written yet; nothing more is read until it is
        self.is_ended = False
        self.carried = 0

    def move(self, buffer: memoryview) -> None:
        """Carry what there is, as far as the target takes it. The source's end is passed on."""
        for _ in range(TURN):
            if self.rest and not self._write_rest():
                return
            try:
                size = self.source.recv_into(buffer)
            except BlockingIOError:
                return
            if size == 0:
                self.end()
                return
            self._write(buffer[:size])
            if self.rest:
                return

    def end(self) -> None:
        self.is_ended = True
        self.target.shutdown(socket.SHUT_WR)

    def _write_rest(self) -> bool:
        """Whether all of it was written."""
        rest, self.rest = self.rest, b""
        self._write(memoryview(rest))
        return not self.rest

    def _write(self, data: memoryview) -> None:
        try:
            sent = self.target.send(data)
        except BlockingIOError:
            sent = 0
        self.carried += sent
        if sent < len(data):
            self.rest = bytes(data[sent:])


class Connection:
    """What a program of the box, or of this host, has opened."""

    def __init__(self, client: socket.socket, route: Route) -> None:
        self.client = client
        self.route = route
        self.server: socket.socket | None = None
        self.out: Flow | None = None
        self.back: Flow | None = None
        self.state = DIALLING
        self.first = b""  # what the client said, before it is known what that is
        self.is_checked = route.kind != Route.NAME  # only a name can be compared with what the client says
        self.refusal: Refusal | None = None
        self.since = time.monotonic()
        self.deadline = 0.0  # none
        self.is_gone = False

    def join(self, server: socket.socket) -> None:
        self.server = server
        self.out, self.back = Flow(self.client, server), Flow(server, self.client)
        self.state = CARRYING
        self.deadline = 0.0

    def interests(self) -> list[tuple[socket.socket, int]]:
        """What to wait for at each end: a source that may be read, a target that something is left for."""
        if self.out is None or self.back is None:
            return []
        pairs = ((self.out, self.back), (self.back, self.out))
        return [
            (
                mine.source,
                (0 if mine.is_ended or mine.rest else select.EPOLLIN) | (select.EPOLLOUT if other.rest else 0),
            )
            for mine, other in pairs
        ]

    @property
    def is_over(self) -> bool:
        return bool(self.out and self.back and self.out.is_ended and self.back.is_ended)


def make_quick(end: socket.socket) -> None:
    """Have an end never wait, and what is written to it not either."""
    end.setblocking(False)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def original_destination(client: socket.socket) -> tuple[bytes, int]:
    """Where a program of the box wanted to connect to, before nft led it here: the packed address, and the port."""
    if client.family == socket.AF_INET6:
        raw = client.getsockopt(socket.IPPROTO_IPV6, ORIGINAL_DESTINATION, 28)
        return raw[8:24], int.from_bytes(raw[2:4], "big")
    raw = client.getsockopt(socket.IPPROTO_IP, ORIGINAL_DESTINATION, 16)
    return raw[4:8], int.from_bytes(raw[2:4], "big")
