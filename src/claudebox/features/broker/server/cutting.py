"""Keeps the credential out of what reaches the box."""

from __future__ import annotations

import json
import zlib
from urllib.parse import quote

from claudebox.features.broker.terms import SHORTEST_SECRET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_AT_ONCE = 256 * 1024  # bytes that are unpacked of a compressed piece
CODINGS = ("", "identity", "gzip", "x-gzip", "deflate")
GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


class Leak(Exception):
    """The credential is in the answer."""


class Cutter:
    """Lets pieces of an answer through, up to where a secret may begin."""

    def __init__(self, secrets: Iterable[str]) -> None:
        long_enough = [secret for secret in secrets if len(secret) >= SHORTEST_SECRET]
        self.secrets = tuple({form.encode() for secret in long_enough for form in _forms(secret)})
        self.held = b""

    def is_clean(self, text: str) -> bool:
        return not any(secret in text.encode() for secret in self.secrets)

    def feed(self, piece: bytes) -> bytes:
        """Return what can be passed on. Raises a Leak before any byte of a secret is."""
        text = self.held + piece
        if any(secret in text for secret in self.secrets):
            raise Leak
        kept = max((_overlap(text, secret) for secret in self.secrets), default=0)
        self.held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def finish(self) -> bytes:
        held, self.held = self.held, b""
        return held

    def pieces(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            if passed := self.feed(piece):
                yield passed
        if rest := self.finish():
            yield rest


def _forms(secret: str) -> tuple[str, ...]:
    """The secret as it would stand in JSON or in an address. Most have one form: letters, digits and dashes."""
    return secret, json.dumps(secret)[1:-1], secret.replace("/", "\\/"), quote(secret, safe="")


def _overlap(text: bytes, secret: bytes) -> int:
    """How many bytes at the end of the text are the beginning of the secret."""
    tail = text[-(len(secret) - 1) :]
    start = tail.find(secret[:1])
    while start >= 0:
        if secret.startswith(tail[start:]):
            return len(tail) - start
        start = tail.find(secret[:1], start + 1)
    return 0


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
