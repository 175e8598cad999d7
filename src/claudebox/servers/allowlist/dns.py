"""The box's name server: it knows the names in the list, and passes nothing on.

A name in the list has one address, which is made up. It has no other records: IPv6 addresses, keys for ECH (HTTPS) and
servers (SRV) would lead past that address. Every other name does not exist; REFUSED would be more honest, but some C
libraries then try again for seconds.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from claudebox.host.tree import sha256
from claudebox.record import Record
from claudebox.servers.allowlist import LONGEST_LABEL, LONGEST_NAME, HostList, is_label

A, PTR, AAAA, OPT = 1, 12, 28, 41
INTERNET = 1
NO_ERROR, FORMAT_ERROR, SERVER_FAILURE, NAME_ERROR, NOT_IMPLEMENTED, REFUSED = range(6)
HEADER = struct.Struct(">6H")
QUESTION_END = struct.Struct(">HH")
RECORD = struct.Struct(">HHIH")
IS_ANSWER, IS_AVAILABLE, COPIED = 0x8000, 0x0080, 0x0110  # flags; copied: recursion desired, checking disabled
LONGEST_WRITTEN = 255  # bytes of a name in a message, with the lengths of its labels
SAME_NAME = b"\xc0\x0c"  # a pointer to the question
SECONDS = 600  # that an address may be remembered: it stays for as long as the box
BLOCKED = 15  # RFC 8914: some programs show the text
WHY = b"not in the list of names that this box may reach"
EDNS_SIZE = 1232
REVERSE = ".in-addr.arpa"
AT_ONCE = 64  # queries, before it is another's turn
LARGEST_QUERY, ANCILLARY = 4096, 256
LENGTH = 2  # bytes before each message of a stream

# Addresses that stand for names: 198.18.0.0/15, without the box's own and its name server's.
FIRST, SIZE = 0xC6120100, (1 << 17) - 256
MOST_GUESTS = 4096  # names below a `*.` row: the box decides how many there are


class Unanswerable(Exception):
    """A query that gets an error code; None means no answer at all."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


class Question(Record):
    """What a query asks for."""

    raw: bytes  # as it has to be repeated in the answer, letter by letter
    name: str  # "" if it is no name of a host
    kind: int
    has_edns: bool


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

    def address_of(self, name: str) -> bytes | None:
        """The address that stands for a name, as four bytes. None if the name is not in the list.

        Raises Unanswerable if the box has asked for more names below `*.` rows than can be remembered.
        """
        if not self.hosts.knows(name):
            return None
        if name not in self.by_name:
            if name not in self.hosts.rows:
                if self.guests >= MOST_GUESTS:
                    raise Unanswerable(SERVER_FAILURE)
                self.guests += 1
            place = int(sha256(name.encode())[:12], 16) % SIZE
            while place in self.by_address:
                place = (place + 1) % SIZE
            self.by_address[place], self.by_name[name] = name, place
        return (FIRST + self.by_name[name]).to_bytes(4, "big")

    def name_of(self, address: bytes) -> str:
        """The name for which an address stands, or "" if it stands for none."""
        return self.by_address.get(int.from_bytes(address, "big") - FIRST, "") if len(address) == 4 else ""

    def answer_datagrams(self, own: socket.socket) -> None:
        """Answer from the address that was asked: some programs have the address of a resolver built in."""
        for _ in range(AT_ONCE):
            try:
                query, extra, _, sender = own.recvmsg(LARGEST_QUERY, ANCILLARY)
            except OSError:
                return
            reply = self.answer(query)
            if reply is not None:
                try:
                    own.sendmsg([reply], [_answering_as(*each) for each in extra], 0, sender)
                except OSError:
                    continue

    def answer_stream(self, client: socket.socket, said: bytes) -> bytes | None:
        """Answer the queries that are complete. Returns what is left; None if the connection has to be closed."""
        while len(said) >= LENGTH and len(said) >= (end := LENGTH + int.from_bytes(said[:LENGTH], "big")):
            reply = self.answer(said[LENGTH:end])
            if reply is None:
                return None
            client.send(len(reply).to_bytes(LENGTH, "big") + reply)
            said = said[end:]
        return said

    def answer(self, query: bytes) -> bytes | None:
        """The answer to a query; None for a query that is not answered."""
        question = None
        try:
            question = read_question(query)
            return self._answer(query, question)
        except Unanswerable as unanswerable:
            return None if unanswerable.code is None else _reply(query, unanswerable.code, question)

    def _answer(self, query: bytes, question: Question) -> bytes:
        if question.kind == PTR:
            # Some programs ask for the name of an address, and write it into their logs.
            name = self.name_of(_reversed_address(question.name))
            labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
            return _reply(query, NO_ERROR, question, data=labels) if name else _reply(query, NAME_ERROR, question)
        if not question.name:
            return _reply(query, NAME_ERROR, question)
        address = self.address_of(question.name)
        if address is None:
            self.refuse(question.name, question.kind)
            return _reply(query, NAME_ERROR, question, why=WHY)
        return _reply(query, NO_ERROR, question, data=address if question.kind == A else b"")


