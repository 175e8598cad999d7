"""Says no in the words of the protocol that the client speaks, so that a person, or an agent, can read why."""

from __future__ import annotations

from claudebox.features.names.server.hello import is_tls

METHODS = (
    *(b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ", b"TRACE ", b"PROPFIND "),
    b"PRI * HTTP/2",
)
SSH = b"SSH-"
LONGEST_VERSION = 256  # bytes of the first line of SSH
# Of TLS.
ALERT, VERSION, FATAL = 0x15, (3, 3), 2
ACCESS_DENIED, UNRECOGNIZED_NAME, ILLEGAL_PARAMETER = 49, 112, 47
# Of SSH: a message that asks to end, because an administrator wants it.
DISCONNECT, BY_APPLICATION = 1, 11
BLOCK = 8
LEAST_PADDING = 4


class Refusal(Exception):
    """Why a connection is not made. Without an alert, the reason is the network's: nobody refused it."""

    def __init__(self, text: str, alert: int = ACCESS_DENIED, *, is_lists: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.alert = alert
        self.is_lists = is_lists  # a longer list would allow it


def in_words_of(first: bytes, refusal: Refusal) -> bytes | None:
    """The answer to a client that began with these bytes: b"" if nothing can be said; None if more bytes would tell."""
    text = f"claudebox: {refusal.text}"
    if first.startswith(METHODS):
        return _http(text, refusal.alert)
    if not refusal.alert:
        return None if _may_become(first, METHODS) else b""
    if first.startswith(SSH):
        is_whole = b"\n" in first
        return _ssh(text) if is_whole else None if len(first) < LONGEST_VERSION else b""
    if is_tls(first):
        return bytes((ALERT, *VERSION, 0, 2, FATAL, refusal.alert))
    return None if _may_become(first, (*METHODS, SSH)) else b""


def _may_become(first: bytes, beginnings: tuple[bytes, ...]) -> bool:
    return any(beginning.startswith(first) for beginning in beginnings)


def _http(text: str, alert: int) -> bytes:
    status = "403 Forbidden" if alert else "502 Bad Gateway"
    page = f"{text}\n"
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(page.encode())}\r\n"
        f"Connection: close\r\nX-Claudebox: {text}\r\n\r\n{page}"
    ).encode()


def _ssh(text: str) -> bytes:
    reason = text.encode()
    parts = (bytes([DISCONNECT]), BY_APPLICATION.to_bytes(4, "big"), len(reason).to_bytes(4, "big"), reason, bytes(4))
    body = b"".join(parts)
    padding = -(5 + len(body)) % BLOCK
    padding += BLOCK if padding < LEAST_PADDING else 0
    packet = (1 + len(body) + padding).to_bytes(4, "big") + bytes([padding]) + body + bytes(padding)
    return b"SSH-2.0-claudebox\r\n" + packet
