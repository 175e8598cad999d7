"""Many connections at once, and difficult ones. Runs in a box: python3 crowd.py HOST PORT. Prints what came of it."""

import hashlib
import json
import random
import resource
import socket
import ssl
import struct
import sys
import threading

HOST, PORT = sys.argv[1], int(sys.argv[2])
MANY = 3000
LARGE = 1 << 26
PATIENCE = 120


def greet() -> str:
    with socket.create_connection((HOST, PORT), PATIENCE) as client:
        client.settimeout(PATIENCE)
        client.sendall(b"hello")
        return client.recv(100).decode()


def many() -> str:
    """Open as many as the box may, say nothing on them, and see whether one more is served when they are gone."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    opened = []
    try:
        for _ in range(min(MANY, most - 50)):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex((socket.gethostbyname(HOST), PORT))
            opened.append(client)
    finally:
        for client in opened:
            client.close()
    return greet()


def one_after_another() -> str:
    return " ".join(sorted({greet() for _ in range(300)}))


def at_the_same_time() -> str:
    said = []
    threads = [threading.Thread(target=lambda: said.append(greet())) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return " ".join(sorted(set(said)))


def byte_by_byte_to_nowhere() -> str:
    """A client that dribbles is refused in the end, and holds up nobody meanwhile."""
    slow = socket.create_connection(("198.51.100.10", PORT), PATIENCE)
    slow.sendall(b"G")
    return greet()


def junk() -> str:
    """Bytes without sense, ends without a word and resets: to the list and past it; and to the name server."""
    chance = random.Random(7)
    for number in range(600):
        with socket.socket() as client:
            client.settimeout(PATIENCE)
            client.connect(chance.choice([(HOST, PORT), (HOST, 443), (HOST, 1), ("198.51.100.10", 80)]))
            try:
                first = chance.choice([b"", b"\x16\3\1", b"\x16\3\1\2\0\1\0\1\xfc", b"SSH-", b"GET ", b"\0\x1d"])
                client.sendall(first + chance.randbytes(chance.choice([0, 1, 5, 700, 9000])))
                if number % 2:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        labels = (b"\x3f" + b"a" * 63) * 1000 + b"\0"
        client.sendto(struct.pack(">6H", 1, 0x0100, 1, 0, 0, 1) + labels + b"\0\1\0\1", ("9.9.9.9", 53))
        for _ in range(2000):
            client.sendto(chance.randbytes(chance.randrange(100)), ("9.9.9.9", 53))
    return greet()


def listener_itself() -> str:
    """The listener to which all is led, found in the kernel's table, and asked directly."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    ports = {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and row[1].startswith("0100007F")}
    said = set()
    for port in ports:
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
            client.sendall(b"GET / HTTP/1.0\r\nHost: refused.example\r\n\r\n")
            said.add(client.recv(100).split(b"\r\n")[0].decode())
    return " ".join(sorted(said))


def half_closed() -> str:
    """Ends its own direction first, and still gets the answer."""
    with socket.create_connection((HOST, 80), PATIENCE) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        said = b"".join(iter(lambda: client.recv(1000), b""))
    return said.rpartition(b"\r\n\r\n")[2].decode().strip()


def large() -> str:
    """64 MB down and up again, unharmed."""
    context = ssl._create_unverified_context()
    plain = socket.create_connection((HOST, 443), PATIENCE)
    with context.wrap_socket(plain, server_hostname=HOST) as client:
        client.sendall(b"GET /large HTTP/1.0\r\n\r\n")
        digest, size, body = hashlib.sha256(), 0, b""
        while b"\r\n\r\n" not in body:
            body += client.recv(1 << 16)
        body = body.partition(b"\r\n\r\n")[2]
        while size < LARGE:
            digest.update(body)
            size += len(body)
            body = client.recv(1 << 16)
    with socket.create_connection((HOST, 80), PATIENCE) as client:
        client.sendall(b"POST / HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % size)
        client.sendall(bytes(size))
        answer = b"".join(iter(lambda: client.recv(1000), b"")).rpartition(b"\r\n\r\n")[2].decode().strip()
    return f"{size} {digest.hexdigest() == hashlib.sha256(bytes(size)).hexdigest()} {answer}"


def thousands_of_queries() -> str:
    """Names that are not in the list, and names below a star: more of those than are remembered."""
    for number in range(6000):
        try:
            socket.getaddrinfo(f"x{number}.wild.example" if number % 2 else f"x{number}.refused.example", 80)
        except OSError:
            pass
    return greet()


ALL = (
    *(one_after_another, at_the_same_time, many, byte_by_byte_to_nowhere, half_closed, large, thousands_of_queries),
    *(junk, listener_itself, one_after_another),
)
print(json.dumps({each.__name__: each() for each in ALL}))
