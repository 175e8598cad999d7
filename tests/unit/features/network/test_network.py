"""What is said about the network, and what is made of it: tier, ports, name servers, options of pasta."""

import ipaddress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudebox.errors import Problem
from claudebox.features.network import check_ports, plan_network
from claudebox.features.network.uplink import Resolver, find_resolvers, needs_uplink, network_findings, plan_uplink
from claudebox.host.network import Neighbourhood, read_neighbourhood
from claudebox.host.tree import Tree
from claudebox.model import BY_DEFAULT, EnvVar, Finding, Network, Origin, Uplink
from claudebox.settings import Settings, Word
from claudebox.settings.gather import merge
from claudebox.settings.table import ALLOWLIST, HOST_PORTS, NETWORK, PUBLISH, TIERS
from claudebox.settings.types import LAST_PORT
from hosts.machine import HOME_NETWORK, Machine, debian
from saying import from_options, from_variables, parse

QUICK = settings(deadline=None, max_examples=100)

ports = st.integers(1, LAST_PORT)
tiers = st.sampled_from(TIERS)
own_tiers = st.sampled_from(["inet", "none"])


OWN, PROFILE, PROJECTS = "~/.claudebox/config.toml", "~/.claudebox/profiles/p.toml", "~/shop/.claudebox.toml"


def machine(root: Path, planted: str, environ: dict[str, str] | None = None) -> Machine:
    return debian(root, f"{planted}\n/usr/bin/pasta*\n/usr/sbin/nft*", environ=environ or {})


def said(*words: str, **environ: str) -> Settings:
    return merge([*from_variables(environ), *from_options(parse(list(words)).said)])


def numbers(*words: str) -> list[tuple[int, int]]:
    found = said(*words)
    return [(port.host, port.box) for port in (*found[PUBLISH], *found[HOST_PORTS])]


def uplink(*words: str, near: Neighbourhood = HOME_NETWORK, tree: Tree | None = None) -> Uplink:
    return plan_uplink(said(*words), near, tree or Tree("/nonexistent"), "/usr/bin/pasta", "/usr/sbin/nft")


# The tier


@pytest.mark.req("NET-03")
def test_network_is_the_hosts_unless_told_otherwise() -> None:
    assert said()[NETWORK] == Word("full", BY_DEFAULT)
    assert said(CLAUDEBOX_NETWORK="")[NETWORK] == Word("full", BY_DEFAULT)


@pytest.mark.req("NET-03")
@given(tiers, tiers)
def test_option_wins_over_the_variable(option: str, variable: str) -> None:
    assert said(CLAUDEBOX_NETWORK=variable)[NETWORK] == Word(variable, Origin.of_variable("CLAUDEBOX_NETWORK"))
    assert said("--network", option, CLAUDEBOX_NETWORK=variable)[NETWORK] == Word(option, Origin.of_option("--network"))


@pytest.mark.req("NET-03")
def test_last_option_wins() -> None:
    assert said("--network", "none", "--network=inet")[NETWORK].text == "inet"


@pytest.mark.req("NET-03", "FAIL-01")
@pytest.mark.parametrize("tier", ["FULL", "inet ", "lan", "full,none", "host", "\x1b[2J"])
def test_unknown_tier_is_refused(tier: str) -> None:
    for words, environ in ((("--network", tier), {}), ((), {"CLAUDEBOX_NETWORK": tier})):
        if words or tier:
            with pytest.raises(Problem, match="is not a value of network"):
                said(*words, **environ)


@pytest.mark.req("NET-03", "FAIL-01")
def test_misspelled_variable_is_not_hidden_by_ports() -> None:
    with pytest.raises(Problem, match="CLAUDEBOX_NETWORK: `internet` is not a value of network"):
        said("--publish", "80", CLAUDEBOX_NETWORK="internet")


@pytest.mark.req("NAME-01")
def test_host_that_is_allowed_alone_means_the_allowlist() -> None:
    assert said("--allow", "a.example")[NETWORK] == Word(ALLOWLIST, Origin.of_option("--allow"))
    for tier in TIERS:
        typed, by_variable = said("--allow", "a.example", "--network", tier), Origin.of_variable("CLAUDEBOX_NETWORK")
        assert typed[NETWORK] == Word(tier, Origin.of_option("--network"))
        assert said("--allow", "a.example", CLAUDEBOX_NETWORK=tier)[NETWORK] == Word(tier, by_variable)


