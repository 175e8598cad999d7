"""The filter of tier `inet`: what it rejects, computed from its text, and asked from a real nft and a real kernel."""

import re
import subprocess
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_interface, ip_network

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from claudebox.features.network.uplink import Resolver, find_resolvers, internet_only, nothing
from claudebox.host.network import Neighbourhood
from claudebox.settings.types import LAST_PORT
from hosts.machine import HOME_NETWORK
from patience import PATIENCE
from running.needs import SYSTEM_PATH
from running.versions import versions

pytestmark = pytest.mark.req("NET-01")

QUICK = settings(deadline=None, max_examples=200)
WITH_NFT = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))

Address = IPv4Address | IPv6Address
NAT64 = IPv6Network("64:ff9b::/96")
# What `ipaddress` calls special and the filter lets pass all the same.
ALLOWED = {
    "192.0.2.0/24": "documentation: nobody has it, and networks made for tests are made of it",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "2001:db8::/32": "documentation",
    "3fff::/20": "documentation",
}
PUBLIC = (
    *("1.1.1.1", "8.8.8.8", "9.9.9.9", "160.79.104.10", "104.16.0.1", "140.82.121.4", "151.101.1.69", "13.107.42.14"),
    *("99.255.255.255", "100.63.255.255", "100.128.0.0", "11.0.0.0", "9.255.255.255", "126.255.255.255", "128.0.0.0"),
    *("169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0"),
    *("198.17.255.255", "198.20.0.0", "223.255.255.255", "1.0.0.0", "168.63.129.15", "168.63.129.17", "192.88.98.0"),
    *("2606:4700::1111", "2607:6bc0::10", "2001:4860:4860::8888", "2620:fe::fe", "2a00:1450:4001::200e", "2000::1"),
    *("2001:200::1", "2003::1", "2400:cb00::1", "3ffe::1", "64:ff9b::1.1.1.1", "64:ff9b::160.79.104.10"),
)
NEAR_BUT_PUBLIC = HOME_NETWORK.replace(
    addresses=("127.0.0.1/8", "203.0.113.65/26", "2001:db8:5::5/64"), gateways=("203.0.113.126", "fe80::1"),
    links=("198.51.100.0/25", "2001:db8:6::/64"),
)  # fmt: skip

fours, sixes = st.ip_addresses(v=4), st.ip_addresses(v=6)
# No link is larger than the smallest of these.
own_addresses = st.builds("{}/{}".format, fours, st.integers(8, 32)) | st.builds(
    "{}/{}".format, sixes, st.integers(10, 128)
)
gateways = fours.map(str) | sixes.map(str)
neighbourhoods = st.builds(
    Neighbourhood,
    addresses=st.lists(own_addresses, max_size=6).map(tuple),
    gateways=st.lists(gateways, max_size=3).map(tuple),
    has_ipv4=st.booleans(),
    has_ipv6=st.booleans(),
    resolvers=st.lists(gateways | st.sampled_from(["127.0.0.53", "::1"]), max_size=4).map(tuple),
    search=st.just(()),
    links=st.lists(own_addresses.map(lambda text: str(ip_interface(text).network)), max_size=3).map(tuple),
)
some_ports = st.lists(st.integers(1, LAST_PORT), max_size=3, unique=True).map(tuple)


class Filter:
    """Understands the text of the ruleset: its two sets, and the rule about the rest of IPv6."""

    def __init__(self, ruleset: str) -> None:
        self.four = self._set(ruleset, "private4")
        self.six = self._set(ruleset, "private6")
        (rest,) = re.findall(r"^\t\tip6 daddr != \{ (.*) \} goto refuse$", ruleset, re.MULTILINE)
        self.open = [ip_network(text) for text in rest.split(", ")]
        assert "\t\tip daddr @private4 goto refuse\n" in ruleset
        assert "\t\tip6 daddr @private6 goto refuse\n" in ruleset

    @staticmethod
    def _set(ruleset: str, name: str) -> list[object]:
        (body,) = re.findall(
            rf"^\tset {name} {{\n\t\ttype [^\n]*\n\t\telements = {{\n(.*?)\n\t\t}}", ruleset, re.M | re.S
        )
        return [ip_network(line.split(",")[0].strip(), strict=False) for line in body.splitlines()]

    def rejects(self, address: Address) -> bool:
        if isinstance(address, IPv4Address):
            return any(address in network for network in self.four)  # type: ignore[operator]
        is_open = any(address in network for network in self.open)
        return not is_open or any(address in network for network in self.six)  # type: ignore[operator]


