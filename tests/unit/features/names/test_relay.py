"""What the process outside carries, told by the kernel's events alone."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator

import pytest

from claudebox.features.names.rules import NameList
from claudebox.features.names.server.connection import Connection, Route
from claudebox.features.names.server.dial import Surroundings
from claudebox.features.names.server.diallers import Diallers, Result
from claudebox.features.names.server.notes import Notes
from claudebox.features.names.server.relay import Relay
from patience import PATIENCE
from unit.features.names.messages import client_hello, records
from unit.features.names.messages import server_name as name_extension

pytestmark = pytest.mark.req("NAME-01")

OTHER_HOST = records(client_hello(name_extension(b"other.example")))
SAME_HOST = records(client_hello(name_extension(b"allowed.example")))


class Carried:
    """A connection to allowed.example that has just been made, with the program's end and the server's."""

    def __init__(self) -> None:
        self.relay = Relay(NameList(()), Notes("", None), Diallers(Surroundings(()), None))
        self.program, client = socket.socketpair()
        server, self.world = socket.socketpair()
        for end in (client, server, self.world):
            end.setblocking(False)
        self.connection = Connection(client, Route(Route.NAME, "allowed.example", 443))
        self.connection.join(server)
        self.relay.connections.add(self.connection)

    def tell(self, end: socket.socket | None, event: int) -> None:
        assert end is not None
        self.relay._serve(self.connection, end.fileno(), event)

    def arrived(self) -> bytes:
        try:
            return self.world.recv(1 << 16)
        except BlockingIOError:
            return b""


@pytest.fixture
def carried() -> Iterator[Carried]:
    made = Carried()
    yield made
    made.relay._close(made.connection)
    for end in (made.program, made.world):
        end.close()


def test_event_of_an_earlier_connection_carries_nothing_unseen(carried: Carried) -> None:
    """A number is used again at once, and one batch of events can have one for the connection that had it before."""
    carried.program.sendall(OTHER_HOST)
    carried.tell(carried.connection.server, select.EPOLLOUT)
    carried.tell(carried.connection.server, select.EPOLLIN | select.EPOLLOUT)
    assert carried.arrived() == b""
    carried.tell(carried.connection.client, select.EPOLLIN)
    assert carried.arrived() == b""


@pytest.mark.parametrize("name", ["evil.allowed.example", "evilallowed.example", "allowed.example.evil", "example"])
def test_name_that_has_the_hosts_in_it_is_another(carried: Carried, name: str) -> None:
    carried.program.sendall(records(client_hello(name_extension(name.encode()))))
    carried.tell(carried.connection.client, select.EPOLLIN)
    assert carried.arrived() == b""


@pytest.mark.parametrize("warning", [b"\x15\3\1\0\2\1\x5a", b"\x15\0\0\0\2\1\x5a"])
@pytest.mark.parametrize("cut", [1, 4, 7, 1 << 16])
def test_warning_hides_no_hello(carried: Carried, warning: bytes, cut: int) -> None:
    """Servers that are written in Go pass over it, and take the ClientHello that follows."""
    message = warning + OTHER_HOST
    for part in (message[:cut], message[cut:]):
        carried.program.sendall(part)
        carried.tell(carried.connection.client, select.EPOLLIN)
        assert carried.arrived() == b""


def test_connections_that_have_ended_wait_for_no_silent_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A box that opens and closes them would have any number of them remembered."""
    is_over = threading.Event()
    monkeypatch.setattr(Diallers, "_dial", lambda *_: is_over.wait(PATIENCE))
    diallers = Diallers(Surroundings(()), None)
    relay = Relay(NameList(()), Notes("", None), diallers)
    for _ in range(50):
        program, client = socket.socketpair()
        connection = Connection(client, Route(Route.NAME, "silent.example", 443))
        relay.connections.add(connection)
        diallers.dial(connection)
        program.close()
        relay._close(connection)
    waiting = len(diallers.waiting["silent.example"])
    is_over.set()
    assert waiting == 0


def test_one_thread_dials_if_there_can_be_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A box can use up the processes that a user may have. That ended the process outside, and the box."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    diallers = Diallers(Surroundings(()), None)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    names = ["a.invalid", "b.invalid", "c.invalid"]
    pairs = [socket.socketpair() for _ in names]
    monkeypatch.setattr(Diallers, "_dial", lambda *_: socket.socket())
    for name, (_, client) in zip(names, pairs, strict=True):
        diallers.dial(Connection(client, Route(Route.NAME, name, 443)))
    dialled: list[Result] = []
    while len(dialled) < len(names):
        assert select.select([diallers.bell], [], [], PATIENCE)[0]
        dialled += diallers.take()
    assert sorted(connection.route.name for connection, _, _ in dialled) == names
    for end in (*(end for pair in pairs for end in pair), *(server for _, server, _ in dialled if server)):
        end.close()


def test_hello_that_names_its_host_is_carried(carried: Carried) -> None:
    carried.program.sendall(SAME_HOST)
    carried.tell(carried.connection.client, select.EPOLLIN)
    assert carried.arrived() == SAME_HOST
