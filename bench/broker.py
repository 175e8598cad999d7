#!/usr/bin/env python3
"""What the broker costs (`--auth broker`), as ratios against no broker in one run.

usage: bench/broker.py [--rounds N] [--starts N] [--transfers N] [--streams N]

Starts a real box with a broker, whose upstream is a stand-in over TLS on this machine, and talks to the broker's port
as Claude would; and to the stand-in directly, in turn, so that a busy moment of the machine hits both alike. Client and
stand-in are in Python, too, in processes of their own. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from rounds import Times, in_rounds, ratio, rows

CHECKOUT = Path(__file__).resolve().parent.parent
KEY = "sk-ant-api03-stand-in-0123456789"
WARM_UP = 3
PIECE_SIZE = 16 * 1024
ONE_STREAM = 1024  # pieces
OF_MANY = 64  # pieces for each of many streams
DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "some words of it"}}
EVENT = f"event: content_block_delta\ndata: {json.dumps(DELTA)}\n\n".encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"

Connect = Callable[[], socket.socket]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=300, help="requests whose first byte is awaited, each way")
    options.add_argument("--starts", type=int, default=40, help="how often each box is started")
    options.add_argument("--transfers", type=int, default=7, help="how often a transfer is repeated, each way")
    options.add_argument("--streams", type=int, default=50, help="how many at a time are many")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="claudebox-bench-", dir="/var/tmp") as home, stand_in(Path(home)) as port:
        boxes = Boxes(Path(home), port)
        print(start_table(measure_starts(boxes, chosen.starts)), end="\n\n")
        with boxes.with_broker() as (process, address, token):
            ways = {"direct": directly(boxes.certificate, port), "broker": through_broker(address)}
            at_rest = broker_memory(process)
            first = measure_first_bytes(ways, token, chosen.rounds)
            single = measure_throughput(ways, token, 1, ONE_STREAM, chosen.transfers)
            many = measure_throughput(ways, token, chosen.streams, OF_MANY, chosen.transfers)
            print(traffic_table(first, single, many, chosen.streams), end="\n\n")
            print(
                f"memory of the broker, resident: {at_rest:.0f} MB at rest, {broker_memory(process):.0f} MB afterwards"
            )


# The stand-in for the API.


@contextmanager
def stand_in(home: Path) -> Iterator[int]:
    """The port that it listens on. Its certificate is its own authority."""
    certificate = home / "certificate.pem"
    words = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    files = ("-keyout", str(home / "key.pem"), "-out", str(certificate))
    subprocess.run(["openssl", *words, *names, *files], check=True, capture_output=True)
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    process = multiprocessing.get_context("fork").Process(target=serve, args=(listener, home), daemon=True)
    process.start()
    port = int(listener.getsockname()[1])
    listener.close()
    try:
        yield port
    finally:
        process.kill()


def serve(listener: socket.socket, home: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(home / "certificate.pem", home / "key.pem")
    while True:
        connection = listener.accept()[0]
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=answer, args=(context, connection), daemon=True).start()


def answer(context: ssl.SSLContext, plain: socket.socket) -> None:
    """As many pieces as the request says."""
    piece = EVENT * (PIECE_SIZE // len(EVENT))
    chunk = b"%x\r\n%b\r\n" % (len(piece), piece)
    with suppress(OSError), context.wrap_socket(plain, server_side=True) as connection:
        file = connection.makefile("rb")
        while file.readline():
            length = 0
            while (line := file.readline().strip().lower()) != b"":
                if line.startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            pieces = json.loads(file.read(length))["pieces"]
            connection.sendall(HEAD + b"%x\r\n%b\r\n" % (len(EVENT), EVENT))
            for _ in range(pieces):
                connection.sendall(chunk)
            connection.sendall(END)


# The boxes.


class Boxes:
    """With a home, a project, and a Claude that is never started."""

    def __init__(self, home: Path, port: int) -> None:
        self.certificate = home / "certificate.pem"
        self.home = home
        self.project = home / "project"
        self.project.mkdir()
        claude = home / "claude"
        claude.write_text("#!/bin/sh\n")
        claude.chmod(0o755)
        self.words = [str(CHECKOUT / "claudebox"), "--yes"]
        self.environ = {
            "CLAUDEBOX_CLAUDE": str(claude),
            "HOME": str(home),
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": f"https://localhost:{port}",
            "NODE_EXTRA_CA_CERTS": str(self.certificate),
        }

    def start(self, auth: str, *command: str, network: str = "none") -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self.words, "--auth", auth, "--network", network, "--run", *command],
            cwd=self.project,
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    @contextmanager
    def with_broker(self) -> Iterator[tuple[subprocess.Popen[bytes], str, str]]:
        """The box, which has this host's network, the broker's address, and the token that it demands."""
        script = 'echo "$ANTHROPIC_BASE_URL $ANTHROPIC_AUTH_TOKEN"; read end'
        with self.start("broker", "sh", "-c", script, network="full") as process:
            try:
                assert process.stdout
                address, token = process.stdout.readline().decode().split()
                time.sleep(1)  # at rest
                yield process, address, token
            finally:
                process.kill()


def measure_starts(boxes: Boxes, rounds: int) -> Times:
    def start(auth: str) -> float:
        begin = time.perf_counter()
        with boxes.start(auth, "true") as process:
            process.communicate()
        if process.returncode != 0:
            sys.exit(f"error: --auth {auth}: exit status {process.returncode}")
        return time.perf_counter() - begin

    contenders = {f"`--auth {auth}`": partial(start, auth) for auth in ("none", "broker")}
    return in_rounds(contenders | {"a fork of an interpreter": fork_time}, rounds, WARM_UP)


def fork_time() -> float:
    """Of an interpreter that has about as much loaded, until the child has ended."""
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return time.perf_counter() - start


def broker_memory(box: subprocess.Popen[bytes]) -> float:
    """In MB: of the child of the box's parent that is not bwrap."""
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            lines = Path(f"/proc/{name}/status").read_text().splitlines()
            status = dict(line.split(":", 1) for line in lines if ":" in line)
            if int(status["PPid"]) == box.pid and status["Name"].strip() != "bwrap":
                return int(status["VmRSS"].split()[0]) * 1024 / 1e6
    sys.exit("error: the broker is not there")


