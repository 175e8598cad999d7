"""Abstract unix sockets and the caller's processes are out of reach although the network is the host's."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

from conftest import CLAUDEBOX, Box

pytestmark = pytest.mark.landlock

CONNECT = """
import socket, sys
client = socket.socket(socket.AF_UNIX)
try:
    client.connect("\\0" + sys.argv[1])
    print("reached")
except OSError as error:
    print(error.strerror)
"""
TALK_INSIDE = """
import socket
server = socket.socket(socket.AF_UNIX)
server.bind("\\0of-the-box")
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect("\\0of-the-box")
print("reached")
"""


@pytest.fixture
def abstract_name() -> Iterator[str]:
    """Something on the host that listens on an abstract name."""
    name = f"claudebox-test-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{name}")
        server.listen()
        yield name


@pytest.mark.req("SEC-02")
def test_abstract_socket_of_the_host_is_out_of_reach(box: Box, abstract_name: str) -> None:
    outside = box.account.run("python3", "-c", CONNECT, abstract_name)
    inside = box.inside("python3", "-c", CONNECT, abstract_name)
    assert (outside.stdout, inside.stdout) == ("reached\n", "Operation not permitted\n")


@pytest.mark.req("SEC-02")
def test_abstract_socket_of_the_box_works(box: Box) -> None:
    assert box.inside("python3", "-c", TALK_INSIDE).stdout == "reached\n"


@pytest.mark.req("SEC-02")
def test_signal_to_the_own_process_group_spares_the_caller(box: Box) -> None:
    """A script and the box that it starts are one process group."""
    script = f"{sys.executable} -c 'import os; os.kill(0, {int(signal.SIGUSR1)})' 2>/dev/null; kill -s USR1 0; true"
    caller = '"$0" --yes --run sh -c "$1" 2>/dev/null; echo survived'
    result = box.account.run("sh", "-c", caller, CLAUDEBOX, script, cwd=box.project)
    assert result.stdout == "survived\n"


@pytest.mark.req("SEC-02")
def test_probe_can_kill_its_caller_without_the_box() -> None:
    done = subprocess.run(
        ["sh", "-c", "sh -c 'kill -s USR1 0'; echo survived"],
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    assert done.stdout == ""
