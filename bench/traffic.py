#!/usr/bin/env python3
"""Both ends of the traffic that bench/network.py measures.

usage: traffic.py serve
       traffic.py probe ADDRESS SECONDS [stay]

The probe prints what it measured as JSON, 0 for a transfer that stalled, and stays until its standard input ends if
told so.
"""

from __future__ import annotations

import json
import socket
import statistics
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PORT = 8080
CHUNK = 1 << 18
CONNECTIONS = 200
STREAMS = 50
ROUND_TRIPS = 2000
WARM_UP = 0.2  # seconds in which TCP finds its window
PATIENCE = 5  # seconds without a byte, or for the rest of an upload: then it counts as stalled
# The first byte of a connection: what it is for.
ECHO, DOWNLOAD, UPLOAD = b"e", b"d", b"u"


def serve() -> None:
    listener = socket.create_server(("", PORT), backlog=128)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection:
        try:
            {ECHO: echo, DOWNLOAD: send, UPLOAD: count}[connection.recv(1)](connection)
        except (ConnectionError, KeyError):
            pass  # the probe has what it wanted


def echo(connection: socket.socket) -> None:
    while byte := connection.recv(1):
        connection.sendall(byte)


def send(connection: socket.socket) -> None:
    chunk = bytes(CHUNK)
    while True:
        connection.sendall(chunk)


def count(connection: socket.socket) -> None:
    total, buffer = 0, bytearray(CHUNK)
    while received := connection.recv_into(buffer):
        total += received
    connection.sendall(total.to_bytes(8, "big"))


def probe(address: str, seconds: float) -> dict[str, float]:
    return {
        "download": unless_stalled(download, address, seconds),
        "50 downloads": unless_stalled(partial(many, download), address, seconds),
        "upload": unless_stalled(upload, address, seconds),
        "50 uploads": unless_stalled(partial(many, upload), address, seconds),
        "connect": connect_time(address),
        "first byte": first_byte(address),
        "round trip": round_trip(address),
    }


def unless_stalled(transfer: Callable[[str, float], float], address: str, seconds: float) -> float:
    try:
        return transfer(address, seconds)
    except TimeoutError:
        return 0.0


def connect(address: str, purpose: bytes) -> socket.socket:
    connection = socket.create_connection((address, PORT), timeout=PATIENCE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(purpose)
    return connection


def download(address: str, seconds: float) -> float:
    """Bits per second."""
    buffer = bytearray(CHUNK)
    with connect(address, DOWNLOAD) as connection:
        receive_for(connection, buffer, WARM_UP)
        start = time.perf_counter()
        total = receive_for(connection, buffer, seconds)
        return 8 * total / (time.perf_counter() - start)


def many(transfer: Callable[[str, float], float], address: str, seconds: float) -> float:
    """The same at the same time, all of it together; 0 if one of them stalls."""
    with ThreadPoolExecutor(STREAMS) as pool:
        return sum(pool.map(transfer, [address] * STREAMS, [seconds] * STREAMS))


def receive_for(connection: socket.socket, buffer: bytearray, seconds: float) -> int:
    total, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        total += connection.recv_into(buffer)
    return total


def upload(address: str, seconds: float) -> float:
    """Bits per second of what has arrived, and not of what was put into buffers on the way."""
    chunk = bytes(CHUNK)
    with connect(address, UPLOAD) as connection:
        start = time.perf_counter()
        while time.perf_counter() < start + WARM_UP + seconds:
            connection.sendall(chunk)
        connection.shutdown(socket.SHUT_WR)
        total = int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "big")
        return 8 * total / (time.perf_counter() - start)


def connect_time(address: str) -> float:
    """Seconds. Between two measurements the server's end of the first is waited for."""
    times = []
    for _ in range(CONNECTIONS):
        start = time.perf_counter()
        with socket.create_connection((address, PORT), timeout=PATIENCE) as connection:
            times.append(time.perf_counter() - start)
            connection.sendall(ECHO + b"x")
            connection.recv(1)
    return statistics.median(times)


def first_byte(address: str) -> float:
    """Seconds from opening a connection to the first byte of an answer."""
    times = []
    for _ in range(CONNECTIONS):
        start = time.perf_counter()
        with socket.create_connection((address, PORT), timeout=PATIENCE) as connection:
            connection.sendall(ECHO + b"x")
            connection.recv(1)
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def round_trip(address: str) -> float:
    """Seconds for one byte to the server and back."""
    times = []
    with connect(address, ECHO) as connection:
        for _ in range(ROUND_TRIPS):
            start = time.perf_counter()
            connection.sendall(b"x")
            connection.recv(1)
            times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    print(json.dumps(probe(sys.argv[2], float(sys.argv[3]))), flush=True)
    if sys.argv[4:] == ["stay"]:
        sys.stdin.read()