@pytest.mark.req("NAME-01")
@pytest.mark.parametrize("place", [OWN, PROFILE, PROJECTS])
def test_host_that_is_allowed_by_a_file_waits_for_that_tier(tmp_path: Path, place: str) -> None:
    found = machine(tmp_path, f'{place}: allow = ["a.example"]')
    profile = ("--profile", "p") if place == PROFILE else ()
    assert found.facts(*profile).settings[NETWORK] == Word("full", BY_DEFAULT)


@pytest.mark.req("NAME-01", "FAIL-01")
@pytest.mark.parametrize("tier", ["full", "inet", "none"])
@pytest.mark.parametrize("place", [OWN, PROJECTS])
def test_host_that_is_allowed_does_not_change_the_tier_of_a_file(tmp_path: Path, place: str, tier: str) -> None:
    found = machine(tmp_path, f'{place}: network = "{tier}"')
    with pytest.raises(Problem, match=f"--allow has no meaning with --network {tier}"):
        found.plan("--allow", "a.example")


@pytest.mark.req("NAME-01", "FAIL-01")
def test_old_name_of_the_allowlist_is_refused_wherever_it_is_said(tmp_path: Path) -> None:
    """A box with another network than the one that was asked for could reach more."""
    old = 'network = "names"'
    ways: tuple[tuple[str, dict[str, str], tuple[str, ...]], ...] = (
        ("", {}, ("--network", "names")),
        ("", {"CLAUDEBOX_NETWORK": "names"}, ()),
        (f"{OWN}: {old}", {}, ()),
        (f"{PROFILE}: {old}", {"CLAUDEBOX_PROFILE": "p"}, ()),
        (f"{PROJECTS}: {old}", {}, ()),
    )
    for number, (planted, environ, words) in enumerate(ways):
        with pytest.raises(Problem, match="`names` is not a value of") as raised:
            machine(tmp_path / str(number), planted, environ).plan(*words)
        assert raised.value.hint == "it is called `allowlist` now"


@pytest.mark.req("NET-03")
def test_only_inet_and_ports_need_an_uplink() -> None:
    assert [needs_uplink(said("--network", tier)) for tier in TIERS] == [False, True, False, False]
    assert not needs_uplink(said("--network", "allowlist", "--publish", "80"))
    assert needs_uplink(said("--network", "none", "--publish", "80"))
    assert needs_uplink(said("--network", "none", "--host-port", "80"))


# Ports


@pytest.mark.req("NET-04")
@given(ports, ports)
def test_port_of_the_host_and_of_the_box(host: int, box: int) -> None:
    assert numbers("--publish", str(host)) == [(host, host)]
    assert numbers("--publish", f"{host}:{box}") == [(host, box)]
    assert numbers("--host-port", str(host)) == [(host, host)]


@pytest.mark.req("NET-04")
@given(st.lists(ports, unique=True, max_size=5), st.lists(ports, unique=True, max_size=5))
def test_ports_add_up_in_their_order(published: list[int], hosts: list[int]) -> None:
    words = [word for port in published for word in ("--publish", str(port))]
    words += [word for port in hosts for word in ("--host-port", str(port))]
    found = said(*words)
    assert [port.host for port in found[PUBLISH]] == published
    assert [port.host for port in found[HOST_PORTS]] == hosts
    assert {port.origin.shown for port in found[PUBLISH]} <= {"--publish"}
    assert {port.origin.shown for port in found[HOST_PORTS]} <= {"--host-port"}


@pytest.mark.req("NET-04")
@given(ports)
def test_same_port_twice_is_one(port: int) -> None:
    assert numbers("--publish", f"{port}:80", "--publish", f"{port}:80") == [(port, 80)]
    assert numbers("--host-port", str(port), "--host-port", str(port)) == [(port, port)]


@pytest.mark.req("NET-04", "FAIL-01")
@given(ports, ports, ports)
def test_port_of_the_host_leads_to_one_place(host: int, one: int, other: int) -> None:
    if one != other:
        with pytest.raises(Problem, match="already leads to"):
            check_ports(said("--network", "inet", "--publish", f"{host}:{one}", "--publish", f"{host}:{other}"))


