"""Reads what a client says first, and says no in the protocol that it speaks: a person, or an agent, can read why.

The first message of TLS, the ClientHello, names the server, and no encryption covers it. It may be cut into any number
of records, and records into any number of packets. What cannot be read is refused: the server at the other end may read
it in another way.
"""

from __future__ import annotations

import struct

ALERT, HANDSHAKE = 0x15, 0x16
CLIENT_HELLO = 1
VERSION = 3  # the first of two bytes, for all versions since SSL 3.0
RECORD_HEADER, MESSAGE_HEADER = 5, 4
LARGEST_RECORD, LARGEST_HELLO = (1 << 14) + 256, 1 << 16
RANDOM = 34  # bytes at the beginning: the version, and a random number
SERVER_NAME = 0  # an extension, and in it the kind of a name
LONGEST_NAME = 255
FATAL, IN_VERSION = 2, (3, 3)  # of an alert
NO_ALERT, ACCESS_DENIED, UNRECOGNIZED_NAME, ILLEGAL_PARAMETER = 0, 49, 112, 47

METHODS = (
    *(b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ", b"TRACE ", b"PROPFIND "),
    b"PRI * HTTP/2",
)
SSH = b"SSH-"
# Of SSH: a message that asks to end, because an administrator wants it.
DISCONNECT, BY_APPLICATION = 1, 11
BLOCK, LEAST_PADDING = 8, 4


class BadHello(Exception):
    """It is no ClientHello, or one that two readers could understand in two ways."""


def is_tls(data: bytes) -> bool:
    """Whether a client that begins like this speaks TLS. No client begins with an alert, but servers written in Go
    pass over a warning, of whatever version, and take the ClientHello that follows."""
    return data[:1] in (bytes([ALERT]), bytes([HANDSHAKE]))


def server_name(data: bytes) -> str | None:
    """The name in a ClientHello, in lower case; "" if it has none; None if more bytes are needed to tell."""
    message, place = b"", 0
    while len(data) >= place + RECORD_HEADER:
        kind, major = data[place], data[place + 1]
        length = int.from_bytes(data[place + 3 : place + RECORD_HEADER], "big")
        if kind != HANDSHAKE or major != VERSION or not 0 < length <= LARGEST_RECORD:
            raise BadHello("it is no TLS handshake")
        message += data[place + RECORD_HEADER : place + RECORD_HEADER + length]
        place += RECORD_HEADER + length
        if message[:1] not in (b"", bytes([CLIENT_HELLO])):
            raise BadHello("TLS does not begin with a ClientHello")
        if len(message) >= MESSAGE_HEADER:
            size = int.from_bytes(message[1:MESSAGE_HEADER], "big")
            if size > LARGEST_HELLO:
                raise BadHello("the ClientHello is too long")
            if len(message) >= MESSAGE_HEADER + size:
                return _name_in(_Reader(message[MESSAGE_HEADER : MESSAGE_HEADER + size]))
    return None


class _Reader:
    """Takes bytes from the front."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, size: int) -> bytes:
        if len(self.data) < size:
            raise BadHello("the ClientHello is broken")
        part, self.data = self.data[:size], self.data[size:]
        return part

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def block(self, width: int) -> _Reader:
        """A part whose length comes first, in so many bytes."""
        return _Reader(self.take(self.number(width)))


def _name_in(hello: _Reader) -> str:
    hello.take(RANDOM)
    for width in (1, 2, 1):  # session, ciphers, compression
        hello.block(width)
    extensions = hello.block(2) if hello.data else hello
    if hello.data:
        raise BadHello("something follows the ClientHello's extensions")
    names = []
    while extensions.data:
        kind, body = extensions.number(2), extensions.block(2)
        if kind == SERVER_NAME:
            names.append(_only_name(body))
    if len(names) > 1:
        raise BadHello("it has two server names")
    return names[0] if names else ""


def _only_name(outer: _Reader) -> str:
    inner = outer.block(2)
    kind, name = inner.number(1), inner.block(2).data
    if outer.data or inner.data or kind != SERVER_NAME or not 0 < len(name) <= LONGEST_NAME:
        raise BadHello("its server name is broken")
    if not name.isascii():
        raise BadHello("its server name is no name")
    return name.decode().lower()


class Refusal(Exception):
    """Why a connection is not made. NO_ALERT: the list allows it, and the network failed."""

    def __init__(self, text: str, alert: int = ACCESS_DENIED, *, is_lists: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.alert = alert
        self.is_lists = is_lists  # a longer list would allow it


def in_words_of(first: bytes, refusal: Refusal) -> bytes:
    """The answer to a client that began with these bytes; b"" if there is none in its protocol."""
    text = f"claudebox: {refusal.text}"
    if first.startswith(METHODS):
        return _http(text, refusal.alert)
    if refusal.alert and first.startswith(SSH):
        return _ssh(text)
    if refusal.alert and is_tls(first):
        return bytes((ALERT, *IN_VERSION, 0, 2, FATAL, refusal.alert))
    return b""


def _http(text: str, alert: int) -> bytes:
    status = "403 Forbidden" if alert else "502 Bad Gateway"
    page = f"{text}\n"
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(page.encode())}\r\n"
        f"Connection: close\r\nX-Claudebox: {text}\r\n\r\n{page}"
    ).encode()


def _ssh(text: str) -> bytes:
    reason = text.encode()
    body = struct.pack(">BII", DISCONNECT, BY_APPLICATION, len(reason)) + reason + bytes(4)
    padding = LEAST_PADDING + -(5 + len(body) + LEAST_PADDING) % BLOCK
    return b"SSH-2.0-claudebox\r\n" + struct.pack(">IB", 1 + len(body) + padding, padding) + body + bytes(padding)
