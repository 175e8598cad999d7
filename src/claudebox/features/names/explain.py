"""Explains whether a box on tier `names` reaches a host. Nothing is looked up and nothing is sent."""

from __future__ import annotations

from ipaddress import ip_address

from claudebox.features.names.rules import NameList, as_written, is_address, is_name
from claudebox.host.ranges import rejected_range
from claudebox.model import Allowed, Names, Plan
from claudebox.settings.table import FULL, INET
from claudebox.view.explanation import Answer, Because, Change, Question, because_of_tier, other_tiers, undo

PRIVATE_TOO = "it is reached if it leads to an address of the internet, which is looked at when the box connects"


def explain(question: Question) -> list[Answer]:
    """What the list says about a host, and about a port of it, if one is named."""
    plan, names, endpoint = question.plan, question.plan.names, question.endpoint
    if names is None or endpoint is None or endpoint.is_own:
        return []
    host, port = str(endpoint.address or endpoint.host), endpoint.port
    rows = NameList(names.allowed).rows_for(host)
    fitting = [row for row in rows if not port or not row.ports or port in row.ports]

    def answer(state: str, verdict: str, why: list[Because], changes: list[Change]) -> list[Answer]:
        return [Answer(Answer.ADDRESS, endpoint.text, state, verdict, [*why, because_of_tier(plan)], changes)]

    if not rows:
        return answer(Answer.OUT, "not reachable", *_not_listed(plan, names, host, port))
    if not fitting:
        why = Because(f"of {host}, the list has {_all_ports(rows)}", rows[0].origin)
        add = Change("adds this port", ("--allow", f"{as_written(host)}:{port}"))
        return answer(Answer.OUT, "not reachable", [why], [add])
    because = [Because(_listed(row), row.origin) for row in fitting]
    changes = undo(fitting[0].origin, fitting[0].group or fitting[0].host)
    if is_address(host):
        return answer(Answer.IN, "reachable", because, changes)
    verdict = "reachable" if port else f"reachable: {_all_ports(fitting)}"
    return answer(Answer.DEPENDS, verdict, [*because, Because(PRIVATE_TOO)], changes)


def _not_listed(plan: Plan, names: Names, host: str, port: int) -> tuple[list[Because], list[Change]]:
    why = Because("it is not in the list" if names.allowed else "the list is empty")
    rejected = rejected_range(ip_address(host), names.near) if is_address(host) else None
    if rejected is not None:
        private = Because(f"it could not be: {rejected[0]} is not on the internet ({rejected[1]})")
        return [why, private], other_tiers(plan, FULL)
    wanted = f"{as_written(host)}:{port}" if port and port not in (80, 443) else as_written(host)
    add = [Change("adds it to the list", ("--allow", wanted))] if is_name(host) or is_address(host) else []
    return [why], [*add, *other_tiers(plan, INET)]


def _listed(row: Allowed) -> str:
    """Which row it is, and why it is there."""
    group = f" in {row.group} ({row.reason})" if row.group else ""
    return f"the list has {row.host}{group}, {_ports(row)}, by {row.origin.shown}"


def _all_ports(rows: list[Allowed]) -> str:
    return ", ".join(dict.fromkeys(map(_ports, rows)))


def _ports(row: Allowed) -> str:
    return f"port {', '.join(map(str, row.ports))}" if row.ports else "every port"
