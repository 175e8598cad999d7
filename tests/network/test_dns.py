"""Names in a box on tier `inet` stand for what they stand for on the host, wherever the host's resolvers are."""

import json
import shutil
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from conftest import Box
from network.internet import Internet, Resident

pytestmark = pytest.mark.req("NET-01")

LOOKUP = str(Path(__file__).with_name("lookup.py"))
INTERNET = "198.51.100.10 2001:db8:1::10"
NO_RESOLVER = "no name server of this host can be used from the box"
UNKNOWN = ("error: Name or service not known", "error: No address associated with hostname")

# Who the host's resolvers are, and what names then stand for.
LAN = {"internet.example": INTERNET, "nas.lan": "192.168.50.2 fd00:50::2"}
HOST = {"internet.example": INTERNET, "stub.example": "198.51.100.10"}
PUBLIC = {"internet.example": INTERNET, "public.example": "198.51.100.10"}
RESOLVERS = {
    "on the LAN": ("nameserver 192.168.50.1\n", LAN),
    "on the host itself": ("nameserver 127.0.0.53\noptions edns0 trust-ad\n", HOST),
    "on the host before the LAN": ("nameserver 127.0.0.1\nnameserver 192.168.50.1\n", HOST),
    "on the internet": ("nameserver 198.51.100.10\n", PUBLIC),
    "IPv6 on the internet": ("nameserver 2001:db8:1::10\n", PUBLIC),
    "IPv6 only": ("nameserver fd00:50::1\n", LAN),
    "IPv6 before IPv4": ("nameserver fd00:50::1\nnameserver 198.51.100.10\n", LAN),
    "the first refuses": ("nameserver 192.168.50.2\nnameserver 192.168.50.1\noptions timeout:1\n", LAN),
    "the first is dead": ("nameserver 192.168.50.77\nnameserver 192.168.50.1\noptions timeout:1\n", LAN),
    "IPv4 is dead, IPv6 is not": ("nameserver 192.168.50.77\nnameserver fd00:50::1\noptions timeout:1\n", LAN),
    "LAN before internet": ("nameserver 192.168.50.1\nnameserver 198.51.100.10\n", LAN),
    "internet before LAN": ("nameserver 198.51.100.10\nnameserver 192.168.50.1\n", PUBLIC),
    "search domains": (
        "search home.arpa lan\nnameserver 192.168.50.1\n",
        {"internet.example": INTERNET, "nas": "192.168.50.2 fd00:50::2"},
    ),
    "Tailscale's": (
        "search tailnet.ts.net\nnameserver 100.100.100.100\n",
        {"internet.example": INTERNET, "peer": "100.64.0.7 fd7a:115c:a1e0::7"},
    ),
}


def on_the_host(account: Resident, *questions: tuple[str, str]) -> list[str]:
    done = account.run("python3", LOOKUP, json.dumps(questions))
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def in_the_box(box: Box, *questions: tuple[str, str]) -> list[str]:
    done = look_up(box, *questions)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def look_up(box: Box, *questions: tuple[str, str]) -> CompletedProcess[str]:
    shutil.copy(LOOKUP, box.project)
    return box.inside("python3", "lookup.py", json.dumps(questions), options=("--network", "inet"))


@pytest.mark.parametrize("where", RESOLVERS)
def test_names_mean_what_they_mean_on_the_host(box: Box, account: Resident, pasta: str, where: str) -> None:
    account.resolv_conf, names = RESOLVERS[where]
    questions = [("name", name) for name in names]
    expected = list(names.values())
    assert (on_the_host(account, *questions), in_the_box(box, *questions)) == (expected, expected)


def test_name_that_does_not_exist_is_unknown_at_once(box: Box, pasta: str) -> None:
    assert in_the_box(box, ("name", "nowhere.example"))[0] in UNKNOWN


