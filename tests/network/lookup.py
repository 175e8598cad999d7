"""What do names stand for? Runs in a box: python3 lookup.py '[["name", "internet.example"], …]' [RESOLVER]

`name` asks as every program does. `udp`, `edns` and `tcp` ask the given resolver, or the first of /etc/resolv.conf, for
a text or for IPv4 addresses: in an answer as of 1987, in a larger one, and over a connection. Prints a JSON list, in
the same order.
"""

import json
import socket
import struct
import sys
from concurrent.futures import ThreadPoolExecutor

PATIENCE = 20  # seconds; names are looked up as long as the C library likes to
A, TXT = 1, 16
TRUNCATED = 0x0200
EDNS = struct.pack(">BHHIH", 0, 41, 1232, 0, 0)


def addresses(name: str) -> str:
    found = {str(entry[4][0]) for entry in socket.getaddrinfo(name, None)}
    return " ".join(sorted(found, key=lambda address: (":" in address, address)))


def query(name: str, *, edns: bool) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    kind = TXT if name.startswith("long.") else A
    extra = EDNS if edns else b""
    return (
        struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, len(extra) and 1) + labels + struct.pack(">BHH", 0, kind, 1) + extra
    )


def resolver() -> str:
    if len(sys.argv) > 2:
        return sys.argv[2]
    with open("/etc/resolv.conf") as file:
        return next(line.split()[1] for line in file if line.startswith("nameserver"))


def over_udp(message: bytes) -> bytes:
    family, kind, _, _, address = socket.getaddrinfo(resolver(), 53, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as client:
        client.settimeout(PATIENCE)
        client.connect(address)
        client.send(message)
        return client.recv(65535)


def over_tcp(message: bytes) -> bytes:
    with socket.create_connection((resolver(), 53), PATIENCE) as client:
        client.sendall(struct.pack(">H", len(message)) + message)
        with client.makefile("rb") as stream:
            return stream.read(int.from_bytes(stream.read(2), "big"))


def ask(how: str, name: str) -> str:
    if how == "name":
        return addresses(name)
    message = query(name, edns=how == "edns")
    answer = over_tcp(message) if how == "tcp" else over_udp(message)
    if not answer:
        return "no answer"
    flags, _, records = struct.unpack_from(">HHH", answer, 2)
    return "truncated" if flags & TRUNCATED else f"{records} records, {len(answer)} bytes"


def attempt(question: list[str]) -> str:
    try:
        return ask(*question)
    except TimeoutError:
        return "silence"
    except OSError as error:
        return f"error: {error.strerror}"


questions = json.loads(sys.argv[1])
with ThreadPoolExecutor(len(questions)) as pool:
    print(json.dumps(list(pool.map(attempt, questions))))
