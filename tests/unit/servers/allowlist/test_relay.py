"""What the process outside carries: of a connection to a name, nothing before TLS has named that host."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from mmap import mmap

import pytest

from claudebox.model import Origin
from claudebox.servers.allowlist import MEMORY, Allowed, HostList, relay
from claudebox.servers.allowlist.notes import Notes
from claudebox.servers.allowlist.relay import Relay
from patience import PATIENCE
from unit.servers.allowlist.messages import client_hello, records
from unit.servers.allowlist.messages import server_name as name_extension

pytestmark = pytest.mark.req("NAME-01")

OTHER_HOST = records(client_hello(name_extension(b"other.example")))
SAME_HOST = records(client_hello(name_extension(b"allowed.example")))
LIST = HostList([Allowed("allowed.example", (443,), Origin.of_option("--allow"))])


class Carried:
    """A connection to allowed.example that has just been made, with the program's end and the server's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        server, self.world = socket.socketpair()
        self.program, client = socket.socketpair()
        for end in (self.program, self.world):
            end.settimeout(PATIENCE)
        monkeypatch.setattr(relay, "dial", lambda *_, **__: server)
        monkeypatch.setattr(relay, "make_lasting", lambda _: None)  # it is TCP's
        made = Relay(LIST, Notes("", mmap(-1, MEMORY)), (), set())

        def connect() -> None:
            with client, suppress(OSError):
                made.connect(client, "allowed.example", 443, is_name=True)

        self.thread = threading.Thread(target=connect, daemon=True)
        self.thread.start()

    def arrived(self) -> bytes:
        """All that the server gets, when nothing more comes."""
        return b"".join(iter(lambda: self.world.recv(1 << 16), b""))


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> Iterator[Carried]:
    made = Carried(monkeypatch)
    yield made
    for end in (made.program, made.world):
        end.close()
    made.thread.join()


@pytest.mark.parametrize(
    "name", ["other.example", "evil.allowed.example", "evilallowed.example", "allowed.example.evil", "example"]
)
def test_name_that_has_the_hosts_in_it_is_another(carried: Carried, name: str) -> None:
    carried.program.sendall(records(client_hello(name_extension(name.encode()))))
    assert carried.arrived() == b""


@pytest.mark.parametrize("warning", [b"\x15\3\1\0\2\1\x5a", b"\x15\0\0\0\2\1\x5a"])
@pytest.mark.parametrize("cut", [1, 4, 7, 1 << 16])
def test_warning_hides_no_hello(carried: Carried, warning: bytes, cut: int) -> None:
    """Servers that are written in Go pass over it, and take the ClientHello that follows."""
    message = warning + OTHER_HOST
    carried.program.sendall(message[:cut])
    try:
        carried.program.sendall(message[cut:])
    except BrokenPipeError:
        pass  # it was refused already
    assert carried.arrived() == b""


def test_hello_that_does_not_end_is_not_waited_for(carried: Carried) -> None:
    carried.program.sendall(SAME_HOST[:-1])
    carried.program.shutdown(socket.SHUT_WR)
    assert carried.arrived() == b""


def test_hello_that_names_its_host_is_carried(carried: Carried) -> None:
    carried.program.sendall(SAME_HOST[:9])
    carried.world.sendall(b"the server may speak meanwhile")
    assert carried.program.recv(100) == b"the server may speak meanwhile"
    carried.program.sendall(SAME_HOST[9:])
    carried.program.shutdown(socket.SHUT_WR)
    assert carried.arrived() == SAME_HOST
