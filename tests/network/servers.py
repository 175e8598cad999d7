"""The servers of the test network: each answers with the name of the machine it is on, and remembers who spoke to it.

One thread serves every machine: a socket belongs to the network namespace that it was made in, wherever it is used.
"""

from __future__ import annotations

import selectors
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address

PORT = 8080  # TCP and UDP
NEXT_PORT = 8081  # TCP
DNS_PORT = 53
A, TXT, AAAA, OPT = 1, 16, 28, 41
NAME_ERROR = 3
TRUNCATED = 0x0200

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class Heard:
    """Something that arrived, whether or not the answer found its way back."""

    machine: str
    protocol: str  # tcp, udp or dns
    words: str


class Servers:
    """Everything that listens, and the thread that answers."""

    def __init__(self, groups: tuple[str, ...]) -> None:
        """With the multicast and broadcast addresses that are in use."""
        self.groups = groups
        self.heard: list[Heard] = []
        self.selector = selectors.DefaultSelector()
        self.stop_reader, self.stop_writer = socket.socketpair()
        self.selector.register(self.stop_reader, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def start(self) -> None:
        self.thread.start()

    def close(self) -> None:
        self.stop_writer.close()
        if self.thread.ident is not None:
            self.thread.join()
        for key in list(self.selector.get_map().values()):
            self._drop(key.fileobj)  # type: ignore[arg-type]
        self.selector.close()

    def _serve(self) -> None:
        while True:
            for key, _ in self.selector.select():
                if key.data is None:
                    return
                try:
                    key.data(key.fileobj)
                except OSError:
                    pass  # a client that went away is no concern of the next one

    def _watch(self, listener: socket.socket, on_readable: Callable[[socket.socket], None]) -> None:
        listener.setblocking(False)
        self.selector.register(listener, selectors.EVENT_READ, on_readable)

    def _drop(self, connection: socket.socket) -> None:
        self.selector.unregister(connection)
        connection.close()

    def listen(self, machine: str, *, in_groups: bool) -> None:
        """Answer on all addresses of the namespace that the caller is in, and on eth0 what is sent to the groups."""
        for port in (PORT, NEXT_PORT):
            self._watch(_tcp_listener(port), lambda listener: self._accept(listener, partial(self._greet, machine)))
        for family in (socket.AF_INET, socket.AF_INET6):
            listener = _udp_listener(family, PORT)
            if in_groups:
                _join(listener, self.groups)
            self._watch(listener, lambda listener: self._datagram(machine, listener, in_groups))

    def resolve(self, machine: str, zone: Zone) -> None:
        """Answer DNS queries on all addresses of the namespace that the caller is in."""
        talk = partial(self._stream_query, machine, zone)
        self._watch(_tcp_listener(DNS_PORT), lambda listener: self._accept(listener, talk))
        for family in (socket.AF_INET, socket.AF_INET6):
            listener = _udp_listener(family, DNS_PORT)
            self._watch(listener, lambda listener: self._query(machine, zone, listener))

    def _accept(self, listener: socket.socket, talk: Callable[[socket.socket], bool]) -> None:
        """Let `talk` answer each time that something arrives, until it says that this was all."""

        def on_readable(connection: socket.socket) -> None:
            goes_on = False
            try:
                goes_on = talk(connection)
            finally:
                if not goes_on:
                    self._drop(connection)

        connection, _ = listener.accept()
        self._watch(connection, on_readable)

    def _greet(self, machine: str, connection: socket.socket) -> bool:
        self._note(machine, "tcp", connection.recv(1000))
        connection.sendall(machine.encode())
        return False

    def _datagram(self, machine: str, listener: socket.socket, in_groups: bool) -> None:
        words, ancillary, _, sender = listener.recvmsg(2000, 200)
        if str(_destination(ancillary)) in self.groups and not in_groups:
            return  # a broadcast reaches the sender's own machine too
        self._note(machine, "udp", words)
        listener.sendmsg([machine.encode()], _answering_as(ancillary), 0, sender)

    def _stream_query(self, machine: str, zone: Zone, connection: socket.socket) -> bool:
        """The C library asks for IPv4 and for IPv6 in one go, and a segment is large enough for both."""
        arrived = rest = connection.recv(2000)
        while rest:
            end = 2 + int.from_bytes(rest[:2], "big")
            message, rest = rest[2:end], rest[end:]
            self._note(machine, "dns", Question(message).name.encode())
            answer = zone.answer(message, room=65535)
            connection.sendall(struct.pack(">H", len(answer)) + answer)
        return bool(arrived)

    def _query(self, machine: str, zone: Zone, listener: socket.socket) -> None:
        message, ancillary, _, sender = listener.recvmsg(2000, 200)
        question = Question(message)
        self._note(machine, "dns", question.name.encode())
        listener.sendmsg([zone.answer(message, question.room)], _answering_as(ancillary), 0, sender)

    def _note(self, machine: str, protocol: str, words: bytes) -> None:
        self.heard.append(Heard(machine, protocol, words.decode(errors="replace")))


def _tcp_listener(port: int) -> socket.socket:
    return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=200)


