"""Talks to the broker as Claude in the box would; or as somebody would who wants more."""

import socket
from dataclasses import dataclass
from typing import Self

from claudebox.servers.broker.messages import Reader, read_answer, read_body
from patience import PATIENCE


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """One connection."""

    def __init__(self, port: int, dummy: str) -> None:
        self.dummy = dummy
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.reader = Reader(self.socket.recv)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, body: bytes = b"{}", target: str = "/v1/messages?beta=true", headers: str = "") -> Answer:
        """What Claude sends."""
        head = f"POST {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.dummy}\r\n{headers}"
        return self.raw(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def raw(self, data: bytes) -> Answer:
        self.socket.sendall(data)
        return self.read()

    def read(self) -> Answer:
        head = read_answer(self.reader)
        return Answer(head.status, dict(head.headers), b"".join(read_body(self.reader, head.framing)))

    @property
    def is_closed(self) -> bool:
        return self.socket.recv(1) == b""
