"""What the process outside carries, told by the kernel's events alone."""

import select
import socket
from collections.abc import Iterator

import pytest

from claudebox.servers.allowlist import HostList
from claudebox.servers.allowlist.notes import Notes
from claudebox.servers.allowlist.relay import NAME, Opened, Relay
from unit.servers.allowlist.messages import client_hello, records
from unit.servers.allowlist.messages import server_name as name_extension

pytestmark = pytest.mark.req("NAME-01")

OTHER_HOST = records(client_hello(name_extension(b"other.example")))
SAME_HOST = records(client_hello(name_extension(b"allowed.example")))


class Carried:
    """A connection to allowed.example that has just been made, with the program's end and the server's."""

    def __init__(self) -> None:
        self.relay = Relay(HostList(), Notes("", None), (), set())
        self.program, client = socket.socketpair()
        server, self.world = socket.socketpair()
        for end in (client, server, self.world):
            end.setblocking(False)
        self.connection = Opened(client, NAME, "allowed.example", 443)
        self.connection.join(server)
        self.relay.connections.add(self.connection)

    def tell(self, end: socket.socket | None, event: int) -> None:
        assert end is not None
        self.relay.serve(self.connection, end, event)

    def arrived(self) -> bytes:
        try:
            return self.world.recv(1 << 16)
        except BlockingIOError:
            return b""


@pytest.fixture
def carried() -> Iterator[Carried]:
    made = Carried()
    yield made
    made.relay.close(made.connection)
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


def test_hello_that_names_its_host_is_carried(carried: Carried) -> None:
    carried.program.sendall(SAME_HOST)
    carried.tell(carried.connection.client, select.EPOLLIN)
    assert carried.arrived() == SAME_HOST
