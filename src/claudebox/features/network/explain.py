"""Explains whether the box reaches an address, and where a port leads. Nothing is looked up and nothing is sent."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address

from claudebox.features.network.uplink import BOX, PREFIX4, PREFIX6
from claudebox.host.ranges import Address, rejected_range
from claudebox.model import FILE, Origin, Plan, Port
from claudebox.process.programs import FIRST_FREE_PORT
from claudebox.record import Record
from claudebox.settings.table import FULL, INET, NAMES, NO_NETWORK
from claudebox.settings.types import LAST_PORT
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

SCHEMES = {
    "amqp": 5672,
    "git": 9418,
    "http": 80,
    "https": 443,
    "mongodb": 27017,
    "mysql": 3306,
    "postgres": 5432,
    "postgresql": 5432,
    "redis": 6379,
    "ssh": 22,
    "ws": 80,
    "wss": 443,
}
SUBSTITUTE = 8000  # added to a port that only root may open: 8080 for 80
DNS = 53
ALL_OF_THE_HOSTS = "reaches everything that this host reaches, its own localhost too"
# What keeps out nearly everything, this host or address with it.
LESS = (
    Change("reaches only what --allow lists", ("--network", NAMES)),
    Change("reaches nothing", ("--network", NO_NETWORK)),
)


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
    if server.startswith("["):
        host, end, port = server[1:].partition("]")
        host, port = (host, port[1:]) if end and ":" in host and port[:1] in ("", ":") else ("", "")
    elif server.count(":") > 1:
        host, port = server, ""
    else:
        host, _, port = server.partition(":")
    if (read_address(host) is None and not _is_name(host)) or (port and not read_port(port)):
        return None
    return Endpoint(host.lower().rstrip("."), read_port(port) or (SCHEMES.get(scheme.lower(), 0) if is_url else 0))


def read_port(text: str) -> int:
    """The number of a port, or 0 if the text is none."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(LAST_PORT))
    return int(text) if is_number and int(text) <= LAST_PORT else 0


