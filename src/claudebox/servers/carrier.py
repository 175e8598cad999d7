"""Accepts connections, connects each to where it leads, and carries bytes both ways between the two.

One thread carries everything, and reads no more from one end while the other has to take what was read before. The end
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
            if self.rest:
                self._write(memoryview(self.rest))
            else:
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

    def _write(self, data: memoryview) -> None:
        try:
            sent = self.target.send(data)
        except BlockingIOError:
            sent = 0
        self.carried += sent
        self.rest = bytes(data[sent:])


class Connection:
    """What a program has opened, and what it is connected to."""

    def __init__(self, client: socket.socket, name: str, port: int) -> None:
        self.client = client
        self.name = name  # of the place to which it leads
        self.port = port
        self.server: socket.socket | None = None
        self.out: Flow | None = None
        self.back: Flow | None = None
        self.since = time.monotonic()
        self.deadline = 0.0  # none
        self.is_gone = False

    def join(self, server: socket.socket) -> None:
        self.server = server
        self.out, self.back = Flow(self.client, server), Flow(server, self.client)
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


C = TypeVar("C", bound=Connection)
Result = tuple[C, socket.socket | None, Exception | None]


class Diallers(Generic[C]):
    """Threads that take connections, connect them, and give back what came of it. `bell` is readable then."""

    def __init__(self, dial: Callable[[C], socket.socket]) -> None:
        self._dial = dial
        self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.orders: queue.SimpleQueue[C] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[Result[C]] = queue.SimpleQueue()
        self.threads = 0
        self.under_way = 0
        self.busy: Counter[str] = Counter()
        self.waiting: defaultdict[str, deque[C]] = defaultdict(deque)
        threading.stack_size(STACK_BYTES)
        self._start_thread()

    def dial(self, connection: C) -> None:
        name = connection.name
        if self.busy[name] >= MOST_FOR_ONE_NAME:
            self.waiting[name].append(connection)
            return
        self.busy[name] += 1
        self.under_way += 1
        if self.under_way > self.threads and self.threads < MOST_THREADS:
            try:
                self._start_thread()
            except RuntimeError:
                pass  # the box may have used up this user's processes; there is at least one thread
        self.orders.put(connection)

    def _start_thread(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()
        self.threads += 1

    def forget(self, connection: C) -> None:
        """Drop a connection that has ended while it waited: a box could have any number of them remembered."""
        waiting = self.waiting.get(connection.name)
        if waiting and connection in waiting:
            waiting.remove(connection)

    def take(self) -> list[Result[C]]:
        """What has come of the connections so far."""
        os.eventfd_read(self.bell)
        taken = []
        while not self.results.empty():
            result = self.results.get()
            taken.append(result)
            self._make_room(result[0].name)
        return taken

    def _make_room(self, name: str) -> None:
        self.busy[name] -= 1
        self.under_way -= 1
        if self.waiting[name]:
            self.dial(self.waiting[name].popleft())
        if not self.waiting[name]:
            del self.waiting[name]
        if not self.busy[name]:
            del self.busy[name]

    def _work(self) -> None:
        while True:
            connection = self.orders.get()
            server, failure = None, None
            try:
                server = self._connect(connection)
            except Exception as error:  # whatever it was, the connection is not made
                failure = error
            self.results.put((connection, server, failure))
            os.eventfd_write(self.bell, 1)

    def _connect(self, connection: C) -> socket.socket:
        if connection.is_gone:
            raise ConnectionAbortedError
        server = self._dial(connection)
        make_quick(server)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return server


class Carrier(Generic[C]):
    """Everything that one process carries."""

    def __init__(self, dial: Callable[[C], socket.socket]) -> None:
        self.diallers = Diallers[C](dial)
        self.poll = select.epoll()
        self.handlers: dict[int, Callable[[], None]] = {}
        self.listeners: list[int] = []
        self.by_descriptor: dict[int, C] = {}
        self.masks: dict[int, int] = {}
        self.connections: set[C] = set()
        self.buffer = memoryview(bytearray(CHUNK))
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.most = max(1, min(MOST_CONNECTIONS, (limit - DESCRIPTORS_FOR_OTHERS) // 3))
        self.is_full = False

    def listen(self, listener: socket.socket, opened: Callable[[socket.socket], C]) -> None:
        """Accept what arrives here. `opened` says where a client's connection leads."""
        listener.setblocking(False)
        self.listeners.append(listener.fileno())
        self.handle(listener.fileno(), partial(self._accept, listener, opened))

    def handle(self, descriptor: int, handler: Callable[[], None]) -> None:
        """Call this whenever the descriptor can be read."""
        self.handlers[descriptor] = handler
        self.poll.register(descriptor, select.EPOLLIN)

    def run(self, end: int = -1) -> None:
        """Serve until this descriptor can be read; without one, until the process ends."""
        if end >= 0:
            self.poll.register(end, select.EPOLLIN)
        self.handle(self.diallers.bell, self._take_dialled)
        sweep = 0.0
        while True:
            for descriptor, event in self.poll.poll(1 if self.connections else None):
                if descriptor == end:
                    return
                if descriptor in self.by_descriptor:
                    self.serve(self.by_descriptor[descriptor], descriptor, event)
                elif descriptor in self.handlers:
                    self.handlers[descriptor]()
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
        """When there are too many connections, those that come are left to the kernel until some have ended."""
        self.is_full = is_full
        for descriptor in self.listeners:
            self.poll.modify(descriptor, 0 if is_full else select.EPOLLIN)

    def begin(self, connection: C) -> None:
        self.admit(connection)
        self.diallers.dial(connection)

    def admit(self, connection: C) -> None:
        self.connections.add(connection)
        self.by_descriptor[connection.client.fileno()] = connection
        self.watch(connection.client, select.EPOLLRDHUP)

    def _take_dialled(self) -> None:
        for connection, server, failure in self.diallers.take():
            if connection not in self.connections:
                if server is not None:
                    server.close()  # nobody waits for it any more
            elif server is None:
                self.refuse(connection, failure)
            else:
                connection.join(server)
                self.by_descriptor[server.fileno()] = connection
                self._watch_both(connection)

    def refuse(self, connection: C, _: Exception | None) -> None:
        """Give up a connection that could not be made."""
        self.close(connection, reset=True)

    # Connections that are there

    def serve(self, connection: C, descriptor: int, event: int) -> None:
        try:
            if event & select.EPOLLERR:
                self.close(connection, reset=True)
            elif connection.out is not None and connection.back is not None:
                is_clients = descriptor == connection.client.fileno()
                ends = (connection.out, connection.back) if is_clients else (connection.back, connection.out)
                self._carry(connection, *ends, event)
            else:
                self.hear(connection, event)
        except BlockingIOError:
            pass  # an event of a connection that had this number before, earlier in the same batch
        except OSError:
            self.close(connection, reset=True)

    def hear(self, connection: C, event: int) -> None:
        """The client has something to say before it is connected."""
        if event & select.EPOLLHUP:
            self.close(connection)
        else:
            self.watch(connection.client, 0)  # half closed: it still waits for an answer

    def _carry(self, connection: C, near: Flow, far: Flow, event: int) -> None:
        if event & ~select.EPOLLOUT and not near.is_ended:
            self.move(connection, near)
            if connection.server is None:
                return  # it was refused for what it said
        # What is left over was looked at. An event of a connection that had this number before must move nothing else.
        if event & select.EPOLLOUT and far.rest and not far.is_ended:
            far.move(self.buffer)
        if connection.is_over:
            self.close(connection)
        else:
            self._watch_both(connection)

    def move(self, connection: C, flow: Flow) -> None:  # noqa: ARG002  (for those who look at what is carried)
        flow.move(self.buffer)

    # What the kernel is asked to tell

    def _watch_both(self, connection: C) -> None:
        for end, mask in connection.interests():
            self.watch(end, mask)

    def watch(self, end: socket.socket, mask: int) -> None:
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

    def forget(self, end: socket.socket) -> None:
        self.by_descriptor.pop(end.fileno(), None)
        self.masks.pop(end.fileno(), None)
        end.close()

    def close(self, connection: C, *, reset: bool = False) -> None:
        if connection not in self.connections:
            return
        self.connections.discard(connection)
        connection.is_gone = True
        self.diallers.forget(connection)
        for end in (connection.client, connection.server):
            if end is not None:
                if reset:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                self.forget(end)
        if self.is_full and len(self.connections) < self.most * 9 // 10:
            self._set_full(False)


def make_quick(end: socket.socket) -> None:
    """Make the socket non-blocking and disable Nagle."""
    end.setblocking(False)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def raise_file_limit() -> None:
    """Let this process open as many files as its user may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def carry_to_loopback(listeners: list[tuple[int, int]]) -> None:
    """Carry what arrives at each listener to a port of the loopback of this process's network.

    Many development servers listen at ::1 alone. A port at which nobody listens resets the connection.
    """
    raise_file_limit()
    carrier: Carrier[Connection] = Carrier(lambda connection: _connect_to_loopback(connection.port))
    for descriptor, port in listeners:
        carrier.listen(socket.socket(fileno=descriptor), partial(_leading_to, port))
    carrier.run()


def _leading_to(port: int, client: socket.socket) -> Connection:
    return Connection(client, str(port), port)


def _connect_to_loopback(port: int) -> socket.socket:
    *earlier, last = LOOPBACKS
    for address in earlier:
        try:
            return socket.create_connection((address, port), LOOPBACK_SECONDS)
        except OSError:
            continue
    return socket.create_connection((last, port), LOOPBACK_SECONDS)
