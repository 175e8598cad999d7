"""No way round the filter of tier `inet`. Each is shown to lead somewhere when what stands in the way is taken away."""

import json
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks.conftest import in_default
from conftest import Box
from network.attempts import BOTH, CAPABILITIES, FILTER, IPPROTO_UDPLITE, PLACE, PORT, attempts
from network.internet import Internet, Resident
from network.standins import DOES_NOTHING, KEEPS_CAPABILITIES, install

pytestmark = pytest.mark.req("NET-01")

ATTEMPTS = (Path(__file__).parent / "attempts.py").read_text()
NAMES = {
    obstacle: [name for name, (against, _) in attempts.items() if against == obstacle]
    for obstacle in (FILTER, CAPABILITIES, BOTH, PLACE)
}
ARRIVAL = 0.2  # seconds; for what was sent last
UDP_LITE = "udp_lite"


class Target:
    """Everybody who might be reached, and a way to tell whether that happened."""

    def __init__(self, internet: Internet, extra: socket.socket | None) -> None:
        self.internet = internet
        self.extra = extra
        self.token = uuid.uuid4().hex

    def command(self, *names: str) -> tuple[str, ...]:
        return ("python3", "-c", ATTEMPTS, self.token, *names)

    def reached(self, done: subprocess.CompletedProcess[str]) -> dict[str, str]:
        """The attempts that had success, and how it showed."""
        assert done.returncode == 0, done.stderr
        time.sleep(ARRIVAL)
        heard = self.heard()
        answers: dict[str, str] = json.loads(done.stdout)
        return {
            name: f"{answer}, heard: {name in heard}"
            for name, answer in answers.items()
            if answer == "reached" or name in heard
        }

    def heard(self) -> set[str]:
        """The attempts of which a server heard."""
        words = [heard.words for heard in self.internet.servers.heard]
        while self.extra is not None:
            try:
                words.append(self.extra.recv(1000).decode())
            except BlockingIOError:
                break
        return {text.split()[1] for text in words if text.startswith(f"{self.token} ")}


@pytest.fixture
def target(internet: Internet) -> Iterator[Target]:
    """With an abstract socket on the host, whose name is the token, and pings for everybody."""
    internet.host.run("sh", "-c", "echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range")
    extra = _listen_to_udp_lite(internet)
    target = Target(internet, extra)
    with internet.host.entered():
        server = socket.socket(socket.AF_UNIX)
    server.bind(f"\0{target.token}")
    server.listen()
    yield target
    server.close()
    if extra is not None:
        extra.close()


def _listen_to_udp_lite(internet: Internet) -> socket.socket | None:
    try:
        with internet.neighbour.entered():
            listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, IPPROTO_UDPLITE)
    except OSError:
        return None  # the kernel does not have it
    listener.bind(("", PORT))
    listener.setblocking(False)
    return listener


@pytest.mark.root_repeats("shows that the attack is real, which one account does")
def test_all_would_reach_something_without_the_filter(box: Box, account: Resident, pasta: str, target: Target) -> None:
    install(account, "nft", DOES_NOTHING)
    done = box.inside(*target.command(*NAMES[FILTER]), options=("--network", "inet"))
    assert list(target.reached(done)) == NAMES[FILTER], done.stdout


@pytest.mark.parametrize("name", in_default(NAMES[CAPABILITIES], "packet_socket", "flush_by_netlink", "kernel_setting"))
@pytest.mark.root_repeats("shows that the attack is real, which one account does")
def test_each_would_reach_something_with_capabilities(box: Box, account: Resident, target: Target, name: str) -> None:
    """In a box of its own: some take the filter away."""
    install(account, "bwrap", KEEPS_CAPABILITIES)
    done = box.inside(*target.command(name), options=("--network", "inet"))
    assert list(target.reached(done)) == [name], done.stdout


def test_all_would_reach_something_with_capabilities_and_without_the_filter(
    box: Box, account: Resident, target: Target
) -> None:
    install(account, "nft", DOES_NOTHING)
    install(account, "bwrap", KEEPS_CAPABILITIES)
    done = box.inside(*target.command(*NAMES[BOTH]), options=("--network", "inet"))
    assert list(target.reached(done)) == NAMES[BOTH], done.stdout


def test_all_would_reach_something_from_the_host(account: Resident, target: Target) -> None:
    names = [name for name in NAMES[PLACE] if name != UDP_LITE or target.extra is not None]
    assert list(target.reached(account.run(*target.command(*names)))) == names


def test_none_reaches_anything_from_a_box(box: Box, pasta: str, target: Target) -> None:
    done = box.inside(*target.command(*attempts), options=("--network", "inet"))
    assert target.reached(done) == {}


@pytest.mark.req("NET-03")
@pytest.mark.root_repeats("an empty network is empty for everybody")
def test_none_reaches_anything_from_a_box_without_a_network(box: Box, target: Target) -> None:
    """Where all that is left of the network namespace's owner is a capability over an empty place."""
    done = box.inside(*target.command(*attempts), options=("--network", "none"))
    assert target.reached(done) == {}


def test_root_of_a_user_namespace_in_the_box_is_nobody_outside(box: Box, target: Target) -> None:
    """An ordinary user can make one in the box, if that is allowed; root can never do it."""
    inside = ("unshare", "--user", "--map-root-user", *target.command(*NAMES[CAPABILITIES], *NAMES[BOTH]))
    allowed = () if box.account.is_root else ("--userns", "on")
    done = box.inside(*inside, options=("--network", "inet", *allowed))
    if box.account.is_root:
        assert "unshare failed" in done.stderr
    else:
        assert target.reached(done) == {}


LIST_DESCRIPTORS = "for each in /proc/1/fd/*; do readlink $each; done"


def test_first_process_of_the_box_holds_nothing_of_the_network(box: Box, pasta: str) -> None:
    """Anybody in the box could take it from there."""
    links = box.sh(LIST_DESCRIPTORS, options=("--network", "inet")).split()
    assert {link.partition(":")[0] for link in links} <= {"pipe", "anon_inode", "/dev/null"}
    assert not any("socket" in link or "net" in link for link in links)


LISTEN_BELOW = """
import socket
try:
    server = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
    server.bind((socket.VMADDR_CID_ANY, 59999))
    print("open")
except OSError:
    print("closed")
"""


@pytest.mark.req("NET-03")
@pytest.mark.parametrize("tier", ["inet", "none"])
def test_socket_to_the_machine_below_is_closed(box: Box, tier: str) -> None:
    """On a virtual machine it leads to the hypervisor and to what listens there; nothing is sent here."""
    assert box.inside("python3", "-c", LISTEN_BELOW, options=("--network", tier)).stdout == "closed\n"