def filter_of(near: Neighbourhood) -> Filter:
    return Filter(internet_only(near, find_resolvers(near)))


HOME = filter_of(HOME_NETWORK)


def is_special(address: Address) -> bool:
    """Whether Python knows it for something else than a place on the internet."""
    special = (address.is_private, address.is_multicast, address.is_reserved, address.is_loopback)
    odd = (address.is_link_local, address.is_unspecified, not address.is_global)
    if isinstance(address, IPv6Address):
        inside = (address.ipv4_mapped, address.sixtofour, address.teredo)
        return any((*special, *odd, address.is_site_local, *(form is not None for form in inside)))
    return any((*special, *odd))


def is_allowed(address: Address) -> bool:
    return any(address in ip_network(network) for network in ALLOWED)


@QUICK
@given(fours)
def test_everything_special_of_ipv4_is_rejected(address: IPv4Address) -> None:
    assert HOME.rejects(address) or not is_special(address) or is_allowed(address)


@QUICK
@given(sixes)
@example(IPv6Address("2001:1::1"))  # whatever router is nearest
@example(IPv6Address("2001:2::1"))
@example(IPv6Address("5f00::1"))
def test_everything_special_of_ipv6_is_rejected(address: IPv6Address) -> None:
    # Behind NAT64 it depends on the address inside: below.
    assert HOME.rejects(address) or not is_special(address) or is_allowed(address) or address in NAT64


@QUICK
@given(fours, neighbourhoods)
def test_nat64_leads_to_what_ipv4_leads_to(address: IPv4Address, near: Neighbourhood) -> None:
    filters = filter_of(near)
    translated = IPv6Address(int(NAT64.network_address) | int(address))
    # A link can have the prefix of NAT64 itself.
    assert filters.rejects(translated) or not filters.rejects(address)
    assert HOME.rejects(translated) == HOME.rejects(address)


@QUICK
@given(fours)
def test_no_other_form_of_an_ipv4_address_passes(address: IPv4Address) -> None:
    number = int(address)
    for form in ("::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b:1::"):
        assert HOME.rejects(IPv6Address(int(IPv6Address(form)) | number))
    assert HOME.rejects(IPv6Address(0x2002 << 112 | number << 80 | 1))  # 6to4
    assert HOME.rejects(IPv6Address(0x20010000 << 96 | number << 64 | 0xFFFFFFFF ^ number))  # Teredo


