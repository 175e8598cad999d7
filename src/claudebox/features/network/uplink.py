"""Decides how a box with a network of its own is connected: by pasta, through a filter that nft loads.

The filter is an nftables ruleset that a person can read. It is loaded in the box's own network namespace before bwrap
starts. The namespace belongs to a user namespace in which no process of the box has a capability, so nothing inside can
change it.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem
from claudebox.facts import Contribution, Facts
from claudebox.features.network import NETWORK_FEATURE, grants, plan_network
from claudebox.host.programs import choose_uplink
from claudebox.host.tree import Tree
from claudebox.host.variables import AROUND, KINDS, is_loopback, split_port
from claudebox.model import FILE, EnvVar, Finding, Launch, Mount, Network, Origin, Plan, Step, Uplink
from claudebox.process.companion import become_program, filter_problem, load_ruleset, log_content, make_log, open_port
from claudebox.process.isolation import advice, enter_network_namespace
from claudebox.record import Record
from claudebox.settings import Settings
from claudebox.settings.table import AUTH, BROKER, HOST_PORTS, INET, NETWORK, NFT_PATH, NO_NETWORK, PASTA_PATH, PUBLISH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

    from claudebox.host.network import Neighbourhood


RESOLVER = Origin.of_rule("resolver", "name servers, as this network tier reaches them")

DEVICE = "tap0"
REFUSE = (
    "\tchain refuse {\n"
    "\t\t# An ICMPv6 message would end a connection only at its second try, after a second.\n"
    "\t\tmeta nfproto ipv6 meta l4proto tcp reject with tcp reset\n"
    "\t\treject with icmpx type admin-prohibited\n"
    "\t}\n"
)

# Addresses inside of the box only: on the host nothing has them.
PREFIX4, LENGTH4 = "10.255.213.", "28"
PREFIX6 = "fd00:c1a:de::"
GATEWAY, BOX, FIRST_RESOLVER = 1, 2, 3
# For a command that was pasted, where pasta itself publishes: servers in the box may listen on its localhost alone.
# Old versions of pasta do this anyway and lack the option.
LOOPBACK_STAYS = "--host-lo-to-ns-lo"
# pasta offers the box a window larger than the buffer of its own socket, drops what does not fit and says nothing of
# it: only the box's timer notices. With cubic or bbr, which send too much again, the timer doubles each time, up to two
# minutes without a byte. So the box sends less after a loss, repeats what was lost before anything new, and soon. The
# last one needs Linux 6.11. A smaller mtu does not help.
STEADY_UPLOAD = (("ipv4/tcp_congestion_control", "reno"), ("ipv4/tcp_frto", "0"), ("ipv4/tcp_rto_min_us", "50000"))
LARGEST_PROGRAM = 8 << 20
CARRIED_FROM = ("localhost", "127.0.0.1")  # on the host: neither ::1 nor another address of its loopback is carried
MOST_RESOLVERS = 3  # that the C library asks
ADDRESS_CHARACTERS = frozenset("0123456789abcdefABCDEF.:")  # anything else has no place in a ruleset

# udev gives this device mode 0666. Where there is no udev, in containers and small machines, it keeps the mode that the
# kernel gave it, which is 0600.
TUN = "/dev/net/tun"
TUN_REASON = f"pasta needs {TUN}, which everybody may open"
TUN_COMMANDS = ("sudo modprobe tun", f"sudo chmod 0666 {TUN}", f"docker run --device {TUN} …")
# What an old and a new pasta say if they cannot open the device.
TUN_REFUSALS = ("tun socket", "tap device")


class Resolver(Record):
    """A name server of the host, and the address that stands for it in the box."""

    alias: str
    address: str  # "" if pasta itself passes queries on


def decide(facts: Facts) -> Contribution:
    settings, host = facts.settings, facts.host
    if not needs_uplink(settings):
        network = plan_network(settings, None)
        return Contribution(network=network, grants=grants(network))
    named = {"pasta": settings[PASTA_PATH], "nft": settings[NFT_PATH]}
    pasta, nft = choose_uplink(host, named, facts.reach)
    # What is near the host is looked up only here, for a box that must not reach it.
    uplink = plan_uplink(settings, host.neighbourhood(host.tree), host.tree, pasta, nft)
    network = plan_network(settings, uplink)
    resolvers = uplink.resolv_conf.encode()
    return Contribution(
        mounts=(Mount(FILE, "/etc/resolv.conf", RESOLVER, content=resolvers, mode=0o444),) if resolvers else (),
        network=network,
        grants=grants(network),
        steps=(Step(Step.INSIDE, NETWORK_FEATURE),),
    )


def complete(facts: Facts, plan: Plan) -> Plan:
    """Say what will not work as it does on the host."""
    # With a broker, claude needs no network.
    is_claude = plan.program.title == "claude" and facts.settings[AUTH].text != BROKER
    findings = network_findings(plan.network, plan.environment, is_claude=is_claude)
    return plan.replace(findings=(*plan.findings, *findings))


def needs_uplink(settings: Settings) -> bool:
    """Whether pasta has to connect the box with the outside: for the internet, or for ports alone."""
    has_ports = bool(settings[PUBLISH] or settings[HOST_PORTS])
    return settings[NETWORK].text == INET or (settings[NETWORK].text == NO_NETWORK and has_ports)


def plan_uplink(settings: Settings, near: Neighbourhood, tree: Tree, pasta: str, nft: str) -> Uplink:
    is_open = settings[NETWORK].text == INET
    if not near.has_ipv4 and not near.has_ipv6:
        why = "so there is no internet to give to the box" if is_open else "without which pasta carries no ports"
        # Newer versions of pasta could carry ports all the same.
        hint = "--network none" if is_open else "without ports: --network none"
        raise Problem(f"this host has no default route, {why}", hint)
    resolvers = find_resolvers(near) if is_open else ()
    ports = tuple(port.host for port in settings[HOST_PORTS])
    options = _pasta_options(settings, near, resolvers)
    is_recent = LOOPBACK_STAYS.strip("-").encode() in (tree.read(pasta, LARGEST_PROGRAM) or b"")
    if settings[PUBLISH] and is_recent:
        options = (*options, LOOPBACK_STAYS)
    return Uplink(
        pasta=pasta,
        options=options,
        nft=nft,
        ruleset=internet_only(near, resolvers, ports) if is_open else nothing(ports),
        near=near.everything if is_open else (),
        resolv_conf=_resolv_conf(resolvers, near.search),
        # An old pasta acknowledges late what goes far; there the box has to have much under way.
        sysctls=STEADY_UPLOAD if is_recent else (),
    )


def find_resolvers(near: Neighbourhood) -> tuple[Resolver, ...]:
    """How the box asks the name servers of the host, in their order.

    The box reaches those at another address through an alias that the filter translates, for port 53 alone. pasta asks
    one on the host's own loopback, such as systemd-resolved, and takes the first of each family.
    """
    found: list[Resolver] = []
    four = [address for address in near.resolvers if ":" not in address]
    six = [address for address in near.resolvers if ":" in address]
    for address in near.resolvers[:MOST_RESOLVERS]:
        is_reachable, prefix, family = (
            (near.has_ipv6, PREFIX6, six) if address in six else (near.has_ipv4, PREFIX4, four)
        )
        if not is_reachable or not ADDRESS_CHARACTERS.issuperset(address):
            continue
        if not is_loopback(address):
            found.append(Resolver(f"{prefix}{FIRST_RESOLVER + len(found)}", address))
        elif address == family[0]:
            found.append(Resolver(f"{prefix}{GATEWAY}", ""))
    return tuple(found)


def _resolv_conf(resolvers: tuple[Resolver, ...], search: tuple[str, ...]) -> str:
    """The box's resolv.conf, or "" if no name server can be asked: then there is nothing to search for either."""
    lines = [*(f"nameserver {resolver.alias}" for resolver in resolvers), *search] if resolvers else []
    return "".join(f"{line}\n" for line in lines)


