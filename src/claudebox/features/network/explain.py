"""Explains whether the box reaches an address, and where a port leads. Nothing is looked up and nothing is sent."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

from claudebox.features.network.uplink import BOX, PREFIX4, PREFIX6
from claudebox.host.ranges import Address, rejected_range
from claudebox.model import BY_DEFAULT, FILE, Origin, Plan, Port
from claudebox.process.programs import FIRST_FREE_PORT
from claudebox.record import Record
from claudebox.settings.table import ALLOWLIST, FULL, INET, NO_NETWORK
from claudebox.settings.types import LAST_PORT
from claudebox.trust.variables import split_port
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
    because_of_tier,
    undo,
)

LOCALHOST = IPv4Address("127.0.0.1")
DNS = 53
SUBSTITUTE = 8000  # added to a port that only root may open: 8080 for 80
# Each tier, and what somebody gets who chooses it.
WAYS = {
    FULL: "reaches everything that this host reaches, its own localhost too",
    INET: "reaches the internet, and nothing near",
    ALLOWLIST: "reaches only what --allow lists",
    NO_NETWORK: "reaches nothing",
}


class Endpoint(Record):
    """A host, by name or address, and a port of it."""

    host: str
    port: int = 0  # none named

    @property
    def text(self) -> str:
        if not self.port:
            return self.host
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_endpoint(text: str) -> Endpoint | None:
    """What a URL, `host:port`, `[address]:port` or a bare host names; None if it is none of these."""
    scheme, is_url, rest = text.partition("://")
    server = rest if is_url else text
    for end in "/?#" if is_url else "":
        server = server.partition(end)[0]
    server = server.rpartition("@")[2] if is_url else server
    is_bare = server.count(":") > 1 and not server.startswith("[")
    host, port = (server, "") if is_bare else split_port(server)
    if (read_address(host) is None and not _is_name(host)) or (port and not read_port(port)):
        return None
    usual = {"http": 80, "https": 443, "ssh": 22}.get(scheme.lower(), 0) if is_url else 0
    return Endpoint(host.lower().rstrip("."), read_port(port) or usual)


def read_port(text: str) -> int:
    """The number of a port, or 0 if the text is none."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(LAST_PORT))
    return int(text) if is_number and int(text) <= LAST_PORT else 0


def read_address(text: str) -> Address | None:
    """The address to which the kernel would send: IPv4-mapped ones are IPv4, and `127.1` and `0x7f.1` are addresses."""
    try:
        address = ip_address(text)
    except ValueError:
        try:
            return IPv4Address(socket.inet_aton(text)) if text and text.isascii() and text.isprintable() else None
        except OSError:
            return None
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address


def _is_name(text: str) -> bool:
    labels = text.removesuffix(".").split(".")
    return all(
        label and not label.startswith("-") and all(letter.isalnum() or letter in "-_" for letter in label)
        for label in labels
    )


