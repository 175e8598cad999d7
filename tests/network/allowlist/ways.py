"""Ways round a list of names. Runs in a box, or on the host: python3 ways.py TOKEN NAME …

Prints a JSON object: for each way "reached", or what went wrong. What is looked up or said has the token in it.
"""

import json
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

ALLOWED, REFUSED = "allowed.example", "refused.example"
INTERNET, INTERNET6, ROUTER = "198.51.100.10", "2001:db8:1::10", "192.168.50.1"
PORT = 8080  # greets, and remembers what it was told
PATIENCE = 30  # seconds; what is refused is refused at once
HANDSHAKE = 0x16
TXT, MX, ANY = 16, 15, 255

token = sys.argv[1]
Way = Callable[[], bool]
ways: dict[str, Way] = {}


def way(function: Way) -> Way:
    ways[function.__name__] = function
    return function


def say(address: str, port: int = PORT, family: int = socket.AF_INET) -> bool:
    """Whether a server answers to what it is told."""
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(PATIENCE)
        client.connect((address, port))
        client.sendall(token.encode())
        return client.recv(100).decode() == "internet"


@way
def address_after_the_name_was_looked_up() -> bool:
    socket.getaddrinfo(ALLOWED, 443)
    return say(INTERNET)


@way
def datagram() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(PATIENCE)
        client.connect((INTERNET, PORT))
        client.send(token.encode())
        return client.recv(100).decode() == "internet"


@way
def private_name() -> bool:
    with socket.create_connection(("rebind.example", PORT), PATIENCE) as client:
        client.sendall(token.encode())
        return client.recv(100).decode() == "neighbour"


# TLS


def hello(server_name: str | None) -> bytes:
    """A ClientHello as OpenSSL makes it."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=server_name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def in_records(message: bytes, size: int) -> bytes:
    body = message[5:]
    parts = [body[place : place + size] for place in range(0, len(body), size)]
    return b"".join(message[:3] + struct.pack(">H", len(part)) + part for part in parts)


def shake_hands(*pieces: bytes) -> bool:
    """Whether a server goes on with the handshake."""
    with socket.create_connection((ALLOWED, 443), PATIENCE) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            client.sendall(piece)
            time.sleep(0.01)
        return client.recv(1) == bytes([HANDSHAKE])


@way
def server_name_in_many_packets() -> bool:
    data = hello(REFUSED)
    return shake_hands(*(data[place : place + 20] for place in range(0, len(data), 20)))


@way
def server_name_after_the_first_byte() -> bool:
    data = hello(REFUSED)
    return shake_hands(data[:1], data[1:])


# DNS


def query(name: str, kind: int = 1) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + labels + b"\0" + struct.pack(">HH", kind, 1)


def ask(resolver: str, name: str, kind: int = 1) -> bool:
    family = socket.AF_INET6 if ":" in resolver else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.settimeout(PATIENCE)
        client.sendto(query(name, kind), (resolver, 53))
        return bool(client.recv(2000))


def ask_over_tcp(resolver: str, name: str) -> bool:
    with socket.create_connection((resolver, 53), PATIENCE) as client:
        message = query(name)
        client.sendall(struct.pack(">H", len(message)) + message)
        return bool(client.recv(2000))


def look_up(name: str) -> bool:
    try:
        socket.getaddrinfo(name, 443)
    except OSError:
        pass
    return False


# Ways that are one step. What is called a label asks for a name with the token in it, which somebody may hear.
ways |= {
    "address": lambda: say(INTERNET),
    "address_of_ipv6": lambda: say(INTERNET6, family=socket.AF_INET6),
    "address_as_ipv6": lambda: say(f"::ffff:{INTERNET}", family=socket.AF_INET6),
    "address_as_a_number": lambda: say(str(int.from_bytes(socket.inet_aton(INTERNET), "big"))),
    "other_port": lambda: say(ALLOWED, 8081),
    "name": lambda: say(REFUSED),
    "other_server_name": lambda: shake_hands(hello(REFUSED)),
    "no_server_name": lambda: shake_hands(hello(None)),
    "server_name_in_many_records": lambda: shake_hands(in_records(hello(REFUSED), 3)),
    "label": lambda: look_up(f"label.{token}.refused.example"),
    "label_below_an_allowed_name": lambda: look_up(f"label.{token}.allowed.example"),
    "label_below_a_star": lambda: look_up(f"label.{token}.wild.example"),
    "label_to_a_known_resolver": lambda: ask(INTERNET, f"label.{token}.example"),
    "label_to_a_known_resolver_of_ipv6": lambda: ask(INTERNET6, f"label.{token}.example"),
    "label_to_the_resolver_of_the_host": lambda: ask(ROUTER, f"label.{token}.example"),
    "label_over_tcp": lambda: ask_over_tcp(INTERNET, f"label.{token}.example"),
    "label_for_a_text": lambda: ask(INTERNET, f"label.{token}.allowed.example", TXT),
    "label_for_mail": lambda: ask(INTERNET, f"label.{token}.allowed.example", MX),
    "label_for_anything": lambda: ask(INTERNET, f"label.{token}.wild.example", ANY),
}


def attempt(name: str) -> str:
    try:
        return "reached" if ways[name]() else "not reached"
    except OSError as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    chosen = sys.argv[2:] or list(ways)
    with ThreadPoolExecutor(len(chosen)) as pool:
        print(json.dumps(dict(zip(chosen, pool.map(attempt, chosen), strict=True))))
