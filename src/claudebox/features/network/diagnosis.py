"""`--explain` and `--check` about the network: what a box reaches, and whether it can have the internet alone.

For an explanation nothing is looked up and nothing is sent. A check connects a box for real.
"""

from __future__ import annotations

import os
import socket

from claudebox.errors import Problem
from claudebox.features.network.uplink import (
    BOX,
    PREFIX4,
    PREFIX6,
    TUN_COMMANDS,
    TUN_REASON,
    connect,
    is_about_tun,
    plan_uplink,
)
from claudebox.host import Host, system
from claudebox.host.network import rejected_range
from claudebox.host.programs import called_pasta, choose_uplink
from claudebox.host.tree import Tree
from claudebox.model import BY_DEFAULT, Origin, Plan, Port, Uplink
from claudebox.output.explanation import Answer, Because, Change, Endpoint, Question, because_of_tier, other_tiers, undo
from claudebox.process import trial
from claudebox.process.companion import FIRST_FREE_PORT
from claudebox.process.trial import FAIL, NOTE, OK, CheckRow
from claudebox.settings import Settings, Word
from claudebox.settings.table import ALLOWLIST, FULL, INET, NETWORK, NFT_PATH, NO_NETWORK, PASTA_PATH
from claudebox.state.reach import reach_of

DNS = 53
SUBSTITUTE = 8000  # added to a port that only root may open: 8080 for 80
MODULES = "sudo modprobe -a nf_tables nft_ct nft_nat nft_chain_nat nft_reject_inet"
PRIVATE = ("10.255.255.1", "fdff:ffff:ffff::1")
DISCARD = 9  # a port
REJECTION_PATIENCE_SECONDS = 3  # although a rejection comes at once


def explain(question: Question) -> list[Answer]:
    plan, endpoint = question.plan, question.endpoint
    answers = [_explain_port(plan, question.port)] if question.port else []
    if endpoint is None or (plan.network.tier == ALLOWLIST and not endpoint.is_own):
        return answers
    is_local = endpoint.is_own and plan.network.tier != FULL
    answer = _explain_localhost(plan, endpoint) if is_local else _explain_endpoint(plan, endpoint)
    if endpoint.address is not None and str(endpoint.address) != endpoint.host:
        here = Because(f"in the box, {endpoint.host} is {endpoint.address}")
        answer = answer.replace(because=[here, *answer.because])
    return [*answers, answer]


def _explain_endpoint(plan: Plan, endpoint: Endpoint) -> Answer:
    tier, uplink, address = plan.network.tier, plan.network.uplink, endpoint.address
    rejected = rejected_range(str(address), uplink.near if uplink else ()) if address is not None else None

    def answer(state: str, verdict: str, why: str, *tiers: str, origin: Origin | None = None) -> Answer:
        because = [Because(why, origin), because_of_tier(plan)]
        return Answer(Answer.ADDRESS, endpoint.text, state, verdict, because, other_tiers(plan, *tiers))

    if tier == FULL:
        less = (ALLOWLIST, NO_NETWORK) if rejected is None else (INET, ALLOWLIST, NO_NETWORK)
        return answer(Answer.IN, "reachable", "the box reaches what this host reaches", *less)
    if uplink is not None and str(address) in (f"{PREFIX4}{BOX}", f"{PREFIX6}{BOX}"):
        return answer(Answer.IN, "reachable", "it is the box's own address")
    if tier == NO_NETWORK or uplink is None:
        more = (FULL,) if rejected else (INET, FULL)
        return answer(Answer.OUT, "not reachable", "nothing outside of the box is reached, and no name resolved", *more)
    if address is None:
        why = "the address counts: one of the internet is reached; a private one, this host and its links are not"
        return answer(Answer.DEPENDS, "reachable if it is on the internet", why, FULL, ALLOWLIST, NO_NETWORK)
    if f"nameserver {address}" in uplink.resolv_conf.splitlines():
        why = "in the box this address stands for a name server of this host, port 53 alone"
        if endpoint.port in (0, DNS):
            return answer(Answer.IN, "reachable at port 53", why)
        return answer(Answer.OUT, "not reachable", why)
    if rejected is not None:
        rule = Origin.of_rule("firewall", rejected[1])
        return answer(Answer.OUT, "not reachable", f"{rejected[0]} is rejected ({rejected[1]})", FULL, origin=rule)
    if ("--ipv6-only" if address.version == 4 else "--ipv4-only") in uplink.options:
        return answer(Answer.OUT, "not reachable", f"this host has no default route for IPv{address.version}")
    return answer(Answer.IN, "reachable", "it is an address of the internet", ALLOWLIST, NO_NETWORK)


def _explain_localhost(plan: Plan, endpoint: Endpoint) -> Answer:
    """The box's own localhost, and what is carried to it."""
    port = next((one for one in plan.network.host_ports if one.box == endpoint.port), None)

    def answer(state: str, verdict: str, why: str, *changes: Change) -> Answer:
        because = [Because(why, port.origin if port else None), because_of_tier(plan)]
        return Answer(Answer.ADDRESS, endpoint.text, state, verdict, because, changes)

    if port is None:
        way = Change("lets the box reach this port of this host", ("--host-port", str(endpoint.port or "PORT")))
        why = "it is the box's own localhost, not this host's"
        return answer(Answer.MADE, "the box's own", why, way, *other_tiers(plan, FULL))
    why = f"{port.origin.shown} makes 127.0.0.1:{port.box} this host's 127.0.0.1:{port.host}"
    back = undo(port.origin, str(port.host), "the port is the box's own again")
    if endpoint.address is not None and endpoint.address.version == 6:
        return answer(Answer.OUT, "not reachable at ::1", why, Change(f"use 127.0.0.1:{port.box}"), *back)
    return answer(Answer.IN, "this host's", why, *back)


