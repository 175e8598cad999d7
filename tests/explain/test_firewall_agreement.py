"""What `--explain` says of addresses is what the filter does, in a network namespace that leads nowhere."""

import ipaddress
import json
import subprocess
import sys
from pathlib import Path

import pytest

from claudebox.host.network import PRIVATE4, PRIVATE6, translated
from claudebox.output.explanation import Answer
from explain.asking import Asked, ask
from hosts.machine import HOME_NETWORK, debian
from patience import PATIENCE

# As pasta would leave it, but with nobody at the other end of the link.
NAMESPACE = """
import json, socket, subprocess, sys, time

given = json.load(sys.stdin)
COMMANDS = '''
ip link set lo up
ip link add tap0 type veth peer name far
ip link set far up
ip link set tap0 up addrgenmode none
ip addr add 10.255.213.2/28 dev tap0
ip addr add fd00:c1a:de::2/64 dev tap0 nodad
ip neigh add 10.255.213.1 lladdr 02:00:00:00:00:01 dev tap0
ip neigh add fd00:c1a:de::1 lladdr 02:00:00:00:00:01 dev tap0
ip route add default via 10.255.213.1 dev tap0
ip -6 route add default via fd00:c1a:de::1 dev tap0
'''
def shown(command):
    return subprocess.run(command.split(), check=True, capture_output=True, text=True).stdout

for command in COMMANDS.strip().splitlines():
    shown(command)
# The kernel brings a link up, and its addresses into use, when it has time for it.
while "state UP" not in shown("ip link show tap0") or "fd00:c1a:de::2" not in shown("ip -6 route show table local"):
    time.sleep(0.01)
if given["ruleset"]:
    subprocess.run(["nft", "-f", "-"], input=given["ruleset"], text=True, check=True)

def goes_out(host, port):
    try:
        (family, kind, _, _, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
        with socket.socket(family, kind) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sender.connect(address)
            sender.send(b"x")
    except OSError:
        return False
    return True

print(json.dumps([goes_out(host, port) for host, port in given["targets"]]))
"""
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
OTHERS = (
    *("0.0.0.0", "127.0.0.1", "127.1", "0x0a.5", "012.0.0.1", "::1", "::", "10.255.213.2", "fd00:c1a:de::2"),
    *("198.51.100.7", "203.0.113.9", "1.0.0.1", "2606:4700::1111", "2001:db8::1", "3fff::1", "4000::1", "1fff::1"),
    *("::ffff:10.0.0.5", "::ffff:198.51.100.7", "64:ff9b::c633:6407", "64:ff9b:1::1", "fe80::1%tap0", "fd00::1"),
    *("10.255.213.1", "10.255.213.3", "10.255.213.4", "fd00:c1a:de::1", "100::1", "5f00::1"),
)


def edges(network: str) -> list[str]:
    """The first and the last address of a range, and those beside it."""
    whole = ipaddress.ip_interface(network).network
    kind = type(whole.network_address)
    first, last = int(whole.network_address), int(whole.broadcast_address)
    beyond = (1 << whole.max_prefixlen) - 1
    return [str(kind(number)) for number in (first - 1, first, last, last + 1) if 0 <= number <= beyond]


def targets() -> list[str]:
    ranges = [*(text for text, _ in (*PRIVATE4, *PRIVATE6)), *HOME_NETWORK.everything]
    ranges += [translated(text) for text in ranges if ":" not in text]
    return [*OTHERS, *(address for text in ranges for address in edges(text))]


def sent(asked: Asked, pairs: list[tuple[str, int]]) -> list[bool]:
    uplink = asked.plan.network.uplink
    given = {"ruleset": uplink.ruleset if uplink else "", "targets": pairs}
    command = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-I", "-c", NAMESPACE]
    done = subprocess.run(
        command,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        env={"PATH": PATH},
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: list[bool] = json.loads(done.stdout)
    return result


@pytest.mark.req("NET-01", "NET-03")
@pytest.mark.parametrize(
    "options", [("--network", "inet"), ("--network", "none", "--publish", "8080")], ids=["inet", "none"]
)
@pytest.mark.nft
@pytest.mark.ip
def test_what_is_said_of_addresses_is_what_the_filter_does(tmp_path: Path, options: tuple[str, ...]) -> None:
    asked = ask(debian(tmp_path, "/usr/bin/pasta*\n/usr/bin/nft*").host(), *options)
    pairs = [(host, port) for host in dict.fromkeys(targets()) for port in (53, 443)]
    said = [
        asked.answer(f"[{host}]:{port}" if ":" in host else f"{host}:{port}").state != Answer.OUT
        for host, port in pairs
    ]
    done = sent(asked, pairs)
    assert {pair: went for pair, went, expected in zip(pairs, done, said, strict=True) if went != expected} == {}
    assert (True in done, False in done) == (True, True)
