"""Whom a box reaches, on each tier of the network: a connection to everything that a test network has."""

import json
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import Box
from network.internet import Internet
from network.servers import PORT

PROBE = Path(__file__).with_name("probe.py")
NOBODY = "nobody"

# What it is, its address, who answers there, and whether `inet` may reach it. `full` reaches all, `none` nothing.
# An address is asked over TCP and UDP; a group, which is multicast or broadcast, over UDP.
INTERNET = """
    internet                    198.51.100.10             internet
    internet                    2001:db8:1::10            internet
    internet behind NAT64       64:ff9b::198.51.100.10    translator
"""
PRIVATE = """
    host's loopback             127.0.0.1                 host
    host's loopback             127.0.0.53                host
    host's loopback             ::1                       host
    host's loopback             ::ffff:127.0.0.1          host
    host, unspecified           0.0.0.0                   host
    host, unspecified           ::                        host
    host on the LAN             192.168.50.10             host
    host on the LAN             fd00:50::10               host
    host, public                203.0.113.10              host
    host, public                2001:db8:50::10           host
    host, point to point        203.0.113.65              host
    host on Tailscale           100.64.0.10               host
    host on Tailscale           fd7a:115c:a1e0::10        host
    LAN gateway                 192.168.50.1              router
    LAN gateway                 fd00:50::1                router
    LAN gateway                 2001:db8:50::1            router
    LAN gateway, link-local     fe80::1                   router
    LAN neighbour               192.168.50.2              neighbour
    LAN neighbour               ::ffff:192.168.50.2       neighbour
    LAN neighbour               fd00:50::2                neighbour
    LAN neighbour, link-local   fe80::2                   neighbour
    LAN neighbour, public       203.0.113.2               neighbour
    LAN neighbour, public       2001:db8:50::2            neighbour
    LAN neighbour by a route    203.0.113.130             neighbour
    other end of a line         203.0.113.66              peer
    Tailscale peer              100.64.0.7                peer
    Tailscale peer              fd7a:115c:a1e0::7         peer
    Tailscale's MagicDNS        100.100.100.100           peer
    metadata of a cloud         169.254.169.254           cloud
    metadata of AWS             fd00:ec2::254             cloud
    host agent of Azure         168.63.129.16             cloud
    routed private net          10.9.9.9                  intranet
    routed private net          172.20.9.9                intranet
    routed private net          192.168.99.9              intranet
    routed private net          fd00:9::9                 intranet
    gateway of the box          10.255.213.1              intranet
    gateway of the box          fd00:c1a:de::1            intranet
    protocol assignments        192.0.0.9                 intranet
    relay to IPv6               192.88.99.1               intranet
    benchmarks                  198.18.0.9                intranet
    benchmarks                  198.19.255.9              intranet
    reserved                    240.0.0.9                 intranet
    reserved                    4000::9                   intranet
    site-local                  fec0::9                   intranet
    NAT64 of this host          64:ff9b::127.0.0.1        translator
    NAT64 of this host          64:ff9b::203.0.113.10     translator
    NAT64 of the LAN            64:ff9b::192.168.50.2     translator
    NAT64 of the LAN            64:ff9b::203.0.113.2      translator
    NAT64 of a line             64:ff9b::203.0.113.66     translator
    NAT64 of Tailscale          64:ff9b::100.64.0.7       translator
    NAT64 of metadata           64:ff9b::169.254.169.254  translator
    NAT64 of Azure's agent      64:ff9b::168.63.129.16    translator
    NAT64 of a private net      64:ff9b::10.9.9.9         translator
    NAT64 of a private net      64:ff9b::172.20.9.9       translator
    NAT64 of nothing            64:ff9b::0.0.0.0          translator
    NAT64, local prefix         64:ff9b:1::192.168.50.2   translator
    NAT64, local prefix         64:ff9b:1::198.51.100.10  translator
    6to4 of the LAN             2002:c0a8:3202::1         translator
    Teredo                      2001:0:c633:640a::1       translator
    IPv4-compatible             ::192.168.50.2            translator
    IPv4-translated             ::ffff:0:192.168.50.2     translator
"""
GROUPS = """
    DNS of all neighbours       224.0.0.251               neighbour
    discovery of devices        239.255.255.250           neighbour
    broadcast                   255.255.255.255           neighbour
    broadcast on the LAN        192.168.50.255            neighbour
    broadcast on the LAN        203.0.113.63              neighbour
    all nodes                   ff02::1                   neighbour
    DNS of all neighbours       ff02::fb                  neighbour
"""


@dataclass(frozen=True)
class Target:
    what: str
    address: str
    machine: str
    protocol: str
    on_the_internet: bool

    @property
    def label(self) -> str:
        return f"{self.protocol:5} {self.address:26} {self.what}"


def read(table: str, *protocols: str, on_the_internet: bool = False) -> list[Target]:
    rows = [line.rsplit(maxsplit=2) for line in table.strip().splitlines()]
    return [Target(row[0].strip(), row[1], row[2], each, on_the_internet) for row in rows for each in protocols]


TARGETS = [
    *read(INTERNET, "tcp", "udp", on_the_internet=True),
    *read(PRIVATE, "tcp", "udp"),
    *read(GROUPS, "group"),
]
FULL = {target.label: target.machine for target in TARGETS}
INET = {target.label: target.machine if target.on_the_internet else NOBODY for target in TARGETS}
NONE = {target.label: NOBODY for target in TARGETS}


def probe(box: Box, internet: Internet, tier: str, *options: str) -> dict[str, str]:
    """For each target who answered, and whatever else is to be said about it."""
    token = uuid.uuid4().hex
    questions = json.dumps([(target.protocol, target.address, PORT) for target in TARGETS])
    shutil.copy(PROBE, box.project)
    done = box.inside("python3", "probe.py", token, questions, options=("--network", tier, *options))
    assert done.returncode == 0, done.stderr
    answers = zip(TARGETS, json.loads(done.stdout), strict=True)
    return {target.label: outcome(internet, target, token, answer) for target, answer in answers}


def outcome(internet: Internet, target: Target, token: str, answer: str) -> str:
    """Who answered; a question that arrived is a leak even without an answer, and to be left waiting is annoying."""
    machine = answer if answer in internet.machines else NOBODY
    heard = " ".join(sorted(internet.heard(f"{token} {target.protocol} {target.address}"))) or NOBODY
    remarks = [f"heard by {heard}"] if heard != machine else []
    remarks += ["after a long wait"] if answer == "silence" else []
    return ", ".join([machine, *remarks])


@pytest.mark.req("NET-03")
def test_full_reaches_everything_as_the_host_does(box: Box, internet: Internet) -> None:
    """Which also shows that each target is there to be reached."""
    assert probe(box, internet, "full") == FULL


@pytest.mark.req("NET-01", "NET-02")
def test_inet_reaches_the_internet_and_nothing_else(box: Box, pasta: str, internet: Internet) -> None:
    assert probe(box, internet, "inet") == INET


@pytest.mark.req("NET-03", "NAME-01")
@pytest.mark.parametrize("tier", ["none", "allowlist"])
def test_no_network_and_a_list_of_nothing_reach_nothing(box: Box, internet: Internet, tier: str) -> None:
    assert probe(box, internet, tier) == NONE


@pytest.mark.req("NET-03")
def test_full_is_what_a_box_has_unless_told_otherwise(box: Box, internet: Internet) -> None:
    place = "readlink /proc/self/ns/net"
    assert box.sh(place) == internet.host.run("sh", "-c", place)
