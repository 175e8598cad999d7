"""A few threads that look up names and connect: both can take long, and nobody else should wait for it."""

from __future__ import annotations

import os
import queue
import socket
import threading
from collections import Counter, defaultdict, deque

from claudebox.features.names.server.connection import Connection, Route, make_quick
from claudebox.features.names.server.dial import Surroundings, dial_address, dial_localhost, dial_name
from claudebox.features.names.server.maker import Maker
from claudebox.features.names.server.refusal import Refusal

MOST_THREADS = 16
MOST_FOR_ONE_NAME = 4  # a name whose servers are silent must not hold up the others
STACK_BYTES = 1 << 20

Result = tuple[Connection, socket.socket | None, Refusal | None]


class Diallers:
    """Takes connections, and gives back what came of them. `bell` is readable when there is something."""

    def __init__(self, surroundings: Surroundings, maker: Maker | None) -> None:
        self.surroundings = surroundings
        self.maker = maker
        self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.orders: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[Result] = queue.SimpleQueue()
        self.threads = 0
        self.under_way = 0
        self.busy: Counter[str] = Counter()
        self.waiting: defaultdict[str, deque[Connection]] = defaultdict(deque)
        threading.stack_size(STACK_BYTES)
        self._start_thread()

    def dial(self, connection: Connection) -> None:
        name = connection.route.name
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

    def forget(self, connection: Connection) -> None:
        """Have a connection not wait any more that has ended: the box could have any number of them remembered."""
        waiting = self.waiting.get(connection.route.name)
        if waiting and connection in waiting:
            waiting.remove(connection)

    def take(self) -> list[Result]:
        """What has come of the connections so far."""
        os.eventfd_read(self.bell)
        taken = []
        while not self.results.empty():
            result = self.results.get()
            taken.append(result)
            self._make_room(result[0].route.name)
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
            server, refusal = None, None
            try:
                server = self._connect(connection)
            except Refusal as refused:
                refusal = refused
            except Exception as error:  # whatever it was, the connection is not made
                refusal = Refusal(f"{connection.route.name}: {type(error).__name__}", 0)
            self.results.put((connection, server, refusal))
            os.eventfd_write(self.bell, 1)

    def _connect(self, connection: Connection) -> socket.socket:
        if connection.is_gone:
            raise Refusal("nobody waits for it any more", 0)
        server = self._dial(connection.route)
        make_quick(server)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return server

    def _dial(self, route: Route) -> socket.socket:
        if route.kind == Route.NAME:
            return dial_name(route.name, route.port, self.surroundings)
        if route.kind == Route.ADDRESS:
            return dial_address(route.name, route.port, self.surroundings)
        if route.kind == Route.PUBLISHED and self.maker is not None:
            return self.maker.connect(route.port)
        return dial_localhost(route.port)
