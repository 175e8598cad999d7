"""Accepts connections, connects each to where it leads, and carries bytes both ways between the two.

One thread carries everything. It reads no more from one end while the other has not taken what was read before. The end
of one direction is passed on, and the other direction goes on. To connect can take long, so a few other threads do it.

Copying in one thread takes a second of processor for a gigabyte; `splice` is no faster, and `asyncio` half as fast.
"""

from __future__ import annotations

import os
import queue
import resource
import select
import socket
import struct
import threading
import time
from collections import Counter, defaultdict, deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 1 << 16
TURN = 8  # pieces of one connection, before it is another's turn
AT_ONCE = 64  # connections that are accepted, before it is another's turn
MOST_CONNECTIONS = 1000  # those beyond wait in the kernel
DESCRIPTORS_FOR_OTHERS = 64
SWEEP_SECONDS = 0.5
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close at once, and let the other end know
MOST_THREADS = 16
MOST_FOR_ONE_NAME = 4  # a name whose servers are silent must not hold up the others
STACK_BYTES = 1 << 20
LOOPBACKS = ("127.0.0.1", "::1")  # in this order: most servers are at the first one
LOOPBACK_SECONDS = 5.0


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
            data = memoryview(self.rest)
            if not self.rest:
                try:
                    data = buffer[: self.source.recv_into(buffer)]
                except BlockingIOError:
                    return
                if not data:
                    self.end()
                    return
            try:
                sent = self.target.send(data)
            except BlockingIOError:
                sent = 0
            self.carried += sent
            self.rest = bytes(data[sent:])
            if self.rest:
                return

    def end(self) -> None:
        self.is_ended = True
        self.target.shutdown(socket.SHUT_WR)


class Connection:
    """What a program has opened, and what it is connected to."""

    def __init__(self, client: socket.socket, name: str, port: int) -> None:
        self.client = client
        self.name = name  # of the place to which it leads
        self.port = port
        self.server: socket.socket | None = None
        self.flows: tuple[Flow, Flow] | None = None  # from the client, and to it; None before it is connected
        self.since = time.monotonic()
        self.deadline = 0.0  # none
        self.is_closed = False

    def join(self, server: socket.socket) -> None:
        self.server = server
        self.flows = Flow(self.client, server), Flow(server, self.client)
        self.deadline = 0.0


C = TypeVar("C", bound=Connection)
Result = tuple[C, socket.socket | Exception]