# The traffic.


def directly(certificate: Path, port: int) -> Connect:
    context = ssl.create_default_context(cafile=str(certificate))

    def connect() -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(plain, server_hostname="localhost")

    return connect


def through_broker(address: str) -> Connect:
    port = int(address.rpartition(":")[2])

    def connect() -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    return connect


def exchange(connection: socket.socket, token: str, pieces: int) -> tuple[float, int]:
    """How long the first byte took, and how many bytes came in all."""
    body = json.dumps({"pieces": pieces}).encode()
    head = f"POST /v1/messages?beta=true HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    start = time.perf_counter()
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    data = connection.recv(1 << 16)
    first = time.perf_counter() - start
    if not data.startswith(b"HTTP/1.1 200"):
        sys.exit(f"error: {data[:200]!r}")
    total, tail = len(data), data[-len(END) :]
    while tail != END:
        data = connection.recv(1 << 16)
        if not data:
            sys.exit("error: the answer has no end")
        total += len(data)
        tail = (tail + data)[-len(END) :]
    return first, total


def measure_first_bytes(ways: dict[str, Connect], token: str, rounds: int) -> Times:
    """Of connections that are kept, as Claude does."""
    with ExitStack() as stack:
        connections = {name: stack.enter_context(connect()) for name, connect in ways.items()}
        first_byte = {name: partial(first_of, connection, token) for name, connection in connections.items()}
        return in_rounds(first_byte, rounds, WARM_UP)


def first_of(connection: socket.socket, token: str) -> float:
    return exchange(connection, token, 0)[0]


def measure_throughput(ways: dict[str, Connect], token: str, streams: int, pieces: int, rounds: int) -> Times:
    """Bytes in a second, all streams together."""
    rates = {name: partial(transfer, connect, token, streams, pieces) for name, connect in ways.items()}
    return in_rounds(rates, rounds, warm_up=1)


def transfer(connect: Connect, token: str, streams: int, pieces: int) -> float:
    totals: list[int] = []

    def receive() -> None:
        with connect() as connection:
            totals.append(exchange(connection, token, pieces)[1])

    threads = [threading.Thread(target=receive) for _ in range(streams)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = time.perf_counter() - start
    if len(totals) != streams:
        sys.exit(f"error: {streams - len(totals)} of {streams} streams failed")
    return sum(totals) / taken


def start_table(times: Times) -> str:
    head = ["| start of `true` | median, ms | ratio |", "|---|---:|---:|"]
    return "\n".join([*head, *rows(times, "`--auth none`", 1000)])


def traffic_table(first: Times, single: Times, many: Times, streams: int) -> str:
    table = ["| | direct | through the broker | ratio |", "|---|---:|---:|---:|"]
    for what, found, factor, digits in (
        ("first byte, ms", first, 1e3, 2),
        ("1 stream, MB/s", single, 1e-6, 0),
        (f"{streams} streams together, MB/s", many, 1e-6, 0),
    ):
        direct, broker = (factor * statistics.median(found[name]) for name in ("direct", "broker"))
        table.append(
            f"| {what} | {direct:.{digits}f} | {broker:.{digits}f} | {ratio(found, 'broker', 'direct'):.2f} × |"
        )
    return "\n".join(table)


if __name__ == "__main__":
    main()
