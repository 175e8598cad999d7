"""Makes the network of tier `names` around this process, and tries what it has to do.

It is a program of its own, because there is no way back from the namespaces that it enters. It reads the path of nft
from standard input and prints what happened, as JSON.
"""

from __future__ import annotations

import json
import os
import socket
import sys

from claudebox.features.names.namespace import make_network
from claudebox.features.names.server.connection import original_destination
from claudebox.features.names.terms import CONNECTIONS
from claudebox.problem import Problem
from claudebox.process.isolation import fork_into_namespaces, scope_to_box
from claudebox.process.lifetime import die_with_parent

ADDRESSES = (("198.51.100.1", 443), ("2001:db8::1", 9))
PATIENCE_SECONDS = 3


def main() -> None:
    nft = json.load(sys.stdin)
    try:
        scope_to_box()
        _go_on_in_namespaces()
        made = make_network(nft, ())
    except Problem as problem:
        json.dump({"problem": problem.message}, sys.stdout)
        return
    listeners = [socket.socket(fileno=own.detach()) for words, own in made if words == CONNECTIONS]
    tried = zip(ADDRESSES, listeners, strict=False)  # a kernel may have no IPv6
    json.dump({"lost": [address for (address, port), own in tried if not _arrives(own, address, port)]}, sys.stdout)


def _arrives(listener: socket.socket, address: str, port: int) -> bool:
    """Whether a connection to this address arrives here, and is known for what it is."""
    listener.settimeout(PATIENCE_SECONDS)
    try:
        with socket.create_connection((address, port), PATIENCE_SECONDS):
            packed, seen = original_destination(listener.accept()[0])
    except OSError:
        return False
    return (socket.inet_ntop(listener.family, packed), seen) == (address, port)


def _go_on_in_namespaces() -> None:
    """Return in a child that has the namespaces of a box. This process waits for the child and ends as it does."""
    child = fork_into_namespaces()
    if child != 0:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    die_with_parent()
