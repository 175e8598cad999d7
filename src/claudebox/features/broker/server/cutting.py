"""Keeps the credential out of what reaches the box."""

from __future__ import annotations

import json
import re
import zlib

from claudebox.features.broker.terms import SHORTEST_SECRET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_AT_ONCE = 256 * 1024  # bytes that are unpacked of a compressed piece
CODINGS = ("", "identity", "gzip", "x-gzip", "deflate")
GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS

# A character as JSON or an address writes it. JSON in JSON has more backslashes, an address in an address more `25`.
# How many is bounded: a long row of them must not cost more than its length.
IN_JSON = re.compile(rb'\\\\{0,14}(?:u00([2-7][0-9A-Fa-f])|(["/]))')
IN_ADDRESS = re.compile(rb"%(?:25){0,4}([2-7][0-9A-Fa-f])")
# The beginning of one, at the end of a piece.
UNFINISHED = re.compile(rb"(?:\\{1,15}(?:u(?:0(?:0[2-7]?)?)?)?|%(?:25){0,4}[2-7]?)\Z")
MOST_NESTED = 4  # JSON in an address in JSON …
MOST_BYTES = 12  # that one character of a secret takes


class Leak(Exception):
    """The credential is in the answer."""


class Cutter:
    """Lets pieces of an answer through, up to where a secret may begin."""

    def __init__(self, secrets: Iterable[str]) -> None:
        long_enough = {secret.encode() for secret in secrets if len(secret) >= SHORTEST_SECRET}
        in_json = {json.dumps(secret.decode())[1:-1].encode() for secret in long_enough}
        self.secrets = tuple(long_enough | in_json | {plainly(secret) for secret in long_enough})
        self.held = b""

    def is_clean(self, text: str) -> bool:
        return not self._is_in(text.encode())

    def feed(self, piece: bytes) -> bytes:
        """Return what can be passed on. Raises a Leak before any byte of a secret is."""
        text = self.held + piece
        if self._is_in(text):
            raise Leak
        kept = max((_overlap(text, secret) for secret in self.secrets), default=0)
        self.held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def _is_in(self, text: bytes) -> bool:
        plain = plainly(text)
        return any(secret in text or secret in plain for secret in self.secrets)

    def finish(self) -> bytes:
        held, self.held = self.held, b""
        return held

    def pieces(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            if passed := self.feed(piece):
                yield passed
        if rest := self.finish():
            yield rest


def plainly(text: bytes) -> bytes:
    """The text without the ways in which JSON and addresses write a character, nested ones too."""
    for _ in range(MOST_NESTED):
        before = text
        if b"%" in text:
            text = IN_ADDRESS.sub(lambda found: bytes.fromhex(found[1].decode()), text)
        if b"\\" in text:
            text = IN_JSON.sub(lambda found: found[2] or bytes.fromhex(found[1].decode()), text)
        if text == before:
            break
    return text


def _overlap(text: bytes, secret: bytes) -> int:
    """How many bytes at the end of the text may be the beginning of the secret, however it is written."""
    tail = text[-len(secret) * MOST_BYTES :]
    for found in re.finditer(rb"[\\%" + re.escape(secret[:1]) + rb"]", tail):
        if _may_begin(secret, tail, found.start()):
            return len(tail) - found.start()
    return 0


def _may_begin(secret: bytes, tail: bytes, start: int) -> bool:
    """Whether the tail, from there on, is the beginning of the secret. Most places are ruled out at first sight."""
    is_plain = tail.startswith(secret[:1], start)
    if not is_plain and not any(form.match(tail, start) for form in (IN_JSON, IN_ADDRESS, UNFINISHED)):
        return False
    ends = (start + MOST_BYTES, len(tail))
    return all(secret.startswith(_finished(plainly(tail[start:end]))) for end in ends)


def _finished(text: bytes) -> bytes:
    """The text without what may become another character when more of it is there: one form may be in another."""
    return UNFINISHED.sub(b"", UNFINISHED.sub(b"", text))


def decompressed(pieces: Iterable[bytes], coding: str) -> Iterator[bytes]:
    """Unpack pieces that the API has compressed although it was asked not to. Raises ValueError."""
    if coding in ("", "identity"):
        yield from pieces
        return
    if coding not in CODINGS:
        raise ValueError("it is compressed in a way that cannot be looked into")
    unpacker = zlib.decompressobj(GZIP_OR_ZLIB)
    try:
        for piece in pieces:
            left = piece
            while left and not unpacker.eof:
                if plain := unpacker.decompress(left, MOST_AT_ONCE):
                    yield plain
                left = unpacker.unconsumed_tail
            while not unpacker.eof and (plain := unpacker.decompress(b"", MOST_AT_ONCE)):
                yield plain
        if not unpacker.eof:
            raise ValueError("it ends too early")
    except zlib.error:
        raise ValueError("it cannot be unpacked") from None
