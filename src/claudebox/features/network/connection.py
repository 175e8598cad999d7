"""Connects this process as a box is connected, and tries what the filter has to reject.

It is a program of its own, because there is no way back from the namespaces that it enters. It reads an Uplink from
standard input and prints what happened, both as JSON. When it ends, so does pasta.
"""

from __future__ import annotations

import json
import os
import socket
import sys

from claudebox.features.network.act import connect
from claudebox.model import Network, Origin, Uplink
from claudebox.problem import Problem
from claudebox.process.isolation import fork_into_namespaces, scope_to_box
from claudebox.process.lifetime import die_with_parent
from claudebox.settings.table import INET

PRIVATE = ("10.255.255.1", "fdff:ffff:ffff::1")
PORT = 9  # discard
REJECTION_PATIENCE_SECONDS = 3  # although a rejection comes at once


def main() -> None:
    uplink = Uplink(**json.load(sys.stdin))
    try:
        scope_to_box()
        _go_on_in_namespaces()
        life = os.pipe()  # in the child alone: who held the other end, too, would not see that pasta has ended
        connect(Network(INET, "", Origin.of_option("--check")), uplink, *life)
    except Problem as problem:
        json.dump({"problem": problem.message}, sys.stdout)
    else:
        json.dump({"passed": [address for address in PRIVATE if not is_rejected(address)]}, sys.stdout)


def is_rejected(address: str) -> bool:
    """Whether a connection is refused. Silence is not enough: the packet may be on its way."""
    try:
        socket.create_connection((address, PORT), timeout=REJECTION_PATIENCE_SECONDS).close()
    except TimeoutError:
        return False
    except OSError:
        return True
    return False


def _go_on_in_namespaces() -> None:
    """Return in a child that has the namespaces of a box. This process waits for the child and ends as it does."""
    child = fork_into_namespaces()
    if child != 0:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    die_with_parent()
