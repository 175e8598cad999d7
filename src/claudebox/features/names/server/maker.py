"""Connects to a server in the box, for `--publish`.

A socket belongs to the network namespace of the process that makes it, wherever it is used. So a small process in the
box's network, which no program of the box can see, makes sockets on request.
"""

from __future__ import annotations

import socket
import threading

from claudebox.features.names.server.refusal import Refusal
from claudebox.features.names.terms import FOR_IPV4, FOR_IPV6

CONNECT_SECONDS = 5.0
LOOPBACKS = ((FOR_IPV4, "127.0.0.1"), (FOR_IPV6, "::1"))  # in this order: most servers are at the first one


class Maker:
    """The end of that process's channel which is outside."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.lock = threading.Lock()

    def connect(self, port: int) -> socket.socket:
        """Connect to a port of the box's loopback. Many development servers listen at ::1 alone."""
        problem: Exception | None = None
        for family, address in LOOPBACKS:
            try:
                return self._connect(family, address, port)
            except (OSError, IndexError) as error:
                problem = problem or error
        raise Refusal(f"nobody answers at port {port} of the box: {problem}", 0)

    def _connect(self, family: bytes, address: str, port: int) -> socket.socket:
        with self.lock:
            self.channel.send(family)
            _, descriptors, _, _ = socket.recv_fds(self.channel, len(family), 1)
        made = socket.socket(fileno=descriptors[0])
        made.settimeout(CONNECT_SECONDS)
        try:
            made.connect((address, port))
        except OSError:
            made.close()
            raise
        return made
