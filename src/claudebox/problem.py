"""What went wrong, and what the user can do about it."""

from __future__ import annotations

FAILED = 125
CANNOT_EXECUTE = 126
NOT_FOUND = 127
INTERRUPTED = 130
BROKEN_PIPE = 141


class Problem(Exception):
    """Nothing is started. The message says why; the excerpt is the line of a file; the hint is what to type next."""

    def __init__(self, message: str, hint: str = "", status: int = FAILED, excerpt: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status
        self.excerpt = excerpt
