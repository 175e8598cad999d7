"""`--explain` and `--check` about tier `allowlist`.

They tell whether a box reaches a host, for which nothing is looked up or sent; and whether there can be such a network,
for which one is made.
"""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.features.allowlist.act import make_network
from claudebox.features.allowlist.rules import Allowlist, as_option
from claudebox.host import Host
from claudebox.host.programs import choose_uplink
from claudebox.model import Plan
from claudebox.output.explanation import Answer, Because, Change, Question, because_of_tier, other_tiers, undo
from claudebox.process.trial import FAIL, NOTE, OK, CheckRow, run_in_namespaces
from claudebox.servers.allowlist import Allowed, HostList, can_be_listed, is_address, private_range, with_port
from claudebox.settings import Settings
from claudebox.settings.table import ALLOWLIST, FULL, INET, NETWORK, NFT_PATH
from claudebox.state.reach import reach_of

NAME = "network allowlist"
MODULES = "sudo modprobe -a nf_tables nft_nat nft_redir nft_chain_nat nft_reject_inet"
PRIVATE_TOO = "it is reached if it leads to an address of the internet, which is looked at when the box connects"


def explain(question: Question) -> list[Answer]:
    """What the list says about a host, and about a port of it, if one is named."""
    plan, allowlist, endpoint = question.plan, question.plan.get(Allowlist), question.endpoint
    if allowlist is None or endpoint is None or endpoint.is_own:
        return []
    host, port = str(endpoint.address or endpoint.host), endpoint.port
    rows = HostList(allowlist.allowed).rows_for(host)
    fitting = [row for row in rows if not port or not row.ports or port in row.ports]

    def answer(state: str, verdict: str, why: list[Because], changes: list[Change]) -> list[Answer]:
        return [Answer(Answer.ADDRESS, endpoint.text, state, verdict, [*why, because_of_tier(plan)], changes)]

    if not rows:
        return answer(Answer.OUT, "not reachable", *_not_listed(plan, allowlist, host, port))
    if not fitting:
        why = Because(f"of {host}, the list has {_all_ports(rows)}", rows[0].origin)
        add = Change("adds this port", ("--allow", with_port(host, port)))
        return answer(Answer.OUT, "not reachable", [why], [add])
    because = [Because(_listed(row), row.origin) for row in fitting]
    changes = undo(fitting[0].origin, fitting[0].group or fitting[0].host)
    if is_address(host):
        return answer(Answer.IN, "reachable", because, changes)
    verdict = "reachable" if port else f"reachable: {_all_ports(fitting)}"
    return answer(Answer.DEPENDS, verdict, [*because, Because(PRIVATE_TOO)], changes)


def _not_listed(plan: Plan, allowlist: Allowlist, host: str, port: int) -> tuple[list[Because], list[Change]]:
    why = Because("it is not in the list" if allowlist.allowed else "the list is empty")
    if (private := private_range(host, allowlist.near)) is not None:
        never = Because(f"it could not be: {private[0]} is not on the internet ({private[1]})")
        return [why, never], other_tiers(plan, FULL)
    add = [Change("adds it to the list", ("--allow", as_option(host, port)))] if can_be_listed(host) else []
    return [why], [*add, *other_tiers(plan, INET)]


def _listed(row: Allowed) -> str:
    """Which row it is, and why it is there."""
    group = f" in {row.group} ({row.reason})" if row.group else ""
    return f"the list has {row.host}{group}, {_ports(row)}, by {row.origin.shown}"


def _all_ports(rows: list[Allowed]) -> str:
    return ", ".join(dict.fromkeys(map(_ports, rows)))


def _ports(row: Allowed) -> str:
    return f"port {', '.join(map(str, row.ports))}" if row.ports else "every port"


# Whether there can be such a network


def check(host: Host, settings: Settings) -> list[CheckRow]:
    """A row about tier `allowlist`, which is a failure only if the user's settings need it."""
    lacking = FAIL if settings[NETWORK].text == ALLOWLIST else NOTE
    try:
        (nft,) = choose_uplink(host, {"nft": settings[NFT_PATH]}, reach_of(host))
    except Problem:
        return [CheckRow(lacking, NAME, "not tried: it needs nft")]
    try:
        run_in_namespaces(lambda: _try_network(nft))
    except Problem as problem:
        is_filters = "filter cannot be loaded" in problem.message
        why = "the kernel needs nf_tables with connection tracking, redirection and reject" if is_filters else ""
        return [CheckRow(lacking, NAME, problem.message, why, (MODULES,) if is_filters else ())]
    return [CheckRow(OK, NAME, "such a network can be made, and nft loaded its rules")]


def _try_network(nft: str) -> list[str]:
    make_network(nft, ())
    return []
