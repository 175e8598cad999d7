"""The filter of tier `inet`, as an nftables ruleset that a person can read.

It is loaded in the box's own network namespace before bwrap starts. The namespace belongs to a user namespace in which
no process of the box has a capability, so nothing inside can change it.
"""

from __future__ import annotations

from claudebox.host.network import Neighbourhood
from claudebox.host.ranges import GLOBAL, NAT64, rejected_ranges
from claudebox.record import Record

DEVICE = "tap0"
REFUSE = (
    "\tchain refuse {\n"
    "\t\t# An ICMPv6 message would end a connection only at its second try, after a second.\n"
    "\t\tmeta nfproto ipv6 meta l4proto tcp reject with tcp reset\n"
    "\t\treject with icmpx type admin-prohibited\n"
    "\t}\n"
)


class Resolver(Record):
    """A name server of the host, and the address that stands for it in the box."""

    alias: str
    address: str  # "" if pasta itself passes queries on


def internet_only(near: Neighbourhood, resolvers: tuple[Resolver, ...], host_ports: tuple[int, ...] = ()) -> str:
    """A ruleset with which everything may go out, except to what is private or near."""
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
