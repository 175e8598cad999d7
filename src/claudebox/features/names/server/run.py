"""Runs the process outside: takes the sockets that were made in the box's network, and serves until the box ends."""

from __future__ import annotations

import os
import resource
import signal
import socket

from claudebox.features.names.rules import NameList
from claudebox.features.names.server.asking import Asker
from claudebox.features.names.server.dial import Surroundings
from claudebox.features.names.server.diallers import Diallers
from claudebox.features.names.server.maker import Maker
from claudebox.features.names.server.notes import Notes
from claudebox.features.names.server.relay import Listener, Relay
from claudebox.features.names.terms import ALL, LIFE, LONGEST_WORDS, MAKER, PUBLISHED, READY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from claudebox.allowed import Names


def run(names: Names, channel: int, published: list[tuple[int, int]], end: int, report: int) -> None:
    """Serve the box. `report` is told that all is ready, and stays open while this process lives."""
    # A name of the box that fails would be asked for again, with what this host appends to its own names.
    os.environ["LOCALDOMAIN"] = ""
    _raise_limit()
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    received = list(_receive(socket.socket(fileno=channel)))
    makers = [own for words, own in received if words == MAKER]
    diallers = Diallers(Surroundings(names.near), Maker(socket.socket(fileno=makers[0])) if makers else None)
    listing = NameList(names.allowed)
    asker = Asker(names.notifier, listing) if names.notifier else None
    relay = Relay(listing, Notes(names.journal, names.refused, asker), diallers)
    for words, own in received:
        kind, _, port = words.partition(" ")
        if words not in (MAKER, LIFE):
            relay.listen(Listener(socket.socket(fileno=own), kind, int(port or 0)))
    for listener, port_of_box in published:
        relay.listen(Listener(socket.socket(fileno=listener), PUBLISHED, port_of_box))
    os.write(report, READY)
    relay.run(end)


def _raise_limit() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _receive(channel: socket.socket) -> Iterator[tuple[str, int]]:
    """What the box's network consists of: words that say what a descriptor is for, and the descriptor."""
    while True:
        words, descriptors, _, _ = socket.recv_fds(channel, LONGEST_WORDS, 1)
        if words == ALL.encode():
            return
        if not words:
            os._exit(1)  # whoever makes the box's network has ended before it was made
        yield words.decode(), descriptors[0]