def _pasta_options(settings: Settings, near: Neighbourhood, resolvers: tuple[Resolver, ...]) -> tuple[str, ...]:
    """Give the box addresses of its own, forward only what was asked for, and leave no way to the host's loopback."""
    options = ["--quiet", "--config-net", "--ns-ifname", DEVICE, "--no-map-gw"]
    options += ["--no-dhcp", "--no-dhcpv6", "--no-ra", "--udp-ports", "none", "--udp-ns", "none"]
    if near.has_ipv4:
        options += ["--address", f"{PREFIX4}{BOX}", "--netmask", LENGTH4, "--gateway", f"{PREFIX4}{GATEWAY}"]
    else:
        options += ["--ipv6-only"]
    if near.has_ipv6:
        options += ["--address", f"{PREFIX6}{BOX}", "--gateway", f"{PREFIX6}{GATEWAY}"]
    else:
        options += ["--ipv4-only"]
    for resolver in resolvers:
        if not resolver.address:
            options += ["--dns-forward", resolver.alias]
    return (*options, "--tcp-ns", ",".join(str(port.host) for port in settings[HOST_PORTS]) or "none")


def network_findings(network: Network, variables: Iterable[EnvVar], *, is_claude: bool) -> list[Finding]:
    findings = []
    if network.tier == NO_NETWORK and is_claude:
        findings.append(Finding(Finding.NOTE, "--network none", "claude cannot reach its API"))
    if network.tier == INET and network.uplink is not None and not network.uplink.resolv_conf:
        text = "no name server of this host can be used from the box: names will not resolve"
        findings.append(Finding(Finding.NOTE, "DNS", text))
    carried = {str(port.host) for port in network.host_ports}
    for variable in variables:
        is_shown = not variable.secret and not variable.is_ours and KINDS.get(variable.name) != AROUND
        host, port = _server_of(variable.value) if is_shown else ("", "")
        can_carry = host in CARRIED_FROM
        if is_loopback(host) and not (can_carry and port in carried):
            way = f": --host-port {port}" if port and can_carry else ""
            text = f"the box does not reach {host} of this host{way}"
            findings.append(Finding(Finding.NOTE, variable.name, text))
    return findings