def _udp_listener(family: socket.AddressFamily, port: int) -> socket.socket:
    """A socket that tells to which of its addresses a datagram came: the answer has to come from that one."""
    listener = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET:
        listener.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
    else:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        listener.setsockopt(socket.IPPROTO_IPV6, _IPV6_FREEBIND, 1)  # a whole range may be local, not only an address
    listener.bind(("", port))
    return listener


# Linux has them, Python's socket module has not.
_IP_PKTINFO = 8
_IPV6_FREEBIND = 78
Ancillary = list[tuple[int, int, bytes]]


def _destination(ancillary: Ancillary) -> Address:
    data = ancillary[0][2]
    return ip_address(data[8:12] if len(data) == 12 else data[:16])


def _answering_as(ancillary: Ancillary) -> Ancillary:
    """What makes an answer come from the address that was spoken to, or from the interface's if that was a group."""
    level, kind, data = ancillary[0]
    if len(data) == 12:
        _, local, _ = struct.unpack("=I4s4s", data)
        return [(level, kind, struct.pack("=I4s4s", 0, local, bytes(4)))]
    destination = _destination(ancillary)
    if destination.is_multicast:
        return []
    # The interface only where the address means nothing without it.
    return [(level, kind, data if destination.is_link_local else data[:16] + bytes(4))]


def _join(listener: socket.socket, groups: tuple[str, ...]) -> None:
    index = socket.if_nametoindex("eth0")
    for group in map(ip_address, groups):
        if not group.is_multicast or (group.version == 4) != (listener.family == socket.AF_INET):
            continue
        if group.version == 4:
            request = struct.pack("=4s4sI", group.packed, bytes(4), index)
            listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
        else:
            request = struct.pack("=16sI", group.packed, index)
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)


class Question:
    """The first question of a DNS message."""

    def __init__(self, message: bytes) -> None:
        labels, at = [], 12
        while message[at]:
            labels.append(message[at + 1 : at + 1 + message[at]].decode())
            at += message[at] + 1
        self.name = ".".join(labels).lower()
        self.kind = int.from_bytes(message[at + 1 : at + 3], "big")
        self.section = message[12 : at + 5]
        self.room = _room(message, at + 5)


def _room(message: bytes, after_question: int) -> int:
    """How large an answer over UDP may be: as EDNS says, otherwise as in 1987."""
    record = message[after_question:]
    if message[10:12] != b"\0\1" or len(record) < 5 or record[:3] != struct.pack(">BH", 0, OPT):
        return 512
    return max(512, int.from_bytes(record[3:5], "big"))


@dataclass
class Zone:
    """The names that a resolver knows."""

    addresses: dict[str, tuple[str, ...]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def answer(self, message: bytes, room: int) -> bytes:
        question = Question(message)
        records = self._records(question)
        known = question.name in self.addresses or question.name in self.texts
        flags = 0x8180 | (0 if known else NAME_ERROR)
        whole = _message(message[:2], flags, question.section, records)
        return whole if len(whole) <= room else _message(message[:2], flags | TRUNCATED, question.section, [])

    def _records(self, question: Question) -> list[bytes]:
        if question.kind == TXT and question.name in self.texts:
            text = self.texts[question.name].encode()
            pieces = [text[at : at + 255] for at in range(0, len(text), 255)]
            return [_record(TXT, b"".join(bytes([len(piece)]) + piece for piece in pieces))]
        addresses = [ip_address(address) for address in self.addresses.get(question.name, ())]
        wanted = {A: 4, AAAA: 6}.get(question.kind)
        return [_record(question.kind, address.packed) for address in addresses if address.version == wanted]


def _record(kind: int, data: bytes) -> bytes:
    name_of_the_question = 0xC00C
    return struct.pack(">HHHIH", name_of_the_question, kind, 1, 60, len(data)) + data


def _message(identifier: bytes, flags: int, question: bytes, records: list[bytes]) -> bytes:
    return identifier + struct.pack(">HHHHH", flags, 1, len(records), 0, 0) + question + b"".join(records)