@pytest.mark.req("NET-04", "FAIL-01")
@pytest.mark.parametrize(
    "text",
    [
        *(":", "80:", ":80", "0", "0:80", "80:0", "65536", "80:65536", "-1", "+80", " 80", "80 ", "8e1", "0x50"),
        *("80:80:80", "127.0.0.1:80", "80/udp", "80-90", "80,81", "8_0", "\u0668\u0660", "\xb9", "1" * 5000),
    ],
)
def test_these_are_no_ports(text: str) -> None:
    for option in ("--publish", "--host-port"):
        with pytest.raises(Problem, match="is not a port"):
            said(option, text)


@pytest.mark.req("NET-04", "FAIL-01")
@given(own_tiers, ports, ports)
def test_no_port_leads_in_a_circle(tier: str, host: int, box: int) -> None:
    with pytest.raises(Problem, match="either a server in the box or one of this host"):
        check_ports(said("--network", tier, "--publish", f"{host}:{box}", "--host-port", str(box)))
    if host != box:
        check_ports(said("--network", tier, "--publish", f"{host}:{box}", "--host-port", str(host)))


@pytest.mark.req("NET-04")
def test_plan_tells_the_ports() -> None:
    wanted = said("--network", "inet", "--publish", "8080:80", "--host-port", "5432")
    network = plan_network(wanted, uplink("--network", "inet"))
    assert (network.published, network.host_ports) == (wanted[PUBLISH], wanted[HOST_PORTS])
    assert not network.is_hosts


# Options of pasta


def values(options: tuple[str, ...], name: str) -> list[str]:
    return [after for before, after in pairwise(options) if before == name]


@pytest.mark.req("NET-01", "NET-04")
@given(own_tiers, st.lists(st.tuples(ports, ports), max_size=4, unique_by=lambda port: port[0]), st.lists(ports))
def test_pasta_carries_what_was_asked_for_and_nothing_else(
    tier: str, published: list[tuple[int, int]], hosts: list[int]
) -> None:
    words = [word for host, box in published for word in ("--publish", f"{host}:{box}")]
    words += [word for port in hosts for word in ("--host-port", str(port))]
    options = uplink("--network", tier, *words).options
    assert values(options, "--tcp-ports") == []  # a launch publishes by itself
    assert values(options, "--tcp-ns") == [",".join(map(str, dict.fromkeys(hosts))) or "none"]
    # Without these, pasta forwards what listens, or shows the host's loopback as the gateway.
    assert values(options, "--udp-ports") == values(options, "--udp-ns") == ["none"]
    assert "--no-map-gw" in options


@pytest.mark.req("NET-01")
@pytest.mark.parametrize(("four", "six"), [(True, True), (True, False), (False, True)])
def test_box_has_the_families_that_the_host_has(four: bool, six: bool) -> None:
    options = uplink("--network", "inet", near=HOME_NETWORK.replace(has_ipv4=four, has_ipv6=six)).options
    assert [":" in address for address in values(options, "--address")] == [False] * four + [True] * six
    assert ("--ipv4-only" in options, "--ipv6-only" in options) == (not six, not four)


@pytest.mark.req("NET-04")
@pytest.mark.parametrize(("content", "expected"), [(b"\0--host-lo-to-ns-lo\0", True), (b"\0--address\0", False)])
def test_option_of_newer_pastas_is_given_to_those_that_have_it(content: bytes, expected: bool, tmp_path: Path) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/pasta").write_bytes(content)
    tree = Tree(str(tmp_path))
    assert ("--host-lo-to-ns-lo" in uplink("--network", "inet", "--publish", "80", tree=tree).options) is expected
    assert "--host-lo-to-ns-lo" not in uplink("--network", "inet", tree=tree).options
    assert bool(uplink("--network", "inet", tree=tree).sysctls) is expected


# Name servers


def near_with(resolv_conf: str | bytes, root: Path, *, four: bool = True, six: bool = True) -> Neighbourhood:
    """A host with this /etc/resolv.conf."""
    (root / "etc").mkdir(exist_ok=True)
    content = resolv_conf if isinstance(resolv_conf, bytes) else resolv_conf.encode(errors="surrogateescape")
    (root / "etc/resolv.conf").write_bytes(content)
    return read_neighbourhood(Tree(str(root))).replace(has_ipv4=four, has_ipv6=six)