@pytest.mark.parametrize(
    "network",
    [
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"),
        *("168.63.129.16/32", "255.255.255.255/32", "100.100.100.100/32", "169.254.169.254/32"),
        *("::/8", "::1/128", "::ffff:0:0/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001::/32", "2002::/16"),
        *("fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "fd00:ec2::254/128", "fd7a:115c:a1e0::/48", "4000::/2"),
    ],
)
def test_both_ends_of_a_private_network_are_rejected(network: str) -> None:
    ends = ip_network(network)
    assert all(HOME.rejects(ends[place]) for place in (0, ends.num_addresses // 2, -1))


@pytest.mark.parametrize("text", PUBLIC)
def test_internet_is_not_rejected(text: str) -> None:
    assert not HOME.rejects(ip_address(text))


@pytest.mark.parametrize("network", ALLOWED)
def test_documentation_is_not_rejected_unless_it_is_near(network: str) -> None:
    ends = ip_network(network)
    assert not HOME.rejects(ends[0])
    assert not HOME.rejects(ends[-1])


@QUICK
@given(neighbourhoods)
@example(NEAR_BUT_PUBLIC)
def test_this_host_its_links_and_gateways_are_rejected(near: Neighbourhood) -> None:
    filters = filter_of(near)
    for text in (*near.addresses, *near.links, *near.gateways):
        interface = ip_interface(text)
        for address in (interface.ip, interface.network[0], interface.network[-1]):
            assert filters.rejects(address), text


@QUICK
@given(neighbourhoods, st.sampled_from(PUBLIC))
def test_nothing_else_is_rejected(near: Neighbourhood, text: str) -> None:
    address = ip_address(text)
    own = [ip_interface(each).network for each in (*near.addresses, *near.links, *near.gateways)]
    inside = IPv4Address(int(address) & 0xFFFFFFFF) if address in NAT64 else address
    is_near = any(address in network or inside in network for network in own)
    assert filter_of(near).rejects(address) == is_near


# What else the text says


@pytest.mark.req("FAIL-01")
@given(neighbourhoods, some_ports)
def test_what_no_rule_accepts_is_dropped(near: Neighbourhood, ports: tuple[int, ...]) -> None:
    for ruleset in (internet_only(near, find_resolvers(near), ports), nothing(ports)):
        assert ruleset.count("hook output priority 0; policy drop\n") == 1


def test_order_of_the_rules() -> None:
    """The box's own localhost and name servers first, then what is refused, then the way out."""
    resolvers = (Resolver("10.255.213.1", ""), Resolver("10.255.213.4", "192.168.1.1"))
    ruleset = internet_only(HOME_NETWORK, resolvers, (5432,))
    body = ruleset.partition("policy drop\n")[2]
    assert [line.strip() for line in body.splitlines() if line.startswith("\t\t")] == [
        "ip6 daddr ::1 tcp dport { 5432 } reject with tcp reset",
        "ip daddr 127.0.0.0/8 ip daddr != 127.0.0.1 tcp dport { 5432 } reject with tcp reset",
        'oifname "lo" accept',
        "ct status dnat accept",
        "ip daddr 10.255.213.1 meta l4proto { tcp, udp } th dport 53 accept",
        "icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } accept",
        "ip daddr @private4 goto refuse",
        "ip6 daddr @private6 goto refuse",
        "ip6 daddr != { 2000::/3, 64:ff9b::/96 } goto refuse",
        'oifname "tap0" accept',
    ]


@pytest.mark.req("NET-03")
def test_without_a_network_only_localhost_is_accepted() -> None:
    accepted = [line.strip() for line in nothing((80,)).splitlines() if "accept" in line]
    assert accepted == ['oifname "lo" accept']


# The real nft, in a namespace of its own


def in_namespace(*command: str, input: str) -> subprocess.CompletedProcess[str]:
    words = ("unshare", "--user", "--map-root-user", "--net", *command)
    environ = {"PATH": SYSTEM_PATH}
    return subprocess.run(
        words, input=input, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.nft
@pytest.mark.parametrize("nft", versions("nft"))
@WITH_NFT
@given(near=neighbourhoods, ports=some_ports, is_open=st.booleans())
@example(near=HOME_NETWORK, ports=(1, LAST_PORT), is_open=True)
@example(near=NEAR_BUT_PUBLIC, ports=(), is_open=True)
def test_nft_accepts_every_ruleset(nft: str, near: Neighbourhood, ports: tuple[int, ...], is_open: bool) -> None:
    ruleset = internet_only(near, find_resolvers(near), ports) if is_open else nothing(ports)
    done = in_namespace(nft, "-c", "-f", "-", input=ruleset)
    assert (done.returncode, done.stderr) == (0, "")


LOOK = """
nft=$1; shift
"$nft" -f - || exit
for address; do
    case $address in *:*) set=private6 ;; *) set=private4 ;; esac
    "$nft" get element inet claudebox $set "{ $address }" >/dev/null 2>&1 && echo "$address"
done
:
"""


@pytest.mark.nft
@pytest.mark.parametrize("nft", versions("nft"))
def test_kernel_has_the_sets_as_they_are_written(nft: str) -> None:
    """Where ranges touch and overlap, nft merges them: the ends are where that can go wrong."""
    filters = filter_of(NEAR_BUT_PUBLIC)
    ends = [end for network in (*filters.four, *filters.six) for end in (network[0], network[-1])]  # type: ignore[index]
    asked = {str(address) for end in ends for address in _around(end)}
    done = in_namespace("sh", "-c", LOOK, "sh", nft, *sorted(asked), input=internet_only(NEAR_BUT_PUBLIC, ()))
    assert (done.returncode, done.stderr) == (0, "")
    found = set(done.stdout.split())
    assert found == {text for text in asked if _is_in_a_set(filters, ip_address(text))}


def _around(address: Address) -> list[Address]:
    top = 2**address.max_prefixlen - 1
    return [
        type(address)(number) for number in (int(address) - 1, int(address), int(address) + 1) if 0 <= number <= top
    ]


def _is_in_a_set(filters: Filter, address: Address) -> bool:
    networks = filters.four if isinstance(address, IPv4Address) else filters.six
    return any(address in network for network in networks)  # type: ignore[operator]