def read_question(query: bytes) -> Question:
    """The one question of a query. Raises Unanswerable if it is no plain query with one question."""
    if len(query) < HEADER.size:
        raise Unanswerable(None)
    _, flags, questions, answers, authorities, additional = HEADER.unpack_from(query)
    if flags & IS_ANSWER:
        raise Unanswerable(None)
    if flags >> 11 & 15:
        raise Unanswerable(NOT_IMPLEMENTED)
    if questions != 1 or answers or authorities:
        raise Unanswerable(FORMAT_ERROR)
    labels, place = _labels(query, HEADER.size)
    end = place + QUESTION_END.size
    if len(query) < end:
        raise Unanswerable(FORMAT_ERROR)
    kind, family = QUESTION_END.unpack_from(query, place)
    if family != INTERNET:
        raise Unanswerable(REFUSED)
    has_edns = bool(additional) and query[end : end + 3] == b"\0" + OPT.to_bytes(2, "big")
    return Question(query[HEADER.size : end], _name(labels), kind, has_edns)


def _labels(query: bytes, place: int) -> tuple[list[bytes], int]:
    """The labels of the name, and the place behind it. A question has nothing to point to, so pointers are refused.
    No name is longer than DNS allows: an answer repeats it, and would not fit into a message any more."""
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
    raise Unanswerable(FORMAT_ERROR)


def _name(labels: list[bytes]) -> str:
    text = b".".join(labels).decode("ascii", "replace").lower()
    parts = text.split(".")
    # A dot inside of a label would be another name than the one that is compared.
    is_name = len(parts) == len(labels) and len(text) <= LONGEST_NAME and all(map(is_label, parts))
    return text if is_name else ""


def _reversed_address(name: str) -> bytes:
    """The IPv4 address that is asked for by this name; b"" if it is none."""
    octets = name.removesuffix(REVERSE).split(".")[::-1] if name.endswith(REVERSE) else []
    return bytes(map(int, octets)) if all(part.isdigit() and int(part) < 256 for part in octets) else b""


def _reply(query: bytes, code: int, question: Question | None = None, *, data: bytes = b"", why: bytes = b"") -> bytes:
    number, flags = struct.unpack_from(">HH", query)
    raw = record = extra = b""
    if question is not None:
        raw = question.raw
        if data:
            record = SAME_NAME + RECORD.pack(question.kind, INTERNET, SECONDS, len(data)) + data
        if question.has_edns:
            reason = struct.pack(">HHH", BLOCKED, len(why) + 2, BLOCKED) + why if why else b""
            extra = b"\0" + RECORD.pack(OPT, EDNS_SIZE, 0, len(reason)) + reason
    head = (number, IS_ANSWER | IS_AVAILABLE | flags & COPIED | code, bool(raw), bool(record), 0, bool(extra))
    return HEADER.pack(*head) + raw + record + extra


def _answering_as(level: int, kind: int, data: bytes) -> tuple[int, int, bytes]:
    """in_pktinfo is (interface, address to answer from, address asked); in6_pktinfo is (address asked, interface)."""
    return level, kind, bytes(4) + data[8:12] + bytes(4) if level == socket.IPPROTO_IP else data[:16] + bytes(4)