def _server_of(value: str) -> tuple[str, str]:
    """The host and the port that a URL names; ("", "") for anything else."""
    scheme, separator, rest = value.partition("://")
    if not separator or not scheme.isalnum():
        return "", ""
    return split_port(rest.partition("/")[0].rpartition("@")[2])


def is_about_tun(message: str) -> bool:
    return any(refusal in message for refusal in TUN_REFUSALS)


# The filter


def internet_only(near: Neighbourhood, resolvers: tuple[Resolver, ...], host_ports: tuple[int, ...] = ()) -> str:
    """A ruleset with which everything may go out, except to what is private or near."""
    from claudebox.host.network import GLOBAL, NAT64, rejected_ranges

    four, six = rejected_ranges(near.everything)
    return (
        "table inet claudebox {\n"
        + _set("private4", "ipv4_addr", four)
        + _set("private6", "ipv6_addr", six)
        + _resolver_chain(resolvers)
        + REFUSE
        + "\tchain output {\n"
        "\t\ttype filter hook output priority 0; policy drop\n"
        + _localhost(host_ports)
        + _resolver_rules(resolvers)
        + "\t\ticmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } accept\n"
        "\t\tip daddr @private4 goto refuse\n"
        "\t\tip6 daddr @private6 goto refuse\n"
        f"\t\tip6 daddr != {{ {GLOBAL}, {NAT64}/96 }} goto refuse\n"
        f'\t\toifname "{DEVICE}" accept\n'
        "\t}\n"
        "}\n"
    )


def nothing(host_ports: tuple[int, ...] = ()) -> str:
    """A ruleset that leaves the box its own localhost, and the ports that pasta carries to it."""
    return (
        f"table inet claudebox {{\n{REFUSE}"
        "\tchain output {\n"
        "\t\ttype filter hook output priority 0; policy drop\n"
        f"{_localhost(host_ports)}"
        "\t\tgoto refuse\n"
        "\t}\n"
        "}\n"
    )


def _localhost(host_ports: tuple[int, ...]) -> str:
    """Let the box reach its own localhost, and the host's ports at 127.0.0.1 alone.

    pasta carries them from the host's 127.0.0.1. A program that tries ::1 first has to be refused at once to go on to
    127.0.0.1, and the newest pasta would carry them from all of 127.0.0.0/8.
    """
    ports = ", ".join(str(port) for port in host_ports)
    refusals = ("ip6 daddr ::1", "ip daddr 127.0.0.0/8 ip daddr != 127.0.0.1") if ports else ()
    rules = "".join(f"\t\t{refusal} tcp dport {{ {ports} }} reject with tcp reset\n" for refusal in refusals)
    return rules + '\t\toifname "lo" accept\n'


