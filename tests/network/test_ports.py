"""Single ports between a box and the loopback of its host: `--publish` opens one, `--host-port` reaches one."""

import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Box
from network.internet import Internet, Machine, Resident
from network.servers import NEXT_PORT, PORT
from network.test_tiers import INET, NOBODY, NONE, TARGETS, probe
from patience import PATIENCE

pytestmark = pytest.mark.req("NET-04")

LISTENER = Path(__file__).with_name("listener.py")
OWN_NETWORK = ("inet", "allowlist", "none")


@contextmanager
def serving(box: Box, account: Resident, tier: str, servers: str, *options: str) -> Iterator[Callable[[int], str]]:
    """A box in which servers listen: ADDRESS PORT ADDRESS PORT … Yields who answers on a port, asked from inside."""
    shutil.copy(LISTENER, box.project)
    options = ("--yes", "--network", tier, *options)
    process = account.start(CLAUDEBOX, *options, "--run", "python3", "listener.py", *servers.split(), cwd=box.project)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    output = process.stdout

    def ask_inside(port: int) -> str:
        print(port, file=process.stdin, flush=True)
        return output.readline().strip()

    with process:
        assert output.readline() == "listening\n", process.stderr.read()
        yield ask_inside
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def ask(machine: Machine, address: str, port: int) -> str:
    """Who answers there, for somebody on this machine?"""
    try:
        with machine.entered(), socket.create_connection((address, port), PATIENCE) as connection:
            connection.sendall(b"who is there?")
            return connection.recv(100).decode() or NOBODY
    except OSError:
        return NOBODY


@pytest.mark.parametrize("tier", OWN_NETWORK)
def test_published_port_is_open_on_loopback_and_nowhere_else(
    box: Box, account: Resident, pasta: str, internet: Internet, tier: str
) -> None:
    """3000 as it is, 4000 under another number, 5000 not at all. One server minds its own loopback, the others all."""
    servers = "127.0.0.1 3000 0.0.0.0 4000 0.0.0.0 5000"
    host, neighbour, peer = internet.host, internet.neighbour, internet.peer
    expected = {
        (host, "127.0.0.1", 3000): "box 3000",
        (host, "localhost", 3000): "box 3000",
        (host, "127.0.0.1", 8000): "box 4000",
        (host, "127.0.0.1", 4000): NOBODY,
        (host, "127.0.0.1", 5000): NOBODY,
        (host, "192.168.50.10", 3000): NOBODY,
        (host, "fd00:50::10", 3000): NOBODY,
        (neighbour, "192.168.50.10", 3000): NOBODY,
        (neighbour, "192.168.50.10", 8000): NOBODY,
        (neighbour, "203.0.113.10", 3000): NOBODY,
        (neighbour, "fd00:50::10", 3000): NOBODY,
        (neighbour, "2001:db8:50::10", 8000): NOBODY,
        (peer, "100.64.0.10", 3000): NOBODY,
        (peer, "fd7a:115c:a1e0::10", 8000): NOBODY,
    }
    with serving(box, account, tier, servers, "--publish", "3000", "--publish", "8000:4000"):
        answers = {target: ask(*target) for target in expected}
    assert answers == expected
    assert ask(host, "127.0.0.1", 3000) == NOBODY


@pytest.mark.parametrize("tier", OWN_NETWORK)
def test_published_server_may_listen_at_either_loopback(
    box: Box, account: Resident, pasta: str, internet: Internet, tier: str
) -> None:
    """Many development servers listen at ::1 alone. On this host the port is open at 127.0.0.1 as ever, and nobody has
    to know; what listens at neither is refused."""
    servers = "::1 3000 127.0.0.1 4000 ::1 4001"
    ports = [word for port in ("3000", "4000", "8001:4001", "5000") for word in ("--publish", port)]
    with serving(box, account, tier, servers, *ports):
        answers = {port: ask(internet.host, "127.0.0.1", port) for port in (3000, 4000, 8001, 5000)}
        assert ask(internet.host, "::1", 3000) == NOBODY
    assert answers == {3000: "box 3000", 4000: "box 4000", 8001: "box 4001", 5000: NOBODY}


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("tier", OWN_NETWORK)
def test_port_that_is_taken_is_named(box: Box, pasta: str, internet: Internet, tier: str) -> None:
    with internet.host.entered():
        taken = socket.create_server(("127.0.0.1", 3000))
    with taken:
        options = ("--network", tier, "--publish", "2999", "--publish", "3000")
        done = box.inside("touch", "started", options=options)
    assert (done.returncode, done.stdout) == (125, "")
    assert "--publish: port 3000 of this host" in last_error(done.stderr)
    assert not (box.project / "started").exists()


def last_error(stderr: str) -> str:
    """The text from its last `error:` on."""
    return stderr[stderr.rindex("error:") :]


@pytest.mark.req("FAIL-01")
def test_port_that_only_root_may_open_is_named(box: Box, account: Resident, pasta: str) -> None:
    """Nobody is root in the box's user namespace but for its own network."""
    done = box.inside("true", options=("--network", "inet", "--publish", "80:8000"))
    assert done.returncode == 125
    assert "--publish: port 80 of this host" in last_error(done.stderr)


@pytest.mark.parametrize("tier", OWN_NETWORK)
def test_host_port_is_reached_and_nothing_more(box: Box, pasta: str, internet: Internet, tier: str) -> None:
    """The whole table of the tier, and one row is different."""
    loopback = ("127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1")
    reached = {target.label: "host" for target in TARGETS if target.protocol == "tcp" and target.address in loopback}
    expected = {**(INET if tier == "inet" else NONE), **reached}
    assert probe(box, internet, tier, "--host-port", str(PORT)) == expected


def test_host_port_is_there_from_the_first_moment(box: Box, pasta: str) -> None:
    """Tried again and again, because pasta may need a moment longer than the box."""
    script = "exec 3<>/dev/tcp/127.0.0.1/$0 && echo hello >&3 && cat <&3"
    command = ("bash", "-c", script, str(PORT))
    options = ("--network", "inet", "--host-port", str(PORT))
    assert [box.inside(*command, options=options).stdout for _ in range(8)] == ["host"] * 8


@pytest.mark.parametrize("tier", OWN_NETWORK)
def test_ports_in_both_directions_and_not_the_next_ones(
    box: Box, account: Resident, pasta: str, internet: Internet, tier: str
) -> None:
    options = ("--publish", "3000", "--host-port", str(PORT))
    with serving(box, account, tier, "127.0.0.1 3000 127.0.0.1 3001", *options) as ask_inside:
        inside = [ask_inside(port) for port in (3000, 3001, PORT, NEXT_PORT)]
        outside = [ask(internet.host, "localhost", port) for port in (3000, 3001, PORT, NEXT_PORT)]
    assert inside == ["box 3000", "box 3001", "host", NOBODY]
    assert outside == ["box 3000", NOBODY, "host", "host"]


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("option", ["--publish", "--host-port"])
def test_ports_mean_nothing_with_the_network_of_the_host(box: Box, option: str) -> None:
    for options in ((option, "3000"), ("--network", "full", option, "3000")):
        done = box.inside("touch", "started", options=options)
        assert (done.returncode, done.stdout) == (125, "")
        assert option in last_error(done.stderr)
    assert not (box.project / "started").exists()
