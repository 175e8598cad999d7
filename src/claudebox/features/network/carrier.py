"""Carries what pasta brings into the box's network on to a server there, at 127.0.0.1 or at ::1.

pasta keeps the kind of address: what came to 127.0.0.1 of this host goes to 127.0.0.1 of the box. Many development
servers listen at ::1 alone. So pasta leads each published port to a listener of this process, which is in the box's
network, and which no program of the box can see or signal; all that the box can do with it is to reach its own ports.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time

from claudebox.model import Port
from claudebox.process.descriptors import close_all_but
from claudebox.process.lifetime import die_with_parent
from claudebox.settings.types import LAST_PORT

LOOPBACKS = ("127.0.0.1", "::1")  # in this order: most servers are at the first one
CONNECT_SECONDS = 5.0
AT_ONCE = 1 << 16  # bytes
MOST_CONNECTIONS = 500
PAUSE = 0.1  # seconds
RESET = struct.pack("ii", 1, 0)  # SO_LINGER


def listening_ports(published: tuple[Port, ...], taken: set[int]) -> dict[int, int]:
    """For each published port of the host, the port of the box at which the carrier listens: none that is asked for."""
    free = (port for port in range(LAST_PORT, 0, -1) if port not in taken | {one.box for one in published})
    return {port.host: number for port, number in zip(published, free, strict=False)}


def start_carrier(published: tuple[Port, ...], listening: dict[int, int]) -> None:
    """Start the process, in the network namespace of this one."""
    listeners = [(_listen(listening[port.host]), port.box) for port in published]
    if os.fork() == 0:
        try:
            os.setsid()
            die_with_parent()
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            close_all_but([listener.fileno() for listener, _ in listeners])
            _serve(listeners)
        finally:
            os._exit(1)
    for listener, _ in listeners:
        listener.close()


def _listen(port: int) -> socket.socket:
    return socket.create_server((LOOPBACKS[0], port), backlog=128)


def _serve(listeners: list[tuple[socket.socket, int]]) -> None:
    room = threading.Semaphore(MOST_CONNECTIONS)
    threads = [threading.Thread(target=_accept, args=(listener, port, room)) for listener, port in listeners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _accept(listener: socket.socket, port: int, room: threading.Semaphore) -> None:
    while True:
        room.acquire()  # more wait in the kernel
        try:
            client = listener.accept()[0]
            threading.Thread(target=_carry, args=(client, port, room), daemon=True).start()
        except (OSError, RuntimeError):  # no more files or threads for now: the box may have used them up
            room.release()
            time.sleep(PAUSE)


def _carry(client: socket.socket, port: int, room: threading.Semaphore) -> None:
    try:
        server = _connect(port)
        if server is None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            return
        with server:
            back = threading.Thread(target=_copy, args=(server, client), daemon=True)
            back.start()
            _copy(client, server)
            back.join()
    finally:
        client.close()
        room.release()


def _connect(port: int) -> socket.socket | None:
    for address in LOOPBACKS:
        try:
            server = socket.create_connection((address, port), CONNECT_SECONDS)
        except OSError:
            continue
        server.settimeout(None)
        return server
    return None


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until one of them ends. The other direction may go on."""
    try:
        while data := source.recv(AT_ONCE):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended already
