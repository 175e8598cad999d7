"""The test network itself: what the other tests take for granted."""

from __future__ import annotations

import os
import socket

import pytest

from network.internet import CONFIGURATION, Internet, Resident
from network.servers import PORT


@pytest.mark.req("NET-01")
def test_every_machine_is_reached_from_the_host_without_a_box(internet: Internet) -> None:
    addresses = "127.0.0.1 192.168.50.1 192.168.50.2 169.254.169.254 100.64.0.7 10.9.9.9 64:ff9b::1 198.51.100.10"
    with internet.host.entered():
        answers = [ask(address) for address in addresses.split()]
    assert answers == list(CONFIGURATION)


def ask(address: str) -> str:
    with socket.create_connection((address, PORT), 5) as connection:
        connection.sendall(b"hello")
        return connection.recv(100).decode()


@pytest.mark.req("NET-01")
def test_machine_itself_is_not_in_the_test_network(internet: Internet) -> None:
    here = os.stat("/proc/thread-self/ns/net").st_ino
    assert here not in {os.fstat(machine.descriptor).st_ino for machine in internet.machines.values()}


@pytest.mark.req("NET-01")
def test_programs_of_an_account_run_on_the_host(account: Resident) -> None:
    done = account.run("sh", "-c", "id -u; pwd; cat /etc/resolv.conf; ls /proc/sys/net/ipv4/conf")
    interfaces = "all default eth0 lo ppp0 tailscale0".split()
    expected = [str(account.uid), str(account.home), "nameserver 192.168.50.1", *interfaces]
    assert done.stdout.splitlines() == expected, done.stderr