def test_name_of_a_tailscale_peer_leads_nowhere(box: Box, account: Resident, pasta: str, internet: Internet) -> None:
    account.resolv_conf = "nameserver 100.100.100.100\n"
    script = "exec 3<>/dev/tcp/peer.tailnet.ts.net/8080 && echo secret >&3 && cat <&3"
    outside = account.run("bash", "-c", script)
    inside = box.inside("bash", "-c", script, options=("--network", "inet"))
    assert outside.stdout == "peer"
    assert (inside.returncode, inside.stdout) == (1, "")
    assert internet.lookups("peer.tailnet.ts.net")


# The name server has an address of its own in the box, and listens on both ports.
PORTS_OF_THE_RESOLVER = """
read -r _ resolver </etc/resolv.conf
for port in 53 8080; do (exec 3<>/dev/tcp/$resolver/$port) && echo $port; done
"""


@pytest.mark.parametrize("resolver", ["192.168.50.1", "fd00:50::1"])
def test_of_a_name_server_on_the_lan_one_port_is_reached(
    box: Box, account: Resident, pasta: str, resolver: str
) -> None:
    account.resolv_conf = f"nameserver {resolver}\n"
    outside = account.run("bash", "-c", PORTS_OF_THE_RESOLVER)
    inside = box.inside("bash", "-c", PORTS_OF_THE_RESOLVER, options=("--network", "inet"))
    assert (outside.stdout, inside.stdout) == ("53\n8080\n", "53\n")


def test_large_answer_arrives_in_one_datagram(box: Box, pasta: str) -> None:
    expected = ["truncated", "60 records, 991 bytes"]
    assert in_the_box(box, ("udp", "large.example"), ("edns", "large.example")) == expected


def test_larger_answer_arrives_over_a_connection(box: Box, pasta: str) -> None:
    questions = [("edns", "long.example"), ("tcp", "long.example"), ("name", "large.example")]
    truncated, text, addresses = in_the_box(box, *questions)
    assert (truncated, text, len(addresses.split())) == ("truncated", "1 records, 3054 bytes", 60)


@pytest.mark.exhaustive("it waits for name servers that do not answer")
def test_resolver_on_the_host_takes_connections_where_pasta_can(
    box: Box, account: Resident, pasta: str, user: Resident
) -> None:
    """Debian 12's pasta forwards only datagrams to the host's loopback: there a large one has to do."""
    account.resolv_conf = "nameserver 127.0.0.53\noptions edns0 trust-ad\n"
    answers = in_the_box(box, ("edns", "large.example"), ("name", "large.example"), ("tcp", "long.example"))
    assert (answers[0], len(answers[1].split())) == ("60 records, 991 bytes", 60)
    assert (answers[2] == "1 records, 3054 bytes") == is_newer(pasta, user), answers[2]


def test_link_local_resolver_is_left_out_and_the_user_told(box: Box, account: Resident, pasta: str) -> None:
    """As routers announce themselves over IPv6. Debian 12's pasta would lose the answer."""
    account.resolv_conf = "nameserver fe80::1%eth0\n"
    done = look_up(box, ("name", "nas.lan"))
    assert (done.returncode, NO_RESOLVER in done.stderr) == (0, True), done.stderr


def is_newer(pasta: str, user: Resident, known: dict[str, bool] = {}) -> bool:  # noqa: B006 - asked once for each
    """Than Debian 12's: started without claudebox, does it carry a connection to the resolver?"""
    if pasta not in known:
        forwarder = "10.255.213.1"
        options = ("--no-map-gw", "-4", "-a", "10.255.213.2", "-n", "30", "-g", forwarder, "--dns-forward", forwarder)
        question = ("python3", LOOKUP, '[["tcp", "long.example"]]', forwarder)
        done = user.run(pasta, "--quiet", "--config-net", *options, "--", *question)
        known[pasta] = "records" in done.stdout
    return known[pasta]


def test_box_starts_without_a_resolver(box: Box, account: Resident, pasta: str) -> None:
    account.resolv_conf = "# none\n"
    done = box.inside("echo", "started", options=("--network", "inet"))
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr
    assert NO_RESOLVER in done.stderr
