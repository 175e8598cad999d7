"""Connects to a server in the box, for `--publish`.

A socket belongs to the network namespace of the process that makes it, wherever it is used. So a small process in the
box's network, which no program of the box can see, makes sockets on request.
"""

from __future__ import annotations

import socket
import threading

from claudebox.features.names.server.refusal import Refusal

CONNECT_SECONDS = 5.0
REQUEST = b"."


class Maker:
    """The end of that process's channel which is outside."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.lock = threading.Lock()

    def connect(self, port: int) -> socket.socket:
        try:
            with self.lock:
                self.channel.send(REQUEST)
                _, descriptors, _, _ = socket.recv_fds(self.channel, len(REQUEST), 1)
            made = socket.socket(fileno=descriptors[0])
            made.settimeout(CONNECT_SECONDS)
            made.connect(("127.0.0.1", port))
        except (OSError, IndexError) as error:
            raise Refusal(f"nobody answers at port {port} of the box: {error}", 0) from None
        return made
