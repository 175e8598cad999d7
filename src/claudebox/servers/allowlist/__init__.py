"""The list of hosts that a box may reach, and what the process that knows it and the launch say to each other.

A name is compared as DNS compares it: without regard to case, and without the dot at its end. Only ASCII counts, so
that no two names look alike: others are written as they are in DNS (xn--…).

`relay.py` is the process, `dns.py` its name server; `greeting.py` reads what clients say first, and `notes.py` keeps
what happened.
"""

from __future__ import annotations

from claudebox.model import Origin
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

WEB = (80, 443)  # what a bare name means
DNS_PORT = 53
BELOW = "*."
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
LONGEST_NAME = 253
LONGEST_LABEL = 63

# The launch hands the box's sockets over: type and port say what each is for. Last comes the end of a pipe by which
# the box lives.
SOCKET, LIFE = b"s", b"l"
# What comes back: memory in which the process says what it refused, for people to read.
MEMORY = 8192
END = b"\0"


class Allowed(Record):
    """A host that a box on tier `allowlist` reaches, and the ports of it."""

    host: str  # a name, `*.` and the name above those that are meant, or an address
    ports: tuple[int, ...]  # none: every port
    origin: Origin
    group: str = ""  # the group that it belongs to, if somebody asked for that
    reason: str = ""  # why it is in the group


def is_label(text: str) -> bool:
    """Whether this can be a part of a name. No dash comes first: a name may become a word of a command line."""
    return 0 < len(text) <= LONGEST_LABEL and not text.startswith("-") and LETTERS.issuperset(text)


def is_name(text: str) -> bool:
    """Whether this is the name of a host of the internet, in lower case. An address, whose last part is a number, is
    none, and neither is a single word, which would be a host of the LAN."""
    labels = text.split(".")
    return len(text) <= LONGEST_NAME and len(labels) > 1 and all(map(is_label, labels)) and not labels[-1].isdigit()


def is_address(host: str) -> bool:
    return ":" in host or host.rpartition(".")[2].isdigit()


def private_range(host: str, near: tuple[str, ...]) -> tuple[str, str] | None:
    """The range of addresses that are not on the internet in which this one is, and why they are not."""
    from claudebox.host.network import rejected_range

    return rejected_range(host, near) if is_address(host) else None


def can_be_listed(host: str, near: tuple[str, ...] = ()) -> bool:
    """Whether `--allow` would take this host."""
    return (is_address(host) or is_name(host)) and private_range(host, near) is None


class HostList:
    """The list, indexed by host."""

    def __init__(self, allowed: Iterable[Allowed] = ()) -> None:
        self.rows: dict[str, list[Allowed]] = {}
        for row in allowed:
            self.allow(row)

    def allow(self, row: Allowed) -> None:
        self.rows.setdefault(row.host, []).append(row)

    def rows_for(self, host: str) -> list[Allowed]:
        """The rows that mean this name or address."""
        labels = [] if is_address(host) else host.split(".")
        above = (BELOW + ".".join(labels[place:]) for place in range(1, len(labels)))
        return [row for key in (host, *above) for row in self.rows.get(key, ())]

    def knows(self, host: str) -> bool:
        return bool(self.rows_for(host))

    def permits(self, host: str, port: int) -> bool:
        return any(not row.ports or port in row.ports for row in self.rows_for(host))


def with_port(host: str, port: int | str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
