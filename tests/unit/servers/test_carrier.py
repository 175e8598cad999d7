"""What carries connections, on this machine's own loopback."""

import select
import socket
import threading
from collections.abc import Iterator

import pytest

from claudebox.servers import carrier
from claudebox.servers.carrier import Carrier, Connection, Diallers, Result
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


def test_lack_of_files_ends_no_port() -> None:
    """A box can use up what both have. When it has given that back, the port is open again."""
    with socket.create_server(("127.0.0.1", 0)) as server, Exhausted() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        made: Carrier[Connection] = Carrier(lambda _: socket.create_connection(server.getsockname(), PATIENCE))
        made.listen(listener, lambda client: Connection(client, "server", 0))
        threading.Thread(target=made.run, daemon=True).start()
        with socket.create_connection(listener.getsockname(), PATIENCE) as client:
            server.settimeout(PATIENCE)
            with server.accept()[0] as accepted:
                accepted.sendall(b"here")
            assert client.recv(4) == b"here"


def test_connections_that_have_ended_wait_for_no_silent_server() -> None:
    """A box that opens and closes them would have any number of them remembered."""
    is_over = threading.Event()

    def be_silent(_: Connection) -> socket.socket:
        is_over.wait(PATIENCE)
        raise TimeoutError

    made: Carrier[Connection] = Carrier(be_silent)
    for _ in range(50):
        program, client = socket.socketpair()
        connection = Connection(client, "silent.example", 443)
        made.connections.add(connection)
        made.diallers.dial(connection)
        program.close()
        made.close(connection)
    waiting = len(made.diallers.waiting["silent.example"])
    is_over.set()
    assert waiting == 0


def test_one_thread_dials_if_there_can_be_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A box can use up the processes that a user may have. That ended the process outside, and the box."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    diallers: Diallers[Connection] = Diallers(lambda _: socket.socket())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    names = ["a.invalid", "b.invalid", "c.invalid"]
    pairs = [socket.socketpair() for _ in names]
    for name, (_, client) in zip(names, pairs, strict=True):
        diallers.dial(Connection(client, name, 443))
    dialled: list[Result[Connection]] = []
    while len(dialled) < len(names):
        assert select.select([diallers.bell], [], [], PATIENCE)[0]
        dialled += diallers.take()
    assert sorted(connection.name for connection, _ in dialled) == names
    for end in (
        *(end for pair in pairs for end in pair),
        *(server for _, server in dialled if isinstance(server, socket.socket)),
    ):
        end.close()
