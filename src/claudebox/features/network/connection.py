"""Connects this process as a box is connected, and tries what the filter has to reject.

A program of its own, because there is no way back from the namespaces that it enters: reads an Uplink from standard
input and prints what happened, both as JSON. When it ends, pasta does.
"""

from __future__ import annotations

import json
import os
import socket
import sys

from claudebox.features.network.act import connect
from claudebox.launch.attended import fork_below
from claudebox.launch.landlock import scope_to_box
from claudebox.model import (
    Network,
    Origin,
    Uplink,
)
from claudebox.problem import Problem
from claudebox.settings.table import INET

PRIVATE = ("10.255.255.1", "fdff:ffff:ffff::1")
PORT = 9  # discard
PATIENCE = 3  # seconds; a rejection comes at once


def main() -> None:
    uplink = Uplink(**json.load(sys.stdin))
    try:
        scope_to_box()
        life = os.pipe()
        fork_below(None, life)
        connect(Network(INET, "", Origin.of_option("--check")), uplink, *life)
    except Problem as problem:
        json.dump({"problem": problem.message}, sys.stdout)
    else:
        json.dump({"passed": [address for address in PRIVATE if not is_rejected(address)]}, sys.stdout)


def is_rejected(address: str) -> bool:
    """Silence is not enough: the packet may be on its way."""
    try:
        socket.create_connection((address, PORT), timeout=PATIENCE).close()
    except TimeoutError:
        return False
    except OSError:
        return True
    return False