def read_address(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return _old_spelling(text)


def _old_spelling(text: str) -> Address | None:
    """Read `127.1`, `0x7f.1` and `2130706433`, which the C library takes for addresses, too."""
    *heads, tail = [_number(part) for part in text.lower().split(".")]
    room = 8 * (4 - len(heads))
    if len(heads) > 3 or not 0 <= tail < 1 << room or any(not 0 <= head < 256 for head in heads):
        return None
    return IPv4Address(sum(head << 8 * (3 - place) for place, head in enumerate(heads)) + tail)


def _number(text: str) -> int:
    """Read a number as C does, decimal, octal or hexadecimal; -1 if it is none of these."""
    base = 16 if text.startswith("0x") else 8 if text.startswith("0") else 10
    digits = text.removeprefix("0x") if base == 16 else text
    return int(digits, base) if digits and set(digits) <= set("0123456789abcdef"[:base]) else -1


def _is_name(text: str) -> bool:
    labels = text.removesuffix(".").split(".")
    return all(
        label and not label.startswith("-") and all(letter.isalnum() or letter in "-_" for letter in label)
        for label in labels
    )


def is_local_name(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def explain_endpoint(plan: Plan, endpoint: Endpoint) -> Answer:
    address = read_address(endpoint.host)
    if address is None:
        return _explain_name(plan, endpoint)
    meant = _meant(address, endpoint.host)
    if meant != endpoint.host:
        inner = explain_endpoint(plan, endpoint.replace(host=meant))
        return inner.replace(subject=endpoint.text, because=(Because(f"{endpoint.host} means {meant}"), *inner.because))
    if address.is_unspecified or address.is_loopback:
        return _explain_localhost(plan, endpoint, address)
    if plan.network.tier == FULL:
        return _with_hosts_network(plan, endpoint, address)
    if plan.network.uplink is not None and str(address) in (f"{PREFIX4}{BOX}", f"{PREFIX6}{BOX}"):
        return _reached(plan, endpoint, Because("it is the box's own address"))
    if plan.network.tier == NO_NETWORK:
        return _not_reached(plan, endpoint, because_of_tier(plan), *_ways_to(plan, address, ()))
    return _with_internet(plan, endpoint, address)


def boxs_view(plan: Plan, endpoint: Endpoint) -> Endpoint | None:
    """The endpoint as the kernel would understand it; None if it is the box's own localhost, or in its /etc/hosts."""
    address = read_address(endpoint.host)
    if address is None:
        is_own = is_local_name(endpoint.host) or _listed_address(plan, endpoint.host) is not None
        return None if is_own else endpoint
    meant = ip_address(_meant(address, endpoint.host))
    return None if meant.is_unspecified or meant.is_loopback else endpoint.replace(host=str(meant))


def _meant(address: Address, text: str) -> str:
    """The address to which the kernel would send: IPv4-mapped ones are IPv4."""
    if isinstance(address, IPv4Address):
        return str(address)
    return str(address.ipv4_mapped) if address.ipv4_mapped is not None else text


def _reached(plan: Plan, endpoint: Endpoint, why: Because, *changes: Change) -> Answer:
    return Answer(ADDRESS, endpoint.text, IN, "reachable", (why, because_of_tier(plan)), changes)


def _not_reached(plan: Plan, endpoint: Endpoint, why: Because, *changes: Change) -> Answer:
    because = dict.fromkeys((why, because_of_tier(plan)))
    return Answer(ADDRESS, endpoint.text, OUT, "not reachable", tuple(because), changes)


def _tier_change(tier: str, effect: str) -> Change:
    return Change(effect, ("--network", tier))


def _to_full(plan: Plan, effect: str) -> Change:
    has_ports = plan.network.published or plan.network.host_ports
    return _tier_change(FULL, f"{effect}; not with --publish or --host-port" if has_ports else effect)


# Names


def _explain_name(plan: Plan, endpoint: Endpoint) -> Answer:
    name = endpoint.host
    if is_local_name(name):
        answer = _explain_localhost(plan, endpoint, IPv4Address("127.0.0.1"))
        return answer.replace(because=(Because(f"{name} is 127.0.0.1 or ::1"), *answer.because))
    listed = _listed_address(plan, name)
    if listed is not None:
        answer = explain_endpoint(plan, endpoint.replace(host=str(listed)))
        how = Because(f"/etc/hosts of the box says that {name} is {listed}")
        return answer.replace(subject=endpoint.text, because=(how, *answer.because))
    if plan.network.tier == FULL:
        why = Because("names and addresses are the same as on this host")
        return _reached(plan, endpoint, why, *LESS)
    if plan.network.tier == NO_NETWORK:
        why = Because("names are not resolved in the box")
        return _not_reached(plan, endpoint, why, *_ways_to(plan, None, ()))
    return _depending(plan, endpoint)


def _depending(plan: Plan, endpoint: Endpoint) -> Answer:
    because = [
        Because("what counts is the address that the name resolves to; it was not looked up for this answer"),
        Because("an address of the internet is reached; a private one, this host and its links are not"),
        because_of_tier(plan),
    ]
    if plan.network.uplink is not None and not plan.network.uplink.resolv_conf:
        because.insert(0, Because("no name server of this host can be used from the box: names will not resolve"))
    changes = (_to_full(plan, ALL_OF_THE_HOSTS), *LESS)
    verdict = "reachable if it is on the internet"
    return Answer(ADDRESS, endpoint.text, DEPENDS, verdict, tuple(because), changes)


def _listed_address(plan: Plan, name: str) -> Address | None:
    for mount in plan.mounts:
        if mount.kind == FILE and mount.path == "/etc/hosts":
            for line in mount.content.decode(errors="replace").splitlines():
                address, *names = line.split() or [""]
                if name in [other.lower() for other in names]:
                    return read_address(address)
    return None


# The box's own localhost, and what is carried to it


def _explain_localhost(plan: Plan, endpoint: Endpoint, address: Address) -> Answer:
    if plan.network.tier == FULL:
        why = Because("the box shares this host's localhost, with every service that listens there")
        return _reached(plan, endpoint, why, _tier_change(INET, "gives the box a localhost of its own"))
    carried = next((port for port in plan.network.host_ports if port.box == endpoint.port), None)
    if carried is None:
        why = Because("it is the box's own localhost, not this host's")
        answer = _reached(plan, endpoint, why, *_ways_to_host_port(plan, endpoint.port))
        return answer.replace(state=MADE, verdict="the box's own")
    return _explain_carried(plan, endpoint, carried, address)


def _explain_carried(plan: Plan, endpoint: Endpoint, port: Port, address: Address) -> Answer:
    way_back = undo(port.origin, str(port.host), "the port is the box's own again")
    if address.version == 6:
        why = Because(f"{port.origin.shown} carries it to 127.0.0.1 in the box: at ::1 it is refused", port.origin)
        return _not_reached(plan, endpoint, why, Change(f"use 127.0.0.1:{port.box}"), *way_back)
    why = Because(f"{port.origin.shown} makes it this host's 127.0.0.1:{port.host}", port.origin)
    return _reached(plan, endpoint, why, *way_back).replace(verdict="this host's")


def _ways_to_host_port(plan: Plan, port: int) -> list[Change]:
    number = str(port) if port else "PORT"
    return [
        Change("lets the box reach this port of this host's localhost", ("--host-port", number)),
        _to_full(plan, "gives the box this host's localhost as a whole"),
    ]


# Addresses


def _with_hosts_network(plan: Plan, endpoint: Endpoint, address: Address) -> Answer:
    rejected = rejected_range(address, ())
    changes = (
        [_tier_change(INET, f"keeps it out: {rejected[0]} is not the internet ({rejected[1]})")] if rejected else []
    )
    why = Because("the box reaches what this host reaches")
    return _reached(plan, endpoint, why, *changes, *LESS)


def _with_internet(plan: Plan, endpoint: Endpoint, address: Address) -> Answer:
    uplink = plan.network.uplink
    assert uplink is not None, "this tier has one"
    resolvers = [line.split()[1] for line in uplink.resolv_conf.splitlines() if line.startswith("nameserver ")]
    if str(address) in resolvers:
        if endpoint.port in (0, DNS):
            why = Because("in the box this address stands for a name server of this host, port 53 alone")
            return _reached(plan, endpoint, why).replace(verdict="reachable at port 53")
        return _not_reached(plan, endpoint, Because("of this name server, only port 53 is reached"))
    rejected = rejected_range(address, uplink.near)
    if rejected is not None:
        why = Because(f"{rejected[0]} is rejected ({rejected[1]})", Origin.of_rule("firewall", rejected[1]))
        return _not_reached(plan, endpoint, why, *_ways_to(plan, address, uplink.near))
    if ("--ipv6-only" if address.version == 4 else "--ipv4-only") in uplink.options:
        why = Because(f"this host has no default route for IPv{address.version}")
        return _not_reached(plan, endpoint, why, Change("cannot be changed here: it is this host's network"))
    why = Because("it is an address of the internet")
    return _reached(plan, endpoint, why, *LESS)


def _ways_to(plan: Plan, address: Address | None, near: tuple[str, ...]) -> list[Change]:
    is_public = address is None or rejected_range(address, near) is None
    inet = [_tier_change(INET, "reaches the internet, and nothing near")] if is_public else []
    return [*inet, _to_full(plan, ALL_OF_THE_HOSTS)]


# Ports


def explain_port(plan: Plan, number: int) -> Answer:
    if plan.network.tier == FULL:
        why = Because("the box and this host share all ports, in both directions")
        change = _tier_change(INET, "gives the box ports of its own")
        return Answer(PORT, f"port {number}", IN, "shared with this host", (why, because_of_tier(plan)), (change,))
    published = [port for port in plan.network.published if number in (port.host, port.box)]
    carried = [port for port in plan.network.host_ports if port.host == number]
    if published or carried:
        return _joined_port(number, published, carried)
    because = (
        Because("what listens there in the box is not reached from outside"),
        Because("what listens there on this host is not reached from the box"),
        because_of_tier(plan),
    )
    return Answer(PORT, f"port {number}", MADE, "the box's own", because, _ways_to_port(number))


def _joined_port(number: int, published: list[Port], carried: list[Port]) -> Answer:
    because = [
        Because(f"{port.origin.shown}: localhost:{port.host} of this host is port {port.box} of the box", port.origin)
        for port in published
    ]
    because += [
        Because(
            f"{port.origin.shown}: localhost:{port.box} in the box is this host's 127.0.0.1:{port.host}", port.origin
        )
        for port in carried
    ]
    said = [(port, f"{port.host}:{port.box}" if port.host != port.box else str(port.host)) for port in published]
    said += [(port, str(port.host)) for port in carried]
    changes = [change for port, text in said for change in undo(port.origin, text)]
    ways = [*(["published"] if published else []), *(["this host's, in the box"] if carried else [])]
    return Answer(PORT, f"port {number}", IN, " and ".join(ways), tuple(because), tuple(changes))


def _ways_to_port(number: int) -> tuple[Change, ...]:
    outer = number if number >= FIRST_FREE_PORT else SUBSTITUTE + number
    value = str(number) if outer == number else f"{outer}:{number}"
    return (
        Change(f"opens the box's port as localhost:{outer} of this host", ("--publish", value)),
        Change("lets the box reach this host's", ("--host-port", str(number))),
    )
