"""A stand-in for the API and for the place that renews tokens, over real TLS with a CA of its own."""

import contextlib
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

Pieces = Iterator[bytes]
STREAM = "content-type: text/event-stream\r\n"


@dataclass
class Asked:
    """A request as it came."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]

    def header(self, wanted: str) -> str:
        return ",".join(value for name, value in self.headers if name == wanted)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Handler = Callable[[Asked], Pieces]


@dataclass
class Certificates:
    authority: Path
    server: Path


def make_certificates(directory: Path) -> Certificates:
    """A CA, and a certificate of it for localhost and 127.0.0.1."""
    authority, key, server, request = (directory / name for name in ("ca.pem", "ca.key", "server.pem", "server.csr"))
    extensions = directory / "extensions"
    # Newer Pythons check strictly.
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    extensions.write_text(f"{names}\nauthorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n")
    signs = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    openssl("req", "-x509", *new, "-subj", "/CN=stand-in CA", *signs, "-keyout", str(key), "-out", str(authority))
    own = directory / "server.key"
    openssl("req", *new[:-2], "-subj", "/CN=localhost", "-keyout", str(own), "-out", str(request))
    signing = ("-CA", str(authority), "-CAkey", str(key), "-CAcreateserial", "-days", "2")
    openssl("x509", "-req", "-in", str(request), *signing, "-extfile", str(extensions), "-out", str(server))
    server.write_text(own.read_text() + server.read_text())
    return Certificates(authority, server)


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@dataclass
class Server:
    """Answers on a free port of 127.0.0.1. A handler yields the bytes of an answer."""

    handler: Handler
    certificate: Path | None = None
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    address: tuple[str, int] = ("127.0.0.1", 0)

    def __enter__(self) -> Self:
        self.listener = socket.create_server(self.address, backlog=128)
        self.context = None
        if self.certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(self.certificate)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    @property
    def url(self) -> str:
        return f"{'https' if self.certificate else 'http'}://localhost:{self.port}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, Close), connection:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as file:
                while asked := read_request(file):
                    self.asked.append(asked)
                    for piece in self.handler(asked):
                        connection.sendall(piece)


class Close(Exception):
    """Raised by a handler: end the connection right here."""


def read_request(file: Any) -> Asked | None:
    line = file.readline().decode().strip()
    if not line:
        return None
    headers = []
    while (header := file.readline().decode("latin-1").strip()) != "":
        name, _, value = header.partition(":")
        headers.append((name.lower(), value.strip()))
    return Asked(line, headers, file.read(int(dict(headers).get("content-length", 0))))


def reply(value: Any, status: int = 200, headers: str = "") -> bytes:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    kind = "" if "content-type" in headers.lower() else "content-type: application/json\r\n"
    return f"HTTP/1.1 {status} X\r\n{kind}{headers}content-length: {len(body)}\r\n\r\n".encode() + body


def chunked(*pieces: bytes) -> Pieces:
    """A stream of events, one chunk each, with its end."""
    yield b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nset-cookie: a=b\r\ntransfer-encoding: chunked\r\n\r\n"
    for piece in pieces:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def event(name: str, **data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


def message(text: str = "hello", model: str = "claude-test") -> list[bytes]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}
    ends: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, **ends}
    return [
        event("message_start", message=start),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": text}),
        event("content_block_stop", index=0),
        event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 7}),
        event("message_stop"),
    ]


def hello(_: Asked) -> Pieces:
    yield from chunked(*message())
