"""What the launch, the box and the broker have agreed on: names, limits, and how the broker says that it is ready."""

from __future__ import annotations

SOCKET = "api.sock"
TOKEN_URL = "CLAUDEBOX_TOKEN_URL"  # a variable: where a login is renewed, if it is not the usual place
EXTRA_CERTIFICATES = "NODE_EXTRA_CA_CERTS"  # which Claude Code would trust as well
READY = b"\n"
LONGEST_MESSAGE = 4096  # bytes that a pipe takes in one piece
BACKLOG = 1024  # connections that wait to be accepted: beyond it, one fails at once
SHORTEST_SECRET = 8  # what is shorter occurs in every text, and is no secret
