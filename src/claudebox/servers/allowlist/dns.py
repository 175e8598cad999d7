"""The box's name server: it knows the names in the list, and passes nothing on.

A name in the list has one address, which is made up. It has no other records: IPv6 addresses, keys for ECH (HTTPS) and
servers (SRV) would lead past that address. Every other name does not exist; REFUSED would be more honest, but some C
libraries then try again for seconds. Each answer fits into a datagram, so nobody has to ask over TCP.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

from claudebox.host.tree import sha256
from claudebox.record import Record
from claudebox.servers.allowlist import LONGEST_LABEL, LONGEST_NAME, HostList, is_label

A, AAAA = 1, 28
INTERNET = 1
NO_ERROR, NAME_ERROR = 0, 3
HEADER = struct.Struct(">6H")
QUESTION_END = struct.Struct(">HH")
RECORD = struct.Struct(">HHIH")
IS_ANSWER, OPERATION, IS_AVAILABLE, COPIED = 0x8000, 0x7800, 0x80, 0x110  # copied: recursion wanted, checking disabled
LONGEST_WRITTEN = 255  # bytes of a name in a message, with the lengths of its labels
SAME_NAME = b"\xc0\x0c"  # a pointer to the question
SECONDS = 600  # that an address may be remembered: it stays for as long as the box
LARGEST_QUERY, ANCILLARY = 4096, 256

# Addresses that stand for names: 198.18.0.0/15, without the box's own and its name server's.
FIRST, SIZE = 0xC6120100, (1 << 17) - 256
MOST_GUESTS = 4096  # names below a `*.` row: the box decides how many there are


class Question(Record):
    raw: bytes  # as it has to be repeated in the answer, letter by letter
    name: str  # "" if it is no name of a host
    kind: int


class NameServer:
    """Knows which made-up address stands for which name, for as long as the box lives.

    The address depends on the name alone, as far as possible: programs remember it.
    """

    def __init__(self, hosts: HostList, refuse: Callable[[str, int], None]) -> None:
        self.hosts = hosts
        self.refuse = refuse  # is told about names that are not in the list, and what was asked about them
        self.by_address: dict[int, str] = {}
        self.by_name: dict[str, int] = {}
        self.guests = 0
        self.lock = threading.Lock()

    def serve(self, own: socket.socket) -> None:
        """Answer for as long as this process lives, from the address that was asked: some programs have the address of
        a resolver built in."""
        while True:
            with suppress(OSError):
                query, extra, _, sender = own.recvmsg(LARGEST_QUERY, ANCILLARY)
                reply = self.answer(query)
                if reply is not None:
                    own.sendmsg([reply], [_answering_as(*each) for each in extra], 0, sender)

    def address_of(self, name: str) -> bytes | None:
        """The address that stands for a name, as four bytes. None if the name is not in the list, or if the box has
        asked for more names below `*.` rows than can be remembered."""
        if not self.hosts.knows(name):
            return None
        if name not in self.by_name:
            if name not in self.hosts.rows:
                if self.guests >= MOST_GUESTS:
                    return None
                self.guests += 1
            place = int(sha256(name.encode())[:12], 16) % SIZE
            while place in self.by_address:
                place = (place + 1) % SIZE
            self.by_address[place], self.by_name[name] = name, place
        return (FIRST + self.by_name[name]).to_bytes(4, "big")

    def name_of(self, address: bytes) -> str:
        """The name for which an address stands, or "" if it stands for none."""
        return self.by_address.get(int.from_bytes(address, "big") - FIRST, "") if len(address) == 4 else ""

    def answer(self, query: bytes) -> bytes | None:
        """The answer to a query; None for what is no plain query with one question."""
        question = read_question(query)
        if question is None:
            return None
        with self.lock:
            address = self.address_of(question.name) if question.name else None
        if address is None and question.name:
            self.refuse(question.name, question.kind)
        record = b""
        if address is not None and question.kind == A:
            record = SAME_NAME + RECORD.pack(A, INTERNET, SECONDS, len(address)) + address
        number, flags = struct.unpack_from(">HH", query)
        code = NAME_ERROR if address is None else NO_ERROR
        head = (number, IS_ANSWER | IS_AVAILABLE | flags & COPIED | code, 1, bool(record), 0, 0)
        return HEADER.pack(*head) + question.raw + record


def read_question(query: bytes) -> Question | None:
    if len(query) < HEADER.size:
        return None
    _, flags, questions, answers, authorities, _ = HEADER.unpack_from(query)
    if flags & (IS_ANSWER | OPERATION) or questions != 1 or answers or authorities:
        return None
    labels, place = _labels(query, HEADER.size)
    end = place + QUESTION_END.size
    if not place or len(query) < end:
        return None
    kind, family = QUESTION_END.unpack_from(query, place)
    return Question(query[HEADER.size : end], _name(labels), kind) if family == INTERNET else None


def _labels(query: bytes, place: int) -> tuple[list[bytes], int]:
    """The labels of the name, and the place behind it; 0 if it is none. A question has nothing to point to, so pointers
    are refused. No name is longer than DNS allows: an answer repeats it, and would not fit into a message any more."""
    labels: list[bytes] = []
    end = min(len(query), place + LONGEST_WRITTEN)
    while place < end:
        length = query[place]
        place += 1
        if length == 0:
            return labels, place
        if length > LONGEST_LABEL:
            break
        labels.append(query[place : place + length])
        place += length
    return [], 0


def _name(labels: list[bytes]) -> str:
    text = b".".join(labels).decode("ascii", "replace").lower()
    parts = text.split(".")
    # A dot inside of a label would be another name than the one that is compared.
    is_name = len(parts) == len(labels) and len(text) <= LONGEST_NAME and all(map(is_label, parts))
    return text if is_name else ""


def _answering_as(level: int, kind: int, data: bytes) -> tuple[int, int, bytes]:
    """in_pktinfo is (interface, address to answer from, address asked); in6_pktinfo is (address asked, interface)."""
    return level, kind, bytes(4) + data[8:12] + bytes(4) if level == socket.IPPROTO_IP else data[:16] + bytes(4)