def is_local_name(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def find_address(plan: Plan, host: str) -> Address | None:
    """The address that a host is for the box, as far as that is known without asking DNS."""
    if is_local_name(host):
        return LOCALHOST
    files = [one.content for one in plan.mounts if one.kind == FILE and one.path == "/etc/hosts"]
    for line in b"\n".join(files).decode(errors="replace").lower().splitlines():
        address, *names = line.split() or [""]
        if host in names:
            return read_address(address)
    return read_address(host)


def explain_endpoint(plan: Plan, endpoint: Endpoint) -> Answer:
    address = find_address(plan, endpoint.host)
    answer = _explain_address(plan, endpoint, address)
    if address is None or str(address) == endpoint.host:
        return answer
    return answer.replace(because=(Because(f"in the box, {endpoint.host} is {address}"), *answer.because))


def _explain_address(plan: Plan, endpoint: Endpoint, address: Address | None) -> Answer:
    tier, uplink, port = plan.network.tier, plan.network.uplink, endpoint.port
    rejected = rejected_range(address, uplink.near if uplink else ()) if address is not None else None

    def answer(state: str, verdict: str, why: str, *changes: Change, origin: Origin | None = None) -> Answer:
        because = (Because(why, origin), because_of_tier(plan))
        return Answer(ADDRESS, endpoint.text, state, verdict, because, changes)

    if tier == FULL:
        less = [ALLOWLIST, NO_NETWORK] if rejected is None else [INET, ALLOWLIST, NO_NETWORK]
        return answer(IN, "reachable", "the box reaches what this host reaches", *_tiers(plan, *less))
    if address is not None and (address.is_loopback or address.is_unspecified):
        return _explain_localhost(plan, endpoint, address)
    if uplink is not None and str(address) in (f"{PREFIX4}{BOX}", f"{PREFIX6}{BOX}"):
        return answer(IN, "reachable", "it is the box's own address")
    if tier == NO_NETWORK or uplink is None:
        ways = _tiers(plan, *([FULL] if rejected else [INET, FULL]))
        return answer(OUT, "not reachable", "nothing outside of the box is reached, and no name resolved", *ways)
    if address is None:
        what = "the address counts: one of the internet is reached; a private one, this host and its links are not"
        return answer(DEPENDS, "reachable if it is on the internet", what, *_tiers(plan, FULL, ALLOWLIST, NO_NETWORK))
    if f"nameserver {address}" in uplink.resolv_conf.splitlines():
        state = IN if port in (0, DNS) else OUT
        verdict = "reachable at port 53" if state == IN else "not reachable"
        return answer(state, verdict, "in the box this address stands for a name server of this host, port 53 alone")
    if rejected is not None:
        origin = Origin.of_rule("firewall", rejected[1])
        why = f"{rejected[0]} is rejected ({rejected[1]})"
        return answer(OUT, "not reachable", why, *_tiers(plan, FULL), origin=origin)
    if ("--ipv6-only" if address.version == 4 else "--ipv4-only") in uplink.options:
        return answer(OUT, "not reachable", f"this host has no default route for IPv{address.version}")
    return answer(IN, "reachable", "it is an address of the internet", *_tiers(plan, ALLOWLIST, NO_NETWORK))


def _tiers(plan: Plan, *tiers: str) -> list[Change]:
    has_ports = plan.network.published or plan.network.host_ports
    but = {FULL: "; not with --publish or --host-port"} if has_ports else {}
    return [Change(WAYS[tier] + but.get(tier, ""), ("--network", tier)) for tier in tiers]


def _explain_localhost(plan: Plan, endpoint: Endpoint, address: Address) -> Answer:
    """The box's own localhost, and what is carried to it."""
    port = next((one for one in plan.network.host_ports if one.box == endpoint.port), None)
    if port is None:
        why = Because("it is the box's own localhost, not this host's")
        way = Change("lets the box reach this port of this host", ("--host-port", str(endpoint.port or "PORT")))
        because, changes = (why, because_of_tier(plan)), (way, *_tiers(plan, FULL))
        return Answer(ADDRESS, endpoint.text, MADE, "the box's own", because, changes)
    back = tuple(undo(port.origin, str(port.host), "the port is the box's own again"))
    why = Because(f"{port.origin.shown} makes 127.0.0.1:{port.box} this host's 127.0.0.1:{port.host}", port.origin)
    if address.version == 6:
        here = Change(f"use 127.0.0.1:{port.box}")
        return Answer(ADDRESS, endpoint.text, OUT, "not reachable at ::1", (why, because_of_tier(plan)), (here, *back))
    return Answer(ADDRESS, endpoint.text, IN, "this host's", (why, because_of_tier(plan)), back)


def explain_port(plan: Plan, number: int) -> Answer:
    subject = f"port {number}"
    if plan.network.tier == FULL:
        why = Because("the box and this host share all ports, in both directions")
        return Answer(PORT, subject, IN, "shared with this host", (why, because_of_tier(plan)), (*_tiers(plan, INET),))
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
