"""Reads HTTP/1.1 messages. What two readers could understand in two ways is not understood at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from claudebox.features.broker.server.policy import INVALID, Headers, Refusal, malformed
from claudebox.record import Record

LARGEST_HEAD = 32 * 1024
MOST_HEADERS = 100

REQUEST_LINE = re.compile(rb"([A-Za-z]{1,16}) ([\x21-\x7e]{1,2048}) HTTP/1\.1")
STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: [\t\x20-\x7e\x80-\xff]*)?")
NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
VALUE = re.compile(rb"[\t\x20-\x7e]*")
ANSWERED_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
LENGTH = re.compile(r"[0-9]{1,15}")

# Headers of which a second one could mean something else to another reader.
ONCE = frozenset(
    "host content-length transfer-encoding content-type content-encoding authorization x-api-key expect".split()
)
WITHOUT_BODY = (204, 304)
PIECE = 64 * 1024
LONGEST_CHUNK_LINE = 128  # with its extensions, which mean nothing to us
LARGEST_TRAILER = 4096
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(;[\t\x20-\x7e]*)?")
TRAILER_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*")
LAST_CHUNK = b"0\r\n\r\n"


class Malformed(Exception):
    """What the API sent is not HTTP."""


class Framing(Record):
    """Where a body ends: after so many bytes, or as its chunks say, or (-1) with the connection."""

    length: int
    is_chunked: bool = False


class RequestHead(Record):
    """What the box asks for."""

    method: str
    target: str
    headers: Headers
    framing: Framing


class AnswerHead(Record):
    """What the API answers."""

    status: int
    headers: Headers
    framing: Framing
    keeps_open: bool


def read_request(reader: Reader) -> RequestHead:
    """Read the head of a request. Raises a Refusal, after which nothing more can be read from there."""
    try:
        head = reader.until(b"\r\n\r\n", LARGEST_HEAD)
    except TooLong:
        raise Refusal(431, INVALID, "malformed request: the head is too large") from None
    first, *lines = head.split(b"\r\n")
    match = REQUEST_LINE.fullmatch(first)
    if match is None:
        raise malformed("request line")
    try:
        headers = _headers(lines, VALUE)
        framing = _framing(headers) or Framing(0)
    except ValueError as error:
        raise malformed(str(error)) from None
    if _values(headers, "host") == []:
        raise malformed("no host")
    if _values(headers, "expect"):
        raise Refusal(417, INVALID, "malformed request: expectation")  # whoever has one then sends everything at once
    return RequestHead(match[1].decode(), match[2].decode(), headers, framing)


def read_answer(reader: Reader) -> AnswerHead:
    """Read the head of the final answer: those before it only say that there is more to come. Raises Malformed."""
    for _ in range(10):
        head = _read_answer(reader)
        if head.status >= 200:
            return head
        if head.status == 101:
            break
    raise Malformed("it speaks another protocol")


def _read_answer(reader: Reader) -> AnswerHead:
    try:
        first, *lines = reader.until(b"\r\n\r\n", LARGEST_HEAD).split(b"\r\n")
    except TooLong:
        raise Malformed("the head is too large") from None
    match = STATUS_LINE.fullmatch(first)
    if match is None:
        raise Malformed("status line")
    status = int(match[1])
    try:
        headers = _headers(lines, ANSWERED_VALUE)
        framing = _framing(headers) or Framing(-1)
    except ValueError as error:
        raise Malformed(str(error)) from None
    if status < 200 or status in WITHOUT_BODY:
        framing = Framing(0)
    connection = ",".join(_values(headers, "connection")).lower()
    keeps_open = first.startswith(b"HTTP/1.1") and "close" not in connection and framing != Framing(-1)
    return AnswerHead(status, headers, framing, keeps_open)


def _headers(lines: list[bytes], allowed: re.Pattern[bytes]) -> Headers:
    if len(lines) > MOST_HEADERS:
        raise ValueError("too many headers")
    headers = tuple(_header(line, allowed) for line in lines)
    names = [name for name, _ in headers if name in ONCE]
    if len(names) != len(set(names)):
        raise ValueError("a header that may be there once is there twice")
    return headers


def _header(line: bytes, allowed: re.Pattern[bytes]) -> tuple[str, str]:
    """Read a header. A line that continues the one before, after a space, has no name, and neither has `name :`."""
    name, colon, value = line.partition(b":")
    value = value.strip(b" \t")
    if not colon or not NAME.fullmatch(name) or not allowed.fullmatch(value):
        raise ValueError("header")
    return name.decode().lower(), value.decode("latin-1")


def _framing(headers: Headers) -> Framing | None:
    lengths, codings = _values(headers, "content-length"), _values(headers, "transfer-encoding")
    if lengths and codings:
        raise ValueError("both a length and chunks")
    if codings:
        if codings[0].lower() != "chunked":
            raise ValueError("transfer coding")
        return Framing(-1, is_chunked=True)
    if lengths:
        if not LENGTH.fullmatch(lengths[0]):
            raise ValueError("length")
        return Framing(int(lengths[0]))
    return None


def _values(headers: Headers, wanted: str) -> list[str]:
    return [value for name, value in headers if name == wanted]


def head_bytes(first: str, headers: Headers) -> bytes:
    """A head to send. No part of it can hold the end of a line: all were read by the rules above."""
    lines = [first, *(f"{name}: {value}" for name, value in headers)]
    assert not any("\r" in line or "\n" in line for line in lines)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Ended(Exception):
    """The other side closed between two messages."""


class Truncated(Exception):
    """The other side closed in the middle of a message."""


class TooLong(Exception):
    """A line or a head that does not end where it should."""


class Reader:
    """Reads from a connection. `receive` is that of a socket: so many bytes at most, none at the end."""

    def __init__(self, receive: Callable[[int], bytes]) -> None:
        self.receive = receive
        self.buffer = bytearray()
        self.has_begun = False  # whether anything was received since the last message

    def until(self, mark: bytes, limit: int) -> bytes:
        """Take everything before the mark, and drop the mark."""
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
        """Take at least one byte."""
        if not self.buffer:
            self._more()
        taken = bytes(self.buffer[:limit])
        del self.buffer[:limit]
        return taken

    def rest(self) -> bytes:
        """Take what comes; nothing once the other side has closed."""
        try:
            return self.some(PIECE)
        except Truncated:
            return b""

    def next_message(self) -> None:
        """Begin anew: if the other side closes now, it closes between two messages."""
        self.has_begun = bool(self.buffer)

    def _more(self) -> None:
        received = self.receive(PIECE)
        if not received:
            raise Truncated if self.has_begun else Ended
        self.has_begun = True
        self.buffer += received


class BadBody(Exception):
    """The body is not what the head said, or not HTTP."""


def read_body(reader: Reader, framing: Framing) -> Iterator[bytes]:
    """Read up to where the body ends. Raises BadBody or Truncated if that cannot be known."""
    try:
        if framing.is_chunked:
            yield from _chunks(reader)
        elif framing.length >= 0:
            yield from _exactly(reader, framing.length)
        else:
            while piece := reader.rest():
                yield piece
    except Ended:
        raise Truncated from None
    except TooLong:
        raise BadBody("chunk line") from None


def _exactly(reader: Reader, length: int) -> Iterator[bytes]:
    while length:
        piece = reader.some(min(length, PIECE))
        length -= len(piece)
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
        left = max(0, left - len(line))  # trailers are read, and dropped


def _chunk_size(reader: Reader) -> int:
    match = CHUNK_LINE.fullmatch(reader.until(b"\r\n", LONGEST_CHUNK_LINE))
    if match is None:
        raise BadBody("chunk line")
    return int(match[1], 16)


def chunk(piece: bytes) -> bytes:
    """A chunk to send. It is never an empty one, which would be the last."""
    return b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""
