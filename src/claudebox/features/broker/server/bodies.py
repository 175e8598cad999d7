"""The bodies of HTTP/1.1 messages, piece by piece."""

from __future__ import annotations

import re

from claudebox.features.broker.server.reading import (
    PIECE,
    Ended,
    Reader,
    TooLong,
    Truncated,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from claudebox.features.broker.server.messages import Framing

LONGEST_CHUNK_LINE = 128  # with its extensions, which mean nothing to us
LARGEST_TRAILER = 4096
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(;[\t\x20-\x7e]*)?")
TRAILER_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*")
LAST_CHUNK = b"0\r\n\r\n"


class BadBody(Exception):
    """Not what the head said, or not HTTP."""


def read_body(reader: Reader, framing: Framing) -> Iterator[bytes]:
    """Ends where the body does. Raises BadBody or Truncated if that cannot be known."""
    try:
        if framing.is_chunked:
            yield from _chunks(reader)
        elif framing.length >= 0:
            yield from _exactly(reader, framing.length)
        else:
            yield from _until_closed(reader)
    except Ended:
        raise Truncated from None
    except TooLong:
        raise BadBody("chunk line") from None


def _exactly(reader: Reader, length: int) -> Iterator[bytes]:
    while length:
        piece = reader.some(min(length, PIECE))
        length -= len(piece)
        yield piece


def _until_closed(reader: Reader) -> Iterator[bytes]:
    while piece := reader.rest():
        yield piece


def _chunks(reader: Reader) -> Iterator[bytes]:
    while size := _chunk_size(reader):
        yield from _exactly(reader, size)
        if reader.until(b"\r\n", 0):
            raise BadBody("chunk")
    left = LARGEST_TRAILER
    while line := reader.until(b"\r\n", left):
        if not TRAILER_LINE.fullmatch(line):
            raise BadBody("trailer")
        left = max(0, left - len(line))  # read, and dropped


def _chunk_size(reader: Reader) -> int:
    match = CHUNK_LINE.fullmatch(reader.until(b"\r\n", LONGEST_CHUNK_LINE))
    if match is None:
        raise BadBody("chunk line")
    return int(match[1], 16)


def chunk(piece: bytes) -> bytes:
    """One to send; never an empty one, which would be the last."""
    return b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""
