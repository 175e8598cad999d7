"""A socket as standard stream belongs to the network that it was made in."""

from __future__ import annotations

import socket
import subprocess

import pytest

from conftest import CLAUDEBOX, Account, Box


def start(account: Account, box: Box, tier: str, stream: socket.socket) -> subprocess.CompletedProcess[str]:
    """With this socket as standard input."""
    number = stream.fileno()
    script = f'exec "$0" --yes --network {tier} --run true <&{number}'
    return account.run("bash", "-c", script, CLAUDEBOX, cwd=box.project, pass_fds=(number,))


@pytest.mark.req("NET-01", "NET-03", "FAIL-01")
@pytest.mark.parametrize("tier", [pytest.param("inet", marks=pytest.mark.network), "none"])
def test_socket_of_the_hosts_network_is_refused(box: Box, account: Account, tier: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as stream:
        done = start(account, box, tier, stream)
    assert done.returncode == 125
    assert "is a socket of this host's network" in " ".join(done.stderr.split())


@pytest.mark.req("NET-03")
def test_unix_socket_is_fine(box: Box, account: Account) -> None:
    """As editors and test runners use it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert start(account, box, "none", theirs).returncode == 0