LAN = Resolver("10.255.213.3", "192.168.1.1")
PASTA4, PASTA6 = Resolver("10.255.213.1", ""), Resolver("fd00:c1a:de::1", "")
RESOLV_CONFS: dict[str, tuple[str, list[Resolver]]] = {
    "LAN": ("nameserver 192.168.1.1\n", [LAN]),
    "tabs, blanks, carriage returns": ("nameserver\t 192.168.1.1 \t\r\n", [LAN]),
    "no line end": ("nameserver 192.168.1.1", [LAN]),
    "systemd-resolved": ("# stub\nnameserver 127.0.0.53\noptions edns0 trust-ad\nsearch .\n", [PASTA4]),
    "dnsmasq over IPv6": ("nameserver ::1\n", [PASTA6]),
    "loopback of both": ("nameserver 127.0.0.1\nnameserver ::1\n", [PASTA4, PASTA6]),
    "IPv6 only": ("nameserver 2001:4860:4860::8888\n", [Resolver("fd00:c1a:de::3", "2001:4860:4860::8888")]),
    "of a private IPv6 net": ("nameserver fd00:50::1\n", [Resolver("fd00:c1a:de::3", "fd00:50::1")]),
    "both families": (
        "nameserver 2001:db8::53\nnameserver 192.168.1.1\n",
        [Resolver("fd00:c1a:de::3", "2001:db8::53"), Resolver("10.255.213.4", "192.168.1.1")],
    ),
    "several": (
        "nameserver 192.168.1.1\nnameserver 9.9.9.9\nnameserver 1.1.1.1\nnameserver 8.8.8.8\n",
        [LAN, Resolver("10.255.213.4", "9.9.9.9"), Resolver("10.255.213.5", "1.1.1.1")],
    ),
    "MagicDNS": ("nameserver 100.100.100.100\nsearch tail.ts.net\n", [Resolver("10.255.213.3", "100.100.100.100")]),
    # pasta asks the first of a family, so a loopback that is not the first cannot be asked.
    "loopback is second": ("nameserver 192.168.1.1\nnameserver 127.0.0.53\n", [LAN]),
    "another after the loopback": (
        "nameserver 127.0.0.53\nnameserver 192.168.1.1\n",
        [PASTA4, Resolver("10.255.213.4", "192.168.1.1")],
    ),
    "IPv4 in IPv6": ("nameserver ::ffff:192.168.1.1\n", [Resolver("fd00:c1a:de::3", "::ffff:192.168.1.1")]),
    # It means nothing on another link.
    "with a zone": ("nameserver fe80::1%eth0\nnameserver 192.168.1.1\n", [LAN]),
    "comments": ("#nameserver 1.1.1.1\n; nameserver 1.1.1.1\nnameserver 192.168.1.1 # router\n", [LAN]),
    "empty": ("", []),
    "no name server": ("search home.example\n", []),
    "garbage": ("nameserver\nnameserver x\nnameservers 1.1.1.1\n\0\nnameserver 1.1.1\nnameserver 999.1.1.1\n", []),
    "garbage before": ("nameserver x\nnameserver 1.1.1.\nnameserver :\nnameserver 127.0.0.53\n", [PASTA4]),
    "part of a ruleset": ("nameserver 1.1.1.1}flush\nnameserver 1.1.1.1;accept\n", []),
    "name": ("nameserver dns.example\nnameserver abc\nnameserver cafe\n", []),
    "network": ("nameserver 0.0.0.0/0\nnameserver ::/0\nnameserver 1.1.1.1-2.2.2.2\n", []),
    "bytes": ("nameserver 1.1.1.1\udcff\nnameserver \udce9\nnameserver 192.168.1.1\n", [LAN]),
    "digits of another script": ("nameserver \u0661.1.1.1\nnameserver 192.168.1.1\n", [LAN]),
}