class Diallers(Generic[C]):
    """Threads that connect. A result is the socket, or why there is none; `bell` is readable when there are some."""

    def __init__(self, dial: Callable[[C], socket.socket]) -> None:
        self._dial = dial
        self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.orders: queue.SimpleQueue[C] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[Result[C]] = queue.SimpleQueue()
        self.threads = 0
        self.busy: Counter[str] = Counter()  # how many connections of a name are ordered
        self.waiting: defaultdict[str, deque[C]] = defaultdict(deque)  # and those beyond
        threading.stack_size(STACK_BYTES)
        self._start_thread()

    def dial(self, connection: C) -> None:
        name = connection.name
        if self.busy[name] >= MOST_FOR_ONE_NAME:
            self.waiting[name].append(connection)
            return
        self.busy[name] += 1
        if self.threads < min(self.busy.total(), MOST_THREADS):
            with suppress(RuntimeError):  # the box may have used up this user's processes; there is at least one thread
                self._start_thread()
        self.orders.put(connection)

    def _start_thread(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()
        self.threads += 1

    def forget(self, connection: C) -> None:
        """Drop a connection that ended while it waited, so that a box cannot pile them up."""
        waiting = self.waiting.get(connection.name)
        if waiting and connection in waiting:
            waiting.remove(connection)

    def take(self) -> list[Result[C]]:
        """The results so far."""
        os.eventfd_read(self.bell)
        taken = []
        while not self.results.empty():
            result = self.results.get()
            taken.append(result)
            self._make_room(result[0].name)
        return taken

    def _make_room(self, name: str) -> None:
        self.busy[name] -= 1
        if self.waiting[name]:
            self.dial(self.waiting[name].popleft())
        if not self.waiting[name]:
            del self.waiting[name]
        if not self.busy[name]:
            del self.busy[name]

    def _work(self) -> None:
        while True:
            connection = self.orders.get()
            result: socket.socket | Exception = ConnectionAbortedError()
            try:
                if not connection.is_closed:
                    result = self._dial(connection)
                    make_quick(result)
                    result.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            except Exception as error:  # whatever it was, the connection is not made
                result = error
            self.results.put((connection, result))
            os.eventfd_write(self.bell, 1)


class Carrier(Generic[C]):
    """Everything that one process carries."""

    def __init__(self, dial: Callable[[C], socket.socket]) -> None:
        _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        self.most = max(1, min(MOST_CONNECTIONS, (limit - DESCRIPTORS_FOR_OTHERS) // 3))
        self.diallers = Diallers[C](dial)
        self.poll = select.epoll()
        self.handlers: dict[int, Callable[[int], None]] = {}  # by descriptor; each is told the event
        self.masks: dict[int, int] = {}  # what the kernel tells of a descriptor
        self.listeners: list[int] = []
        self.connections: set[C] = set()
        self.buffer = memoryview(bytearray(CHUNK))
        self.is_full = False

    def listen(self, listener: socket.socket, opened: Callable[[socket.socket], C]) -> None:
        """Accept what arrives here. `opened` says where a client's connection leads."""
        listener.setblocking(False)
        self.listeners.append(listener.fileno())
        self.handle(listener.fileno(), lambda _: self._accept(listener, opened))

    def handle(self, descriptor: int, handler: Callable[[int], None]) -> None:
        """Call this whenever the descriptor can be read."""
        self.handlers[descriptor] = handler
        self.watch(descriptor, select.EPOLLIN)

    def run(self, end: int = -1) -> None:
        """Serve until this descriptor can be read; without one, until the process ends."""
        if end >= 0:
            self.watch(end, select.EPOLLIN)
        self.handle(self.diallers.bell, lambda _: self._take_dialled())
        sweep = 0.0
        while True:
            for descriptor, event in self.poll.poll(1 if self.connections else None):
                if descriptor == end:
                    return
                if descriptor in self.handlers:  # else it was closed by an event of the same batch
                    self.handlers[descriptor](event)
            if time.monotonic() - sweep > SWEEP_SECONDS:
                sweep = time.monotonic()
                for late in [each for each in self.connections if 0 < each.deadline < sweep]:
                    self.close(late, reset=True)

    # What arrives

    def _accept(self, listener: socket.socket, opened: Callable[[socket.socket], C]) -> None:
        for _ in range(AT_ONCE):
            if len(self.connections) >= self.most:
                self._set_full(True)
                return
            try:
                client, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError:
                time.sleep(SWEEP_SECONDS / 10)  # no descriptor is left for it, for instance
                return
            try:
                make_quick(client)
                self.begin(opened(client))
            except OSError:
                client.close()  # it has given up already, or the kernel no longer knows where it wanted to go

    def _set_full(self, is_full: bool) -> None:
        """When there are too many connections, stop accepting: the kernel queues the others until some have ended."""
        self.is_full = is_full
        for descriptor in self.listeners:
            self.watch(descriptor, 0 if is_full else select.EPOLLIN)

    def begin(self, connection: C) -> None:
        self.admit(connection)
        self.diallers.dial(connection)

    def admit(self, connection: C) -> None:
        self.connections.add(connection)
        self.handlers[connection.client.fileno()] = partial(self.serve, connection, connection.client)
        self.watch(connection.client.fileno(), select.EPOLLRDHUP)

    def _take_dialled(self) -> None:
        for connection, result in self.diallers.take():
            if isinstance(result, Exception):
                if not connection.is_closed:
                    self.refuse(connection, result)
            elif connection.is_closed:
                result.close()  # nobody waits for it any more
            else:
                connection.join(result)
                self.handlers[result.fileno()] = partial(self.serve, connection, result)
                self._watch_flows(connection)

    def refuse(self, connection: C, _: Exception) -> None:
        """Give up a connection that could not be made."""
        self.close(connection, reset=True)

    # Connections that are there

    def serve(self, connection: C, end: socket.socket, event: int) -> None:
        """Handle an event of one end."""
        try:
            if event & select.EPOLLERR:
                self.close(connection, reset=True)
            elif connection.flows is None:
                self.hear(connection, event)
            else:
                near, far = connection.flows if end is connection.client else connection.flows[::-1]
                self._carry(connection, near, far, event)
        except BlockingIOError:
            pass  # a stale event, of a connection that had this descriptor before
        except OSError:
            self.close(connection, reset=True)

    def hear(self, connection: C, event: int) -> None:
        """The client has something to say before it is connected."""
        if event & select.EPOLLHUP:
            self.close(connection)
        else:
            self.watch(connection.client.fileno(), 0)  # half closed: it still waits for an answer

    def _carry(self, connection: C, near: Flow, far: Flow, event: int) -> None:
        """`near` begins at the end that the event is about, `far` leads to it."""
        if event & ~select.EPOLLOUT and not near.is_ended:
            self.move(connection, near)
            if connection.flows is None:
                return  # it was refused for what it said
        # Only what was checked before is left over. A stale event, of an earlier connection, must move nothing else.
        if event & select.EPOLLOUT and far.rest and not far.is_ended:
            far.move(self.buffer)
        if near.is_ended and far.is_ended:
            self.close(connection)
        else:
            self._watch_flows(connection)

    def move(self, connection: C, flow: Flow) -> None:  # noqa: ARG002  (for those who look at what is carried)
        flow.move(self.buffer)

    # What epoll waits for

    def _watch_flows(self, connection: C) -> None:
        """Wait until a source can be read, or a target can take what is left."""
        if connection.flows is not None:
            for flow, other in (connection.flows, connection.flows[::-1]):
                reading = 0 if flow.is_ended or flow.rest else select.EPOLLIN
                self.watch(flow.source.fileno(), reading | (select.EPOLLOUT if other.rest else 0))

    def watch(self, descriptor: int, mask: int) -> None:
        """Wait for these events. An empty mask takes the descriptor out: epoll would report a hang-up forever."""
        known = self.masks.pop(descriptor, 0)
        if mask and not known:
            self.poll.register(descriptor, mask)
        elif known and not mask:
            self.poll.unregister(descriptor)
        elif known != mask:
            self.poll.modify(descriptor, mask)
        if mask:
            self.masks[descriptor] = mask

    def forget(self, end: socket.socket) -> None:
        self.handlers.pop(end.fileno(), None)
        self.masks.pop(end.fileno(), None)
        end.close()

    def close(self, connection: C, *, reset: bool = False) -> None:
        if connection.is_closed:
            return
        connection.is_closed = True
        self.connections.discard(connection)
        self.diallers.forget(connection)
        for end in filter(None, (connection.client, connection.server)):
            if reset:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.forget(end)
        if self.is_full and len(self.connections) < self.most * 9 // 10:
            self._set_full(False)


def make_quick(end: socket.socket) -> None:
    """Make the socket non-blocking and disable Nagle."""
    end.setblocking(False)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def carry_to_loopback(listeners: list[tuple[int, int]]) -> None:
    """Carry what arrives at each listener to a port of the loopback of this process's network.

    Many development servers listen at ::1 alone. A port at which nobody listens resets the connection.
    """
    carrier: Carrier[Connection] = Carrier(_connect_to_loopback)
    for descriptor, port in listeners:
        carrier.listen(socket.socket(fileno=descriptor), partial(_leading_to, port))
    carrier.run()


def _leading_to(port: int, client: socket.socket) -> Connection:
    return Connection(client, str(port), port)


def _connect_to_loopback(connection: Connection) -> socket.socket:
    first, last = LOOPBACKS
    with suppress(OSError):
        return socket.create_connection((first, connection.port), LOOPBACK_SECONDS)
    return socket.create_connection((last, connection.port), LOOPBACK_SECONDS)
