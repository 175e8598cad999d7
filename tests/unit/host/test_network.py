"""What is near to this host: read from files of a fake /proc, and from a real kernel in a namespace."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from claudebox.host import network
from claudebox.host.network import Neighbourhood, read_neighbourhood
from claudebox.host.tree import Tree
from hosts.machine import plant
from patience import PATIENCE

pytestmark = pytest.mark.req("NET-01")

SOURCE = Path(network.__file__).parents[2]
TITLE = r"Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
BROADCAST, TUNNEL = "0x1003\\n", "0x10d1\\n"  # of an Ethernet device, of WireGuard's


def row4(device: str, destination: str, gateway: str, flags: str, mask: str) -> str:
    return rf"{device}\t{destination}\t{gateway}\t{flags}\t0\t0\t0\t{mask}\t0\t0\t0\n"


def row6(destination: str, length: str, gateway: str, flags: str, device: str) -> str:
    return rf"{destination:0<32} {length} {'0' * 32} 00 {gateway:0>32} 00000400 00000001 00000000 {flags} {device:>8}\n"


DEFAULT4 = row4("eth0", "00000000", "0101A8C0", "0003", "00000000")
LINK4 = row4("eth0", "0001A8C0", "00000000", "0001", "00FFFFFF")
DEFAULT6 = row6("", "00", "fe800000000000000000000000000001", "00000003", "eth0")
LINK6 = row6("20010db80005", "40", "", "00000001", "eth0")


def near(root: Path, monkeypatch: pytest.MonkeyPatch, four: str = "", six: str = "", more: str = "") -> Neighbourhood:
    """A host with these routes and the addresses of a home."""
    own = ("127.0.0.1/8", "192.168.1.5/24", "2001:db8:5::5/128")
    monkeypatch.setattr(network, "own_addresses", lambda: own)
    plant(root, f"/proc/net/route: {TITLE}{four}\n/proc/net/ipv6_route: {six}\n{more}")
    return read_neighbourhood(Tree(str(root)))


def test_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = "/etc/resolv.conf: nameserver 192.168.1.1\\nsearch home.example\\n"
    assert near(tmp_path, monkeypatch, DEFAULT4 + LINK4, DEFAULT6 + LINK6, more) == Neighbourhood(
        addresses=("127.0.0.1/8", "192.168.1.5/24", "2001:db8:5::5/128"),
        gateways=("192.168.1.1", "fe80::1"),
        has_ipv4=True,
        has_ipv6=True,
        resolvers=("192.168.1.1",),
        search=("search home.example",),
        # An address of DHCPv6 stands alone: only the route tells what is on the link.
        links=("2001:db8:5::/64",),
    )


def test_host_without_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "own_addresses", tuple)
    found = read_neighbourhood(Tree(str(tmp_path)))
    assert found == Neighbourhood((), (), False, False, (), ())
    assert found.everything == ()


def test_what_every_host_has_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    multicast, link = row6("ff", "08", "", "00000001", "eth0"), row6("fe80", "40", "", "00000001", "eth0")
    found = near(tmp_path, monkeypatch, DEFAULT4 + LINK4, DEFAULT6 + multicast + link)
    assert found.everything == ("192.168.1.5/24", "2001:db8:5::5/128", "192.168.1.1")


ROUTES4 = {
    "on a link": (row4("eth0", "007100CB", "00000000", "0001", "00FFFFFF"), ("203.0.113.0/24",)),
    "one machine on a link": (row4("eth0", "097100CB", "00000000", "0005", "FFFFFFFF"), ("203.0.113.9/32",)),
    "behind a gateway": (row4("eth0", "007100CB", "0101A8C0", "0003", "00FFFFFF"), ()),
    "down": (row4("eth0", "007100CB", "00000000", "0000", "00FFFFFF"), ()),
    "unreachable": (row4("*", "007100CB", "00000000", "0201", "00FFFFFF"), ()),
    "blackhole": (row4("*", "007100CB", "00000000", "0001", "00FFFFFF"), ()),
    # A VPN that takes everything may do so in parts: these are no neighbours.
    "through a tunnel": (row4("wg0", "00000080", "00000000", "0001", "00000080"), ()),
    "device that nobody knows": (row4("gone0", "007100CB", "00000000", "0001", "00FFFFFF"), ("203.0.113.0/24",)),
    "half a line": (r"eth0\t007100CB\n", ()),
}
ROUTES6 = {
    "on a link": (row6("20010db80009", "30", "", "00000001", "eth0"), ("2001:db8:9::/48",)),
    "behind a gateway": (row6("20010db80009", "30", "20010db80005000000000000000000fe", "00000003", "eth0"), ()),
    "unreachable": (row6("20010db80009", "30", "", "00200200", "lo"), ()),
    "own address": (row6("20010db80005000000000000000000ff", "80", "", "80200001", "eth0"), ()),
    "through a tunnel": (row6("8", "01", "", "00000001", "wg0"), ()),
}
DEVICES = f"/sys/class/net/eth0/flags: {BROADCAST}\n/sys/class/net/wg0/flags: {TUNNEL}"


@pytest.mark.parametrize("name", ROUTES4)
def test_route_over_ipv4(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row, links = ROUTES4[name]
    found = near(tmp_path, monkeypatch, DEFAULT4 + row, "", DEVICES)
    assert (found.links, found.gateways) == (links, ("192.168.1.1",))


@pytest.mark.parametrize("name", ROUTES6)
def test_route_over_ipv6(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row, links = ROUTES6[name]
    found = near(tmp_path, monkeypatch, "", DEFAULT6 + row, DEVICES)
    assert (found.links, found.gateways) == (links, ("fe80::1",))


NOWHERE4 = row4("*", "00000000", "00000000", "0201", "00000000")
NOWHERE6 = row6("", "00", "", "00200200", "lo")


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize(
    ("four", "six", "expected"),
    [
        ("", "", (False, False)),
        (LINK4, LINK6, (False, False)),
        (NOWHERE4, NOWHERE6, (False, False)),
        (DEFAULT4, NOWHERE6, (True, False)),
        (NOWHERE4, DEFAULT6, (False, True)),
        (NOWHERE4 + DEFAULT4, NOWHERE6 + DEFAULT6, (True, True)),
        (row4("tun0", "00000000", "00000000", "0001", "00000000"), "", (True, False)),
    ],
)
def test_ways_out(
    four: str, six: str, expected: tuple[bool, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = near(tmp_path, monkeypatch, four, six)
    assert (found.has_ipv4, found.has_ipv6) == expected


def test_several_gateways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = row4("wlan0", "00000000", "FE01A8C0", "0003", "00000000")
    again = row4("eth1", "00000000", "0101A8C0", "0003", "00000000")
    vpn = row4("tun0", "00000000", "00000000", "0001", "00000000")
    assert near(tmp_path, monkeypatch, vpn + DEFAULT4 + other + again).gateways == ("192.168.1.1", "192.168.1.254")


# With a real kernel. /sys has to be that of the namespace.
ASK = """
import json, sys
sys.path.insert(0, sys.argv[1])
from claudebox.host.network import read_neighbourhood
from claudebox.host.tree import Tree
near = read_neighbourhood(Tree())
print(json.dumps({**near.__dict__, "everything": near.everything}))
"""
CABLE = "ip link add eth0 type veth peer name far; ip link set far up; ip link set eth0 up; ip link set lo up;"


def ask_kernel(script: str) -> dict[str, Any]:
    command = f'mount -t sysfs none /sys; {script}\nexec "$@"'
    words = ("unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-ec", command, "sh")
    done = subprocess.run(
        [*words, sys.executable, "-c", ASK, str(SOURCE)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.ip
def test_kernel_tells_addresses_links_and_gateways() -> None:
    found = ask_kernel(
        f"""{CABLE}
        ip address add 192.168.1.5/24 dev eth0
        ip address add 203.0.113.5/32 dev eth0
        ip address add 198.51.100.1 peer 198.51.100.2 dev eth0
        ip address add 2001:db8:5::5/128 dev eth0 nodad
        ip address add 2001:db8:7::5/64 dev eth0 nodad
        ip route add 203.0.113.0/26 dev eth0
        ip route add default via 192.168.1.1
        ip -6 route add 2001:db8:5::/64 dev eth0
        ip -6 route add default via 2001:db8:5::1
        ip -6 route add 2001:db8:8::/48 via 2001:db8:5::1"""
    )
    assert (found["has_ipv4"], found["has_ipv6"]) == (True, True)
    assert set(found["everything"]) == {
        *("192.168.1.5/24", "203.0.113.5/32", "198.51.100.2/32", "198.51.100.1", "2001:db8:5::5/128"),
        *("2001:db8:7::5/64",),
        *("203.0.113.0/26", "2001:db8:5::/64"),
        *("192.168.1.1", "2001:db8:5::1"),
    }


@pytest.mark.ip
def test_kernel_tells_many_addresses() -> None:
    """In more than one piece."""
    batch = "\\n".join(f"address add 10.{number // 250}.{number % 250}.1/24 dev eth0" for number in range(1000))
    found = ask_kernel(f"{CABLE} printf '{batch}\\n' | ip -batch -")
    own = {f"10.{number // 250}.{number % 250}.1/24" for number in range(1000)}
    assert {address for address in found["addresses"] if address.startswith("10.")} == own
    assert found["links"] == ["ff00::/8"]


@pytest.mark.ip
def test_kernel_tells_that_there_is_no_way_out() -> None:
    found = ask_kernel(
        f"{CABLE} ip route add unreachable default; ip route add blackhole default metric 9;"
        "ip -6 route add unreachable default"
    )
    assert (found["has_ipv4"], found["has_ipv6"], found["gateways"]) == (False, False, [])


@pytest.mark.network
def test_kernel_tells_a_tunnel_from_a_link() -> None:
    found = ask_kernel(
        f"{CABLE} ip tuntap add tun0 mode tun; ip link set tun0 up; ip address add 10.8.0.2/32 dev tun0;"
        "ip route add 0.0.0.0/1 dev tun0; ip route add 203.0.113.0/24 dev eth0"
    )
    assert found["links"] == ["203.0.113.0/24", "ff00::/8"]