@pytest.mark.req("NET-01", "SAND-12")
@pytest.mark.parametrize("name", RESOLV_CONFS)
def test_box_asks_the_hosts_name_servers(name: str, tmp_path: Path) -> None:
    text, expected = RESOLV_CONFS[name]
    near = near_with(text, tmp_path)
    assert list(find_resolvers(near)) == expected
    made = uplink("--network", "inet", near=near)
    asked = [line.split()[1] for line in made.resolv_conf.splitlines() if line.startswith("nameserver")]
    assert asked == [resolver.alias for resolver in expected]
    # Those on the host's loopback, and no others, are asked by pasta.
    assert values(made.options, "--dns-forward") == [found.alias for found in expected if not found.address]


@pytest.mark.req("NET-01")
def test_name_server_of_a_family_that_the_host_has_no_way_for_is_left_out(tmp_path: Path) -> None:
    text = "nameserver 2001:db8::53\nnameserver 192.168.1.1\n"
    assert find_resolvers(near_with(text, tmp_path, six=False)) == (LAN,)
    only = find_resolvers(near_with(text, tmp_path, four=False))
    assert only == (Resolver("fd00:c1a:de::3", "2001:db8::53"),)


@pytest.mark.req("SAND-12")
def test_search_list_is_kept_and_words_that_no_screen_should_show_are_not(tmp_path: Path) -> None:
    text = (
        b"nameserver 9.9.9.9\nsearch  a.example\tb.example\noptions ndots:2\nsortlist x\nsearch \x1b[2J\nsearch \xe9\n"
    )
    made = uplink("--network", "inet", near=near_with(text, tmp_path))
    assert made.resolv_conf == "nameserver 10.255.213.3\nsearch a.example b.example\noptions ndots:2\n"


@pytest.mark.req("NET-01")
def test_without_a_name_server_there_is_no_file_and_a_note(tmp_path: Path) -> None:
    made = uplink("--network", "inet", near=near_with("search home.example\n", tmp_path))
    assert made.resolv_conf == ""
    network = plan_network(said("--network", "inet"), made)
    assert [finding.subject for finding in network_findings(network, (), is_claude=True)] == ["DNS"]


@pytest.mark.req("NET-03")
def test_box_without_a_network_asks_nobody(tmp_path: Path) -> None:
    made = uplink("--network", "none", "--publish", "80", near=near_with("nameserver 127.0.0.53\n", tmp_path))
    assert made.resolv_conf == ""
    assert "--dns-forward" not in made.options
    assert "dnat" not in made.ruleset


lines = st.text(st.characters(codec="utf-8"), max_size=40).map(lambda text: f"nameserver {text}")
odd_addresses = st.from_regex(r"nameserver [0-9a-f.:%/]{1,20}[};\n# ]?.{0,9}", fullmatch=True)


@pytest.mark.req("NET-01")
@QUICK
@given(
    content=st.lists(lines | odd_addresses | st.text(max_size=20), max_size=4).map("\n".join) | st.binary(max_size=80)
)
def test_whatever_is_written_there_only_addresses_reach_the_ruleset(
    content: str | bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    near = near_with(content, tmp_path_factory.mktemp("host"))
    resolvers = find_resolvers(near)
    made = uplink("--network", "inet", near=near)
    assert made.resolv_conf.isascii() or made.resolv_conf.replace("\n", "").isprintable()
    plain = near.replace(resolvers=tuple(resolver.address for resolver in resolvers if resolver.address))
    for resolver in resolvers:
        if resolver.address:
            ipaddress.ip_address(resolver.address)  # raises, if it is none
    # Each adds its own rule and nothing more.
    dnat = [line for line in made.ruleset.splitlines() if "dnat ip" in line]
    assert len(dnat) == len(plain.resolvers)
    assert made.ruleset.count("{") == made.ruleset.count("}")


# What will be different


def note(value: str, *words: str, secret: str = "") -> list[str]:
    network = plan_network(said("--network", "inet", *words), uplink("--network", "inet"))
    variable = EnvVar("SERVICE", value, Origin.of_option("--env"), secret=secret)
    return [finding.text for finding in network_findings(network, (variable,), is_claude=True)]


@pytest.mark.req("NET-01")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("http://localhost:8080/v1", "the box does not reach localhost of this host: --host-port 8080"),
        ("redis://alice@127.0.0.1:6379", "the box does not reach 127.0.0.1 of this host: --host-port 6379"),
        ("http://127.8.8.8:80", "the box does not reach 127.8.8.8 of this host"),
        ("http://[::1]:3128", "the box does not reach ::1 of this host"),
    ],
)
def test_variable_that_names_this_host_is_noted(value: str, expected: str) -> None:
    assert note(value) == [expected]


