"""Servers on the internet machine that ordinary programs understand: HTTP, HTTPS, HTTP/2, SSE, WebSockets, git, npm,
pip and SSH. Each says GREETING, and remembers under which name it was asked."""

import base64
import hashlib
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from network.internet import Internet
from patience import PATIENCE
from samples import wheel

GREETING = "hello from the internet"
ADDRESSES = ("198.51.100.10", "2001:db8:1::10")
NAMES = "DNS:allowed.example,DNS:*.example,DNS:*.wild.example,IP:198.51.100.10"
WEBSOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

# Talks HTTP/2, as Python does not.
HTTP2 = """
const fs = require("fs");
const pem = fs.readFileSync(process.argv[1]);
const server = require("http2").createSecureServer({ key: pem, cert: pem });
server.on("stream", (stream) => {
    stream.respond({ ":status": 200 });
    stream.end("hello from the internet over h2\\n");
});
server.listen(8443, "::", () => console.log("listening"));
"""


def make_certificate(directory: Path, names: str = NAMES) -> Path:
    """A certificate that nobody vouches for, with its key: what is tried here is the way, not the trust."""
    file = directory / "server.pem"
    new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    words = ("-subj", "/CN=allowed.example", "-addext", f"subjectAltName={names}")
    done = subprocess.run(
        ["openssl", *new, *words, "-keyout", "/dev/stdout", "-out", "/dev/stdout"], check=True, capture_output=True
    )
    file.write_bytes(done.stdout)
    return file


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    repository: Path

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if self.headers.get("Upgrade", "").lower() == "websocket":
            self._websocket()
        elif path == "/events":
            self._events()
        elif path.startswith("/repository.git/"):
            self._file(self.repository / path.removeprefix("/repository.git/"))
        elif path == "/greeting":
            self._send(json.dumps(npm_document(self.headers["Host"])).encode(), "application/json")
        elif path == "/simple/greeting/":
            self._send(b'<a href="/greeting-1.0-py3-none-any.whl">greeting-1.0-py3-none-any.whl</a>', "text/html")
        elif path.endswith(".whl"):
            self._send(wheel("greeting", f"print({GREETING!r})\n"), "application/octet-stream")
        elif path == "/large":
            self._send(bytes(1 << 26), "application/octet-stream")
        else:
            self._send(f"{GREETING}\n".encode(), "text/plain")

    def do_POST(self) -> None:
        left = int(self.headers["Content-Length"])
        while left:
            left -= len(self.rfile.read(min(left, 1 << 16)))
        self._send(f"{GREETING}\n".encode(), "text/plain")

    def _file(self, path: Path) -> None:
        if path.is_file():
            self._send(path.read_bytes(), "application/octet-stream")
        else:
            self.send_error(404)

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _events(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for number in range(3):
            self.wfile.write(f"data: {number} {GREETING}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True

    def _websocket(self) -> None:
        accept = hashlib.sha1(self.headers["Sec-WebSocket-Key"].encode() + WEBSOCKET).digest()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(accept).decode())
        self.end_headers()
        self.wfile.write(bytes([0x81, len(GREETING)]) + GREETING.encode())
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


def npm_document(host: str) -> dict[str, object]:
    version = {
        "name": "greeting",
        "version": "1.0.0",
        "description": GREETING,
        "dist": {"tarball": f"https://{host}/x"},
    }
    return {
        "name": "greeting",
        "description": GREETING,
        "dist-tags": {"latest": "1.0.0"},
        "versions": {"1.0.0": version},
    }


class Web(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 200

    def __init__(self, where: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        super().__init__(where, handler)


def listener(address: str, port: int) -> socket.socket:
    return socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)


def ssh_server(own: socket.socket) -> None:
    """Greets a client of SSH by asking it to leave."""
    from claudebox.servers.allowlist.greeting import _ssh

    while True:
        try:
            client, _ = own.accept()
        except OSError:
            return
        with client:
            client.sendall(_ssh(GREETING))
            client.shutdown(socket.SHUT_WR)
            while client.recv(1000):
                pass


@contextmanager
def serving(internet: Internet, directory: Path) -> Iterator[None]:
    certificate = make_certificate(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    handler = type("Here", (Handler,), {"repository": make_repository(directory)})
    with internet.internet.entered():
        servers = [Web((address, port), handler) for port in (80, 443) for address in ADDRESSES]
        ssh = [listener(address, 22) for address in ADDRESSES]
        http2 = subprocess.Popen(["node", "-e", HTTP2, str(certificate)], stdout=subprocess.PIPE, text=True)
    for server in servers[len(ADDRESSES) :]:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    for each in ssh:
        threading.Thread(target=ssh_server, args=(each,), daemon=True).start()
    try:
        assert http2.stdout is not None
        assert http2.stdout.readline() == "listening\n"
        yield
    finally:
        for each in ssh:
            each.close()
        http2.kill()
        http2.communicate(timeout=PATIENCE)
        for server in servers:
            server.shutdown()
            server.server_close()


def make_repository(directory: Path) -> Path:
    """A repository as a plain web server can offer it."""
    bare = directory / "repository.git"

    def git(*words: str) -> str:
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        done = subprocess.run(["git", *identity, *words], check=True, capture_output=True, text=True, env=environ)
        return done.stdout.strip()

    git("init", "--quiet", "--bare", str(bare))
    tree = git("-C", str(bare), "hash-object", "-w", "-t", "tree", "/dev/null")
    commit = git("-C", str(bare), "commit-tree", "-m", GREETING, tree)
    git("-C", str(bare), "update-ref", f"refs/heads/{GREETING.replace(' ', '-')}", commit)
    git("-C", str(bare), "update-server-info")
    return bare
