"""Receives the queries of the box, over UDP and over TCP, and sends the answers."""

from __future__ import annotations

import socket

from claudebox.features.names.server.connection import Connection
from claudebox.features.names.server.dns import answer
from claudebox.features.names.server.invented import Invented
from claudebox.features.names.server.notes import Notes

AT_ONCE = 64  # queries, before it is another's turn
LARGEST_QUERY = 4096
ANCILLARY = 256
LENGTH = 2  # bytes before each message of a stream


def answer_datagrams(own: socket.socket, invented: Invented, notes: Notes) -> None:
    """Answer from the address that was asked, whichever that was: a program may know a resolver by heart."""
    for _ in range(AT_ONCE):
        try:
            query, extra, _, sender = own.recvmsg(LARGEST_QUERY, ANCILLARY)
        except OSError:
            return
        reply = answer(query, invented, notes.refused_lookup)
        if reply is not None:
            try:
                own.sendmsg([reply], [_answering_as(*each) for each in extra], 0, sender)
            except OSError:
                continue


def answer_stream(connection: Connection, invented: Invented, notes: Notes) -> bool:
    """Answer the queries that have arrived as a whole. False if one of them deserves no answer."""
    while len(connection.first) >= LENGTH:
        end = LENGTH + int.from_bytes(connection.first[:LENGTH], "big")
        if len(connection.first) < end:
            break
        query, connection.first = connection.first[LENGTH:end], connection.first[end:]
        reply = answer(query, invented, notes.refused_lookup)
        if reply is None:
            return False
        connection.client.send(len(reply).to_bytes(LENGTH, "big") + reply)
    return True


def _answering_as(level: int, kind: int, data: bytes) -> tuple[int, int, bytes]:
    """in_pktinfo is (interface, address to answer from, address asked); in6_pktinfo is (address asked, interface)."""
    return level, kind, bytes(4) + data[8:12] + bytes(4) if level == socket.IPPROTO_IP else data[:16] + bytes(4)