@pytest.mark.req("NET-01")
@pytest.mark.parametrize(
    "value", ["https://example.org", "localhost", "", "://", "http://[", "//localhost", "a b://localhost"]
)
def test_other_variables_are_not(value: str) -> None:
    assert note(value) == []


@pytest.mark.req("NET-04")
def test_port_that_is_carried_is_not_noted() -> None:
    assert note("http://localhost:8080", "--host-port", "8080") == []
    # pasta carries from 127.0.0.1 alone.
    for host, url in {"::1": "http://[::1]:8080", "127.0.0.2": "http://127.0.0.2:8080"}.items():
        assert note(url, "--host-port", "8080") == [f"the box does not reach {host} of this host"]


@pytest.mark.req("SEC-01")
def test_secret_is_not_quoted_in_a_note() -> None:
    assert note("http://alice:hunter2@localhost:8080", secret="a password") == []


@pytest.mark.req("NET-03")
def test_claude_without_a_network_is_noted() -> None:
    network = Network("none", "", Origin.of_option("--network"))
    assert network_findings(network, (), is_claude=True) == [
        Finding(Finding.NOTE, "--network none", "claude cannot reach its API")
    ]
    assert network_findings(network, (), is_claude=False) == []


# Names in the host's /etc/hosts

OWN_NAMES = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback", "127.0.1.1 claudebox"]
ON_THE_INTERNET = ["198.51.100.7 build.example", "2001:db8::7 build.example"]
OF_THE_BOX = ["127.0.0.1 shop.test", "::1 shop.test", "0.0.0.0 ads.example", ":: ads.example"]
OF_THE_LAN = [
    *("10.0.0.5 registry", "192.168.1.9 nas.home.example nas", "fd00::9 nas", "169.254.169.254 metadata"),
    *("2001:db8:5::9 neighbour", "2001:db8:6::9 linked", "100.64.0.7 peer", "::ffff:10.0.0.5 mapped"),
    *("fe80::9%eth0 printer", "ff02::1 ip6-allnodes", "10.0.0 short", "name without.an.address"),
]
HOSTS_FILE = [*OF_THE_LAN[:3], *ON_THE_INTERNET, *OF_THE_BOX, *OF_THE_LAN[3:]]


@pytest.mark.req("NET-01", "NET-03")
@pytest.mark.parametrize(
    ("tier", "entering"),
    [
        ("full", HOSTS_FILE),
        ("inet", [*ON_THE_INTERNET, *OF_THE_BOX]),
        ("none", [*ON_THE_INTERNET, *OF_THE_BOX]),
        ("allowlist", []),
    ],
)
def test_names_of_the_lan_do_not_enter_a_network_of_its_own(tmp_path: Path, tier: str, entering: list[str]) -> None:
    text = "\\n".join(("127.0.0.1 localhost", "127.0.1.1 workstation.example.org workstation", *HOSTS_FILE))
    plan = machine(tmp_path, f"/etc/hosts: {text}\\n").plan("--network", tier)
    (file,) = (mount for mount in plan.mounts if mount.path == "/etc/hosts")
    assert file.content.decode().splitlines() == [*OWN_NAMES, *entering]


@pytest.mark.req("NAME-01")
def test_listed_name_that_the_hosts_file_leads_to_the_lan_is_noted(tmp_path: Path) -> None:
    words = ("--allow", "registry.corp.example", "--allow", "build.example", "--auth", "none")
    text = "10.0.0.5 Registry.Corp.example registry\\n198.51.100.7 build.example\\n10.0.0.6 other.example\\n"
    plan = machine(tmp_path, f"/etc/hosts: {text}").plan(*words, "--run", "true")
    reason = "is 10.0.0.5 in /etc/hosts of this host, which is not on the internet (private): it is refused"
    assert [one.text for one in plan.findings if one.kind == Finding.NOTE and "/etc/hosts" in one.text] == [
        f"Registry.Corp.example {reason}"
    ]
