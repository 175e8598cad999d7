"""Bytes of one connection, taken as lines and pieces of limited size."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PIECE = 64 * 1024


class Ended(Exception):
    """The other side closed between two messages."""


class Truncated(Exception):
    """The other side closed in the middle of one."""


class TooLong(Exception):
    """A line or a head that does not end where it should."""


class Reader:
    """`receive` is that of a socket: so many bytes at most, none at the end."""

    def __init__(self, receive: Callable[[int], bytes]) -> None:
        self.receive = receive
        self.buffer = bytearray()
        self.has_begun = False  # to receive anything since the last message

    def until(self, mark: bytes, limit: int) -> bytes:
        """Everything before the mark, which is taken away, too."""
        searched = 0
        while (found := self.buffer.find(mark, searched)) < 0:
            if len(self.buffer) >= limit + len(mark):
                raise TooLong
            searched = max(0, len(self.buffer) - len(mark) + 1)
            self._more()
        if found > limit:
            raise TooLong
        taken = bytes(self.buffer[:found])
        del self.buffer[: found + len(mark)]
        return taken

    def some(self, limit: int) -> bytes:
        """At least one byte."""
        if not self.buffer:
            self._more()
        taken = bytes(self.buffer[:limit])
        del self.buffer[:limit]
        return taken

    def rest(self) -> bytes:
        """What comes until the other side closes, or nothing."""
        try:
            return self.some(PIECE)
        except Truncated:
            return b""

    def next_message(self) -> None:
        """Whatever ends from here on ends between two messages."""
        self.has_begun = bool(self.buffer)

    def _more(self) -> None:
        received = self.receive(PIECE)
        if not received:
            raise Truncated if self.has_begun else Ended
        self.has_begun = True
        self.buffer += received
