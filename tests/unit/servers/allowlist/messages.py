"""Messages of DNS and TLS, made by hand."""

import struct

A, TXT, AAAA, HTTPS, ANY = 1, 16, 28, 65, 255
EDNS = b"\0" + struct.pack(">HHIH", 41, 1232, 0, 0)


def query(
    *labels: bytes, kind: int = A, family: int = 1, flags: int = 0x0100, extra: bytes = b"", questions: int = 1
) -> bytes:
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    head = struct.pack(">6H", 0x1234, flags, questions, 0, 0, bool(extra))
    return head + name + struct.pack(">HH", kind, family) + extra


def named(name: str, **how: int) -> bytes:
    return query(*(label.encode() for label in name.split(".")), **how)  # type: ignore[arg-type]


def code_of(reply: bytes) -> int:
    return reply[3] & 15


def address_in(reply: bytes) -> str:
    """The address in an answer; "" if it has none."""
    answers = struct.unpack_from(">H", reply, 6)[0]
    return ".".join(map(str, reply[-4:])) if answers else ""


def block(width: int, data: bytes) -> bytes:
    return len(data).to_bytes(width, "big") + data


def extension(kind: int, body: bytes) -> bytes:
    return kind.to_bytes(2, "big") + block(2, body)


def server_name(name: bytes, kind: int = 0) -> bytes:
    return extension(0, block(2, bytes([kind]) + block(2, name)))


ECH = extension(0xFE0D, bytes(200))
GREASE = extension(0x0A0A, b"")


def client_hello(*extensions: bytes, tail: bytes = b"") -> bytes:
    """The message without records."""
    body = b"\3\3" + bytes(32) + block(1, bytes(32)) + block(2, b"\x13\1") + block(1, b"\0")
    body += block(2, b"".join(extensions)) if extensions else b""
    return b"\1" + block(3, body + tail)


def records(message: bytes, size: int = 1 << 14) -> bytes:
    parts = [message[place : place + size] for place in range(0, len(message), size)]
    return b"".join(b"\x16\3\1" + block(2, part) for part in parts)
