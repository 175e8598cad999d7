"""Serves each connection in a thread of its own, and carries bytes both ways between two of them.

A thread reads from top to bottom: connect, check, carry, refuse. It reads no more from one end while the other has not
taken what was read before. The end of one direction is passed on, and the other direction goes on.
"""

from __future__ import annotations

import math
import resource
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

Work = Callable[[socket.socket], None]
Listener = tuple[socket.socket, Work]

CHUNK = 1 << 16
MOST_CONNECTIONS = 1000  # those beyond wait in the kernel
DESCRIPTORS_FOR_OTHERS = 64
STACK_BYTES = 1 << 20
PAUSE_SECONDS = 0.05  # when there is no room for a connection
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close at once, and let the other end know
LOOPBACKS = ("127.0.0.1", "::1")  # in this order: most servers are at the first one
LOOPBACK_SECONDS = 5.0


def serve(
    listeners: Iterable[Listener], ends: Iterable[int] = (), most: int = MOST_CONNECTIONS, stack: int = STACK_BYTES
) -> None:
    """Serve what arrives at each listener until one of `ends` can be read; without them, until the process ends."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    threading.stack_size(stack)
    room = (limit - DESCRIPTORS_FOR_OTHERS) // 3  # of each connection: the client, the server, and another one tried
    places = threading.BoundedSemaphore(max(1, min(most, room)))
    by_number = {listener.fileno(): (listener, work) for listener, work in listeners}
    poll = select.poll()
    for number in (*by_number, *ends):
        poll.register(number, select.POLLIN)
    for listener, _ in by_number.values():
        listener.setblocking(False)
    while by_number.keys() >= (ready := dict(poll.poll()).keys()):
        for number in ready:
            _accept(*by_number[number], places)


def _accept(listener: socket.socket, work: Work, places: threading.BoundedSemaphore) -> None:
    if not places.acquire(timeout=PAUSE_SECONDS):
        return
    try:
        client, _ = listener.accept()
    except OSError:
        places.release()
        time.sleep(PAUSE_SECONDS)  # the client went away again, or there are no descriptors left
        return
    try:
        threading.Thread(target=_serve_one, args=(work, client, places), daemon=True).start()
    except RuntimeError:  # the box may have used up this user's processes
        client.close()
        places.release()


def _serve_one(work: Work, client: socket.socket, places: threading.BoundedSemaphore) -> None:
    try:
        with client:
            try:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                work(client)
            except OSError:
                reset(client)
    finally:
        places.release()


def reset(end: socket.socket) -> None:
    """Have the other side know, when this end is closed, that something went wrong."""
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def say_last(client: socket.socket, words: bytes, seconds: float) -> None:
    """Say this, then read for a moment longer: closing with unread data resets the connection, and the words are
    lost."""
    client.sendall(words)
    client.shutdown(socket.SHUT_WR)
    client.settimeout(seconds)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and client.recv(CHUNK):
        pass


class Flow:
    """One direction of a connection."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source = source
        self.target = target
        self.rest = b""  # what was read and could not be written yet; nothing more is read until it is
        self.is_ended = False
        self.carried = 0
        self.deadline = math.inf

    @property
    def waits_for(self) -> tuple[int, int]:
        """The descriptor, and the event of it."""
        return (self.target.fileno(), select.POLLOUT) if self.rest else (self.source.fileno(), select.POLLIN)

    def move(self) -> None:
        """Carry what there is, as far as the target takes it. The source's end is passed on."""
        if not self.rest:
            self.rest = self.source.recv(CHUNK)
            if not self.rest:
                self.end()
                return
        sent = self.target.send(self.rest)
        self.carried += sent
        self.rest = self.rest[sent:]

    def end(self) -> None:
        self.is_ended = True
        self.target.shutdown(socket.SHUT_WR)


def carry(*flows: Flow) -> None:
    """Carry until every direction has ended, or something fails: then every end is reset."""
    ends = [flow.source for flow in flows]
    try:
        for end in ends:
            end.setblocking(False)
        while waiting := [flow for flow in flows if not flow.is_ended]:
            _carry_once(waiting)
    except OSError:
        for end in ends:
            reset(end)


def _carry_once(flows: list[Flow]) -> None:
    events: dict[int, int] = {}
    for flow in flows:
        number, event = flow.waits_for
        events[number] = events.get(number, 0) | event
    poll = select.poll()
    for number, event in events.items():
        poll.register(number, event)
    left = min(flow.deadline for flow in flows) - time.monotonic()
    if left < 0:
        raise TimeoutError
    ready = dict(poll.poll(None if left == math.inf else left * 1000))
    for flow in flows:
        if flow.waits_for[0] in ready:
            with suppress(BlockingIOError):
                flow.move()


def carry_to_loopback(listeners: list[tuple[int, int]]) -> None:
    """Carry what arrives at each listener to a port of the loopback of this process's network.

    Many development servers listen at ::1 alone. A port at which nobody listens resets the connection.
    """
    serve((socket.socket(fileno=descriptor), partial(carry_to, LOOPBACKS, port)) for descriptor, port in listeners)


def carry_to(addresses: tuple[str, ...], port: int, client: socket.socket) -> None:
    """Carry a connection to the first of these addresses at which somebody listens."""
    for address in addresses:
        with suppress(OSError), socket.create_connection((address, port), LOOPBACK_SECONDS) as server:
            make_lasting(server)
            carry(Flow(client, server), Flow(server, client))
            return
    raise ConnectionResetError


def make_lasting(server: socket.socket) -> None:
    """Disable Nagle, and have the kernel notice a server that has vanished."""
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
