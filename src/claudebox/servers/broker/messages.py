"""Reads and writes HTTP/1.1. What two readers could understand in two ways is not understood at all.

A library would not do: h11 takes a length beside chunks, the same length twice, continued lines and lines without a
carriage return, and does not say so; http.client takes more. What has to be refused would have to be read before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from claudebox.record import Record

Headers = tuple[tuple[str, str], ...]  # names in lower case

LARGEST_HEAD = 32 * 1024
MOST_HEADERS = 100
MOST_INTERIM_ANSWERS = 10

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
LONGEST_CHUNK_LINE = 128
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*")
LAST_CHUNK = b"0\r\n\r\n"


class Malformed(Exception):
    """It is not HTTP, or could be understood in two ways. After that, nothing more can be read from there."""


class Truncated(Exception):
    """The other side closed before a message had ended."""


class Framing(Record):
    """Where a body ends: after so many bytes, or as its chunks say, or (-1) with the connection."""

    length: int
    is_chunked: bool = False


class RequestHead(Record):
    method: str
    target: str
    headers: Headers
    framing: Framing
    keeps_open: bool


class AnswerHead(Record):
    status: int
    headers: Headers
    framing: Framing
    keeps_open: bool


class Reader:
    """Reads from a connection. `receive` is that of a socket: so many bytes at most, none at the end."""

    def __init__(self, receive: Callable[[int], bytes]) -> None:
        self.receive = receive
        self.buffer = bytearray()

    def until(self, mark: bytes, limit: int) -> bytes:
        """Take everything up to the mark, which is dropped."""
        searched = 0
        while (found := self.buffer.find(mark, searched)) < 0:
            if len(self.buffer) >= limit + len(mark):
                break
            searched = max(0, len(self.buffer) - len(mark) + 1)
            self._receive_more()
        if not 0 <= found <= limit:
            raise Malformed("the head is too large" if limit == LARGEST_HEAD else "chunk")
        taken = bytes(self.buffer[:found])
        del self.buffer[: found + len(mark)]
        return taken

    def some(self, limit: int) -> bytes:
        """Take at least one byte."""
        if not self.buffer:
            self._receive_more()
        taken = bytes(self.buffer[:limit])
        del self.buffer[:limit]
        return taken

    def _receive_more(self) -> None:
        received = self.receive(PIECE)
        if not received:
            raise Truncated
        self.buffer += received


def read_request(reader: Reader) -> RequestHead:
    match, headers, framing = _read_head(reader, REQUEST_LINE, VALUE)
    if "host" not in dict(headers):
        raise Malformed("no host")
    if "expect" in dict(headers):
        raise Malformed("expectation")  # whoever has one then sends everything at once
    return RequestHead(match[1].decode(), match[2].decode(), headers, framing or Framing(0), _keeps_open(headers))


def read_answer(reader: Reader) -> AnswerHead:
    """Read the head of the final answer, after interim ones (1xx). Raises Malformed."""
    for _ in range(MOST_INTERIM_ANSWERS):
        match, headers, framing = _read_head(reader, STATUS_LINE, ANSWERED_VALUE)
        status = int(match[1])
        if status == 101:
            break
        if status >= 200:
            framing = Framing(0) if status in WITHOUT_BODY else framing or Framing(-1)
            keeps_open = match[0].startswith(b"HTTP/1.1") and framing != Framing(-1) and _keeps_open(headers)
            return AnswerHead(status, headers, framing, keeps_open)
    raise Malformed("it speaks another protocol")


def _read_head(
    reader: Reader, first: re.Pattern[bytes], value: re.Pattern[bytes]
) -> tuple[re.Match[bytes], Headers, Framing | None]:
    """Read the first line, the headers, and what they say of the body."""
    line, *lines = reader.until(b"\r\n\r\n", LARGEST_HEAD).split(b"\r\n")
    match = first.fullmatch(line)
    if match is None:
        raise Malformed("first line")
    if len(lines) > MOST_HEADERS:
        raise Malformed("too many headers")
    headers = tuple(_header(line, value) for line in lines)
    names = [name for name, _ in headers if name in ONCE]
    if len(names) != len(set(names)):
        raise Malformed("a header that may be there once is there twice")
    return match, headers, _framing(headers)


def _header(line: bytes, allowed: re.Pattern[bytes]) -> tuple[str, str]:
    """Read a header. A line that continues the one before, after a space, has no name, and neither has `name :`."""
    name, colon, value = line.partition(b":")
    value = value.strip(b" \t")
    if not colon or not NAME.fullmatch(name) or not allowed.fullmatch(value):
        raise Malformed("header")
    return name.decode().lower(), value.decode("latin-1")


def _framing(headers: Headers) -> Framing | None:
    """What they say of the body; each of the two is there once at most."""
    length, coding = (dict(headers).get(name) for name in ("content-length", "transfer-encoding"))
    if length is None and coding is None:
        return None
    if length is not None and coding is not None:
        raise Malformed("both a length and chunks")
    if coding is not None and coding.lower() != "chunked":
        raise Malformed("transfer coding")
    if length is not None and not LENGTH.fullmatch(length):
        raise Malformed("length")
    return Framing(-1, is_chunked=True) if length is None else Framing(int(length))


def _keeps_open(headers: Headers) -> bool:
    return not any(name == "connection" and "close" in value.lower() for name, value in headers)


def read_body(reader: Reader, framing: Framing) -> Iterator[bytes]:
    """Read up to where the body ends. Raises Malformed or Truncated if that cannot be known."""
    if framing.is_chunked:
        yield from _chunks(reader)
    elif framing.length >= 0:
        yield from _exactly(reader, framing.length)
    else:
        with suppress(Truncated):
            while True:
                yield reader.some(PIECE)


def _exactly(reader: Reader, length: int) -> Iterator[bytes]:
    while length:
        piece = reader.some(min(length, PIECE))
        length -= len(piece)
        yield piece


def _chunks(reader: Reader) -> Iterator[bytes]:
    """Chunks without extensions and trailers: nobody sends them, and two readers may disagree about what they are."""
    while size := _chunk_size(reader):
        yield from _exactly(reader, size)
        reader.until(b"\r\n", 0)
    reader.until(b"\r\n", 0)


def _chunk_size(reader: Reader) -> int:
    match = CHUNK_LINE.fullmatch(reader.until(b"\r\n", LONGEST_CHUNK_LINE))
    if match is None:
        raise Malformed("chunk")
    return int(match[1], 16)


def chunk(piece: bytes) -> bytes:
    """A chunk to send. It is never an empty one, which would be the last."""
    return b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""


def head_bytes(first: str, headers: Headers) -> bytes:
    """A head to send. No part of it can hold the end of a line: all were read by the rules above."""
    lines = [first, *(f"{name}: {value}" for name, value in headers)]
    assert not any("\r" in line or "\n" in line for line in lines)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
