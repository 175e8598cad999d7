"""The words for tier `names`. They are not in model.py because most launches do without them."""

from __future__ import annotations

from claudebox.model import Origin
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap


class Allowed(Record):
    """A host that a box on tier `names` reaches, and the ports of it."""

    host: str  # a name, `*.` and the name above those that are meant, or an address
    ports: tuple[int, ...]  # none: every port
    origin: Origin
    group: str = ""  # the group that it belongs to, if somebody asked for that
    reason: str = ""  # why it is in the group


class Names(Record):
    """How a box on tier `names` is connected: nft leads its connections to a process outside, which knows the list."""

    allowed: tuple[Allowed, ...]
    nft: str
    near: tuple[str, ...]  # the addresses of this host and of its links
    journal: str
    notifier: str = ""  # the program that asks on the desktop; "" if nobody is asked
    channel: int = -1  # of a launch: the socket that leads to that process
    listeners: tuple[int, ...] = ()  # of a launch: the ports of this host that are published
    refused: mmap | None = None  # of a launch: memory in which that process says what it refused
