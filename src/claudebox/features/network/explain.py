"""Explains whether the box reaches an address, and where a port leads. Nothing is looked up and nothing is sent."""

from __future__ import annotations

from claudebox.features.network.uplink import BOX, PREFIX4, PREFIX6
from claudebox.host.ranges import rejected_range
from claudebox.model import BY_DEFAULT, Origin, Plan, Port
from claudebox.process.programs import FIRST_FREE_PORT
from claudebox.settings.table import FULL, INET, NAMES, NO_NETWORK
from claudebox.view.explanation import (
    ADDRESS,
    DEPENDS,
    IN,
    MADE,
    OUT,
    PORT,
    Answer,
    Because,
    Change,
    Endpoint,
    Question,
    because_of_tier,
    other_tiers,
    undo,
)

DNS = 53
SUBSTITUTE = 8000  # added to a port that only root may open: 8080 for 80


def explain(question: Question) -> list[Answer]:
    answers = [explain_port(question.plan, question.port)] if question.port else []
    endpoint = question.endpoint
    if endpoint is None or (question.plan.network.tier == NAMES and not endpoint.is_own):
        return answers
    answer = _explain_endpoint(question.plan, endpoint)
    if endpoint.address is not None and str(endpoint.address) != endpoint.host:
        here = Because(f"in the box, {endpoint.host} is {endpoint.address}")
        answer = answer.replace(because=(here, *answer.because))
    return [*answers, answer]


def _explain_endpoint(plan: Plan, endpoint: Endpoint) -> Answer:
    tier, uplink, port, address = plan.network.tier, plan.network.uplink, endpoint.port, endpoint.address
    rejected = rejected_range(address, uplink.near if uplink else ()) if address is not None else None

    def answer(state: str, verdict: str, why: str, *changes: Change, origin: Origin | None = None) -> Answer:
        because = (Because(why, origin), because_of_tier(plan))
        return Answer(ADDRESS, endpoint.text, state, verdict, because, changes)

    if tier == FULL:
        less = [NAMES, NO_NETWORK] if rejected is None else [INET, NAMES, NO_NETWORK]
        return answer(IN, "reachable", "the box reaches what this host reaches", *other_tiers(plan, *less))
    if endpoint.is_own:
        return _explain_localhost(plan, endpoint)
    if uplink is not None and str(address) in (f"{PREFIX4}{BOX}", f"{PREFIX6}{BOX}"):
        return answer(IN, "reachable", "it is the box's own address")
    if tier == NO_NETWORK or uplink is None:
        ways = other_tiers(plan, *([FULL] if rejected else [INET, FULL]))
        return answer(OUT, "not reachable", "nothing outside of the box is reached, and no name resolved", *ways)
    if address is None:
        what = "the address counts: one of the internet is reached; a private one, this host and its links are not"
        return answer(DEPENDS, "reachable if it is on the internet", what, *other_tiers(plan, FULL, NAMES, NO_NETWORK))
    if f"nameserver {address}" in uplink.resolv_conf.splitlines():
        state = IN if port in (0, DNS) else OUT
        verdict = "reachable at port 53" if state == IN else "not reachable"
        return answer(state, verdict, "in the box this address stands for a name server of this host, port 53 alone")
    if rejected is not None:
        origin = Origin.of_rule("firewall", rejected[1])
        why = f"{rejected[0]} is rejected ({rejected[1]})"
        return answer(OUT, "not reachable", why, *other_tiers(plan, FULL), origin=origin)
    if ("--ipv6-only" if address.version == 4 else "--ipv4-only") in uplink.options:
        return answer(OUT, "not reachable", f"this host has no default route for IPv{address.version}")
    return answer(IN, "reachable", "it is an address of the internet", *other_tiers(plan, NAMES, NO_NETWORK))


def _explain_localhost(plan: Plan, endpoint: Endpoint) -> Answer:
    """The box's own localhost, and what is carried to it."""
    port = next((one for one in plan.network.host_ports if one.box == endpoint.port), None)
    if port is None:
        why = Because("it is the box's own localhost, not this host's")
        way = Change("lets the box reach this port of this host", ("--host-port", str(endpoint.port or "PORT")))
        because, changes = (why, because_of_tier(plan)), (way, *other_tiers(plan, FULL))
        return Answer(ADDRESS, endpoint.text, MADE, "the box's own", because, changes)
    back = tuple(undo(port.origin, str(port.host), "the port is the box's own again"))
    why = Because(f"{port.origin.shown} makes 127.0.0.1:{port.box} this host's 127.0.0.1:{port.host}", port.origin)
    if endpoint.address is not None and endpoint.address.version == 6:
        here = Change(f"use 127.0.0.1:{port.box}")
        return Answer(ADDRESS, endpoint.text, OUT, "not reachable at ::1", (why, because_of_tier(plan)), (here, *back))
    return Answer(ADDRESS, endpoint.text, IN, "this host's", (why, because_of_tier(plan)), back)


def explain_port(plan: Plan, number: int) -> Answer:
    subject = f"port {number}"
    if plan.network.tier == FULL:
        why = Because("the box and this host share all ports, in both directions")
        return Answer(
            PORT, subject, IN, "shared with this host", (why, because_of_tier(plan)), (*other_tiers(plan, INET),)
        )
    joined = [
        (port, "published", f"localhost:{port.host} of this host is port {port.box} of the box")
        for port in plan.network.published
        if number in (port.host, port.box)
    ]
    joined += [
        (port, "this host's, in the box", f"localhost:{port.box} in the box is this host's 127.0.0.1:{port.host}")
        for port in plan.network.host_ports
        if port.host == number
    ]
    if joined:
        verdict = " and ".join(dict.fromkeys(how for _, how, _ in joined))
        because = tuple(Because(f"{port.origin.shown}: {text}", port.origin) for port, _, text in joined)
        changes = tuple(change for port, _, _ in joined for change in undo(port.origin, _said(port)))
        return Answer(PORT, subject, IN, verdict, because, changes)
    why = Because("neither side reaches what listens there on the other")
    outer = number if number >= FIRST_FREE_PORT else SUBSTITUTE + number
    ways = (
        Change("opens the box's port on this host's localhost", ("--publish", _said(Port(outer, number, BY_DEFAULT)))),
        Change("lets the box reach this host's", ("--host-port", str(number))),
    )
    return Answer(PORT, subject, MADE, "the box's own", (why, because_of_tier(plan)), ways)


def _said(port: Port) -> str:
    return f"{port.host}:{port.box}" if port.host != port.box else str(port.host)
