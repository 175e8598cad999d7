"""What carries connections, on this machine's own loopback."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from claudebox.servers import carrier
from patience import PATIENCE

MUCH = bytes(range(256)) * 4096
pytestmark = pytest.mark.req("NET-04", "NAME-01")


@pytest.fixture(params=carrier.LOOPBACKS)
def server(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.create_server((request.param, 0), family=family) as listener:
        yield listener


def connect_through(number: int) -> socket.socket:
    """A client of a carrier that leads to this port."""
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    ports = [(listener.detach(), number)]
    threading.Thread(target=carrier.carry_to_loopback, args=(ports,), daemon=True).start()
    return socket.create_connection(address, PATIENCE)


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


def test_no_more_is_read_than_the_other_end_takes(server: socket.socket) -> None:
    """Else a box that sends and never reads would fill this host's memory."""
    with connect_through(server.getsockname()[1]) as client, server.accept()[0]:
        client.settimeout(1)
        with pytest.raises(TimeoutError):
            client.sendall(bytes(1 << 26))


def test_port_at_which_nobody_listens_is_refused(server: socket.socket) -> None:
    number = server.getsockname()[1]
    server.close()
    # It may come before the client knows that it is connected.
    with pytest.raises(ConnectionResetError), connect_through(number) as client:
        client.recv(1)


class Exhausted(socket.socket):
    """A listener that once has no descriptor left."""

    is_new = True

    def accept(self) -> tuple[socket.socket, object]:
        if self.is_new:
            self.is_new = False
            raise OSError(24, "Too many open files")
        return super().accept()


@contextmanager
def serving(listener: socket.socket, work: carrier.Work, most: int = carrier.MOST_CONNECTIONS) -> Iterator[None]:
    """Serve until the end, and not longer: a wait for a closed descriptor would keep what has its number next."""
    over, stop = os.pipe()
    thread = threading.Thread(target=carrier.serve, args=([(listener, work)], (over,), most), name="serving")
    thread.start()
    try:
        yield
    finally:
        os.close(stop)
        thread.join()
        os.close(over)


def greet(client: socket.socket) -> None:
    client.sendall(b"here")


def test_lack_of_files_ends_no_port() -> None:
    """A box can use up what both have. When it has given that back, the port is open again."""
    with Exhausted() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with serving(listener, greet), socket.create_connection(listener.getsockname(), PATIENCE) as client:
            assert client.recv(4) == b"here"


def test_lack_of_processes_ends_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """A box can use up the processes that a user may have. That ended the process outside, and the box."""
    start, refused = threading.Thread.start, list[threading.Thread]()

    def refuse_once(thread: threading.Thread) -> None:
        if not refused and thread.name != "serving":
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_once)
    said = []
    with socket.create_server(("127.0.0.1", 0)) as listener, serving(listener, greet):
        for _ in range(2):
            with socket.create_connection(listener.getsockname(), PATIENCE) as client:
                said.append(client.recv(4))
    assert said == [b"", b"here"]


def echo(client: socket.socket) -> None:
    client.sendall(client.recv(1))


def test_connections_beyond_the_limit_wait() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        serving(listener, echo, most=1),
        socket.create_connection(listener.getsockname(), PATIENCE) as first,
        socket.create_connection(listener.getsockname(), PATIENCE) as second,
    ):
        second.sendall(b"2")
        second.settimeout(0.5)
        with pytest.raises(TimeoutError):
            second.recv(1)
        first.sendall(b"1")
        second.settimeout(PATIENCE)
        assert (first.recv(1), second.recv(1)) == (b"1", b"2")