def _explain_port(plan: Plan, number: int) -> Answer:
    network = plan.network

    def answer(state: str, verdict: str, because: list[Because], changes: list[Change]) -> Answer:
        return Answer(Answer.PORT, f"port {number}", state, verdict, because, changes)

    if network.tier == FULL:
        why = Because("the box and this host share all ports, in both directions")
        return answer(Answer.IN, "shared with this host", [why, because_of_tier(plan)], other_tiers(plan, INET))
    joined = [
        *(
            (port, "published", f"localhost:{port.host} of this host is port {port.box} of the box")
            for port in network.published
            if number in (port.host, port.box)
        ),
        *(
            (port, "this host's, in the box", f"localhost:{port.box} in the box is this host's 127.0.0.1:{port.host}")
            for port in network.host_ports
            if port.host == number
        ),
    ]
    if joined:
        because = [Because(f"{port.origin.shown}: {text}", port.origin) for port, _, text in joined]
        changes = [change for port, _, _ in joined for change in undo(port.origin, _said(port))]
        return answer(Answer.IN, " and ".join(dict.fromkeys(how for _, how, _ in joined)), because, changes)
    why = Because("neither side reaches what listens there on the other")
    outer = number if number >= FIRST_FREE_PORT else SUBSTITUTE + number
    ways = [
        Change("opens the box's port on this host's localhost", ("--publish", _said(Port(outer, number, BY_DEFAULT)))),
        Change("lets the box reach this host's", ("--host-port", str(number))),
    ]
    return answer(Answer.MADE, "the box's own", [why, because_of_tier(plan)], ways)


def _said(port: Port) -> str:
    return f"{port.host}:{port.box}" if port.host != port.box else str(port.host)


# Whether a box can have the internet alone: the programs, and a box that is connected for real


def choose_program(name: str, host: Host, settings: Settings) -> str:
    """The path of pasta or nft. Raises a Problem if there is none that can be used."""
    named = {"pasta": settings[PASTA_PATH], "nft": settings[NFT_PATH]}[name]
    (path,) = choose_uplink(host, {name: named}, reach_of(host))
    return called_pasta(path) if name == "pasta" else path


def check(host: Host, settings: Settings) -> list[CheckRow]:
    """Rows about the uplink, which is a failure only if the user's settings need it."""
    lacking = FAIL if settings[NETWORK].text == INET else NOTE
    rows: list[CheckRow] = []
    found: dict[str, str] = {}
    for name in ("pasta", "nft"):
        try:
            found[name] = choose_program(name, host, settings)
            rows.append(CheckRow(OK, name, _shown(found[name])))
        except Problem as problem:
            rows.append(CheckRow.of_problem(name, problem, lacking))
    if len(found) < len(rows):
        missing = " and ".join(row.name for row in rows if row.state != OK)
        return [*rows, CheckRow(lacking, "network inet", f"not tried: it needs {missing}")]
    return [*rows, _trial_row(host, found["pasta"], found["nft"], lacking)]


def _shown(path: str) -> str:
    """The program with its version, which some versions of pasta cannot tell."""
    number = trial.program_version(path)
    return path if number == trial.NO_VERSION else f"{number}, {path}"


def _trial_row(host: Host, pasta: str, nft: str, lacking: str) -> CheckRow:
    wanted = Settings().having(NETWORK, Word(INET, Origin.of_option("--check")))
    try:
        uplink = plan_uplink(wanted, host.neighbourhood(host.tree), host.tree, pasta, nft)
        passed = trial.run_in_namespaces(lambda: _passed_addresses(uplink))
    except Problem as problem:
        why, fix = explain_failure(host.tree, problem.message)
        return CheckRow(lacking, "network inet", problem.message, why, fix)
    if passed:
        why = "the filter was loaded and does not filter: what is private can be reached with --network inet"
        return CheckRow(FAIL, "network inet", f"not rejected: {' and '.join(passed)}", why)
    return CheckRow(OK, "network inet", "pasta and nft connected a box; its filter rejected a private address")


def explain_failure(tree: Tree, message: str) -> tuple[str, tuple[str, ...]]:
    """The reason behind a message, and the commands that mend it."""
    if "namespace cannot" in message or "namespace for the box" in message:
        if system.is_restricted(tree, ""):
            why = "AppArmor lets only known programs use user namespaces, and claudebox is none of them"
            return why, trial.sysctl("kernel.apparmor_restrict_unprivileged_userns=0")
        return trial.explain(tree, "", message)
    if "filter cannot be loaded" in message:
        return "the kernel needs nf_tables with connection tracking, NAT and reject", (MODULES,)
    if is_about_tun(message):
        return TUN_REASON, TUN_COMMANDS
    return "", ()


def _passed_addresses(uplink: Uplink) -> list[str]:
    """Connect this process as a box is connected. Returns the addresses that should have been rejected and were not."""
    life = os.pipe()  # in the child alone: who held the other end, too, would not see that pasta has ended
    connect(uplink, *life)
    return [address for address in PRIVATE if not is_rejected(address)]


def is_rejected(address: str) -> bool:
    """Whether a connection is refused. Silence is not enough: the packet may be on its way."""
    try:
        socket.create_connection((address, DISCARD), timeout=REJECTION_PATIENCE_SECONDS).close()
    except TimeoutError:
        return False
    except OSError:
        return True
    return False
