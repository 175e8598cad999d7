"""The process that leads a published port on to a server in the box, on this machine's own loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from claudebox.features.network import carrier
from claudebox.features.network.carrier import listening_ports
from claudebox.model import Origin, Port

MUCH = bytes(range(256)) * 4096
pytestmark = pytest.mark.req("NET-04")


def port(host: int, box: int) -> Port:
    return Port(host, box, Origin.of_option("--publish"))


def test_carrier_listens_where_nobody_else_wants_to() -> None:
    ports = (port(3000, 3000), port(8080, 65534), port(9000, 80))
    assert listening_ports(ports, {65535}) == {3000: 65533, 8080: 65532, 9000: 65531}


@pytest.fixture(params=carrier.LOOPBACKS)
def server(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.create_server((request.param, 0), family=family) as listener:
        yield listener


def connect_through(number: int) -> socket.socket:
    """A client of a carrier that leads to this port."""
    listener = carrier._listen(0)
    room = threading.Semaphore(2)
    threading.Thread(target=carrier._accept, args=(listener, number, room), daemon=True).start()
    return socket.create_connection(listener.getsockname(), 10)


def say_all(client: socket.socket) -> None:
    client.sendall(MUCH)
    client.shutdown(socket.SHUT_WR)


def test_much_is_carried_both_ways_and_an_answer_comes_after_the_end_of_input(server: socket.socket) -> None:
    with connect_through(server.getsockname()[1]) as client:
        threading.Thread(target=say_all, args=(client,)).start()
        accepted = server.accept()[0]
        with accepted:
            received = b"".join(iter(lambda: accepted.recv(1 << 16), b""))
            accepted.sendall(received[::-1])
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
    assert (received == MUCH, answer == MUCH[::-1]) == (True, True)


def test_port_at_which_nobody_listens_is_refused(server: socket.socket) -> None:
    number = server.getsockname()[1]
    server.close()
    # It may come before the client knows that it is connected.
    with pytest.raises(ConnectionResetError), connect_through(number) as client:
        client.recv(1)


class Exhausted:
    """A listener that once has no descriptor left."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.is_new = True

    def accept(self) -> tuple[socket.socket, object]:
        if self.is_new:
            self.is_new = False
            raise OSError(24, "Too many open files")
        return self.listener.accept()


def test_lack_of_files_or_threads_ends_no_port() -> None:
    """A box can use up what both have. When it has given that back, the port is open again."""
    with socket.create_server(("127.0.0.1", 0)) as server, carrier._listen(0) as listener:
        words = (Exhausted(listener), server.getsockname()[1], threading.Semaphore(1))
        threading.Thread(target=carrier._accept, args=words, daemon=True).start()
        with socket.create_connection(listener.getsockname(), 10) as client:
            server.settimeout(10)
            with server.accept()[0] as accepted:
                accepted.sendall(b"here")
            assert client.recv(4) == b"here"