def _set(name: str, kind: str, rows: list[tuple[str, str]]) -> str:
    elements = "".join(f"\t\t\t{address},  # {reason}\n" for address, reason in dict(rows).items())
    return f"\tset {name} {{\n\t\ttype {kind}; flags interval; auto-merge\n\t\telements = {{\n{elements}\t\t}}\n\t}}\n"


def _resolver_chain(resolvers: tuple[Resolver, ...]) -> str:
    """Lead to port 53 of each name server, wherever that is, and to nothing else on that machine."""
    rules = "".join(
        f"\t\t{_family(resolver.alias)} daddr {resolver.alias} meta l4proto {{ tcp, udp }} th dport 53 "
        f"dnat {_family(resolver.alias)} to {resolver.address}\n"
        for resolver in resolvers
        if resolver.address
    )
    return f"\tchain resolvers {{\n\t\ttype nat hook output priority -100\n{rules}\t}}\n" if rules else ""


def _resolver_rules(resolvers: tuple[Resolver, ...]) -> str:
    rules = "\t\tct status dnat accept\n" if any(resolver.address for resolver in resolvers) else ""
    return rules + "".join(
        f"\t\t{_family(resolver.alias)} daddr {resolver.alias} meta l4proto {{ tcp, udp }} th dport 53 accept\n"
        for resolver in resolvers
        if not resolver.address
    )


def _family(address: str) -> str:
    return "ip6" if ":" in address else "ip"


CONNECTION_PATIENCE_MS = 10_000
PID_SIZE = 32
# When everything is set up, and not before, pasta writes its number into the pipe that is its standard output. It
# publishes nothing: it keeps the kind of address, and many development servers in the box listen at ::1 alone.
ATTACHED = (
    *("--foreground", "--netns", "/proc/self/fd/0", "--no-netns-quit", "--pid", "/proc/self/fd/1"),
    *("--tcp-ports", "none"),
)

# Settings of the new namespace: IPv6 addresses can be used at once, and everybody may ping.
KERNEL_SETTINGS = (("ipv6/conf/default/accept_dad", "0"), ("ipv4/ping_group_range", "0 0"))


def inside(launch: Launch, life: int, pastas_end: int) -> None:
    network = launch.plan.network
    assert network.uplink is not None
    # They are opened here, and stay this host's. A process in the box's network carries on what arrives at them.
    listeners = [(open_port(port), port.box) for port in network.published]
    connect(network.uplink, life, pastas_end)
    if listeners:
        from claudebox.servers import start_carrier

        start_carrier(listeners)


def connect(uplink: Uplink, life: int, pastas_end: int) -> None:
    """Move into a network namespace with this uplink, whose life is that of pasta."""
    log = make_log("pasta")
    go, permission = os.pipe()
    number = os.readlink("/proc/self")
    if os.fork() == 0:
        os.close(permission)
        _become_pasta(uplink, number, go, pastas_end, log)
    os.close(pastas_end)
    os.close(go)
    enter_network_namespace((*KERNEL_SETTINGS, *uplink.sysctls))
    os.write(permission, b".")
    os.close(permission)
    refusal = load_ruleset(uplink.nft, uplink.ruleset)
    if refusal:
        raise filter_problem(refusal)
    if not _is_ready(life):
        raise _pasta_problem(log_content(log))


def _become_pasta(uplink: Uplink, parent: str, go: int, life: int, log: int) -> NoReturn:
    """Become pasta, in a session of its own: no key of the terminal is meant for it."""
    try:
        os.setsid()
        if os.read(go, 1):
            # New versions close every other descriptor, and may not look into /proc of their parent.
            namespace = os.open(f"/proc/{parent}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            become_program(uplink.pasta, ("pasta", *ATTACHED, *uplink.options), (namespace, life, log))
    finally:
        os._exit(1)


def _is_ready(life: int) -> bool:
    """Whether pasta has set up everything. False if it has ended, or takes too long."""
    import select

    poll = select.poll()
    poll.register(life, select.POLLIN)
    return bool(poll.poll(CONNECTION_PATIENCE_MS)) and bool(os.read(life, PID_SIZE))


def _pasta_problem(log: str) -> Problem:
    last = (log.splitlines() or ["it did not answer"])[-1]
    hint = "\n      ".join((TUN_REASON, *TUN_COMMANDS)) if is_about_tun(last) else advice()[0]
    return Problem(f"pasta cannot connect the box: {last}", hint)
