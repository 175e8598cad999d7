"""Explains whether a box on tier `allowlist` reaches a host. Nothing is looked up and nothing is sent."""

from __future__ import annotations

from ipaddress import ip_address

from claudebox.features.allowlist.rules import NameList, as_written, is_address, is_name
from claudebox.host.ranges import rejected_range
from claudebox.model import Allowed, Allowlist, Plan
from claudebox.settings.table import FULL, INET
from claudebox.view.explanation import ADDRESS, DEPENDS, IN, OUT, Answer, Because, Change, because_of_tier, undo

PRIVATE_TOO = "it is reached if it leads to an address of the internet, which is looked at when the box connects"


def explain_host(plan: Plan, allowlist: Allowlist, subject: str, host: str, port: int) -> Answer:
    """What the list says about a host, and about one port of it, if `port` is not 0."""
    rows = NameList(allowlist.allowed).rows_for(host)
    if not rows:
        return _not_listed(plan, allowlist, subject, host, port)
    fitting = [row for row in rows if not port or not row.ports or port in row.ports]
    if not fitting:
        ports = ", ".join(dict.fromkeys(_ports(row) for row in rows))
        why = Because(f"of {host}, the list has {ports}", rows[0].origin)
        change = Change("adds this port", ("--allow", f"{as_written(host)}:{port}"))
        return Answer(ADDRESS, subject, OUT, "not reachable", (why, because_of_tier(plan)), (change,))
    because = [Because(_listed(row), row.origin) for row in fitting]
    changes = tuple(undo(fitting[0].origin, fitting[0].group or fitting[0].host))
    if is_address(host):
        return Answer(ADDRESS, subject, IN, "reachable", (*because, because_of_tier(plan)), changes)
    verdict = "reachable" if port else f"reachable: {', '.join(dict.fromkeys(_ports(row) for row in fitting))}"
    return Answer(ADDRESS, subject, DEPENDS, verdict, (*because, Because(PRIVATE_TOO), because_of_tier(plan)), changes)


def _not_listed(plan: Plan, allowlist: Allowlist, subject: str, host: str, port: int) -> Answer:
    wanted = f"{as_written(host)}:{port}" if port and port not in (80, 443) else as_written(host)
    why = Because("it is not in the list" if allowlist.allowed else "the list is empty")
    rejected = rejected_range(ip_address(host), allowlist.near) if is_address(host) else None
    if rejected is not None:
        private = Because(f"it could not be: {rejected[0]} is not on the internet ({rejected[1]})")
        change = Change("reaches everything that this host reaches, its own localhost too", ("--network", FULL))
        return Answer(ADDRESS, subject, OUT, "not reachable", (why, private, because_of_tier(plan)), (change,))
    changes = [Change("adds it to the list", ("--allow", wanted))] if is_name(host) or is_address(host) else []
    changes.append(Change("reaches the internet, and nothing near", ("--network", INET)))
    return Answer(ADDRESS, subject, OUT, "not reachable", (why, because_of_tier(plan)), tuple(changes))


def _listed(row: Allowed) -> str:
    """Which row it is, and why it is there."""
    group = f" in {row.group} ({row.reason})" if row.group else ""
    return f"the list has {row.host}{group}, {_ports(row)}, by {row.origin.shown}"


def _ports(row: Allowed) -> str:
    return f"port {', '.join(map(str, row.ports))}" if row.ports else "every port"
