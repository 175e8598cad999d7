"""Who answers? Runs in a box: python3 probe.py WORDS '[["tcp", "192.0.2.1", 80], …]'

Prints a JSON list: for each target the answer, or else what went wrong. All targets are asked at the same time.
"""

import json
import socket
import sys
from concurrent.futures import ThreadPoolExecutor

PATIENCE = 20  # seconds; what is rejected is rejected at once


def socket_address(address: str, port: int) -> tuple[socket.AddressFamily, tuple[str | int, ...]]:
    """With the interface that leads outside, where an IPv6 address means nothing without one."""
    if ":" not in address:
        return socket.AF_INET, (address, port)
    scope = outward_interface() if address.startswith(("fe80:", "ff02:")) else 0
    return socket.AF_INET6, (address, port, 0, scope)


def outward_interface() -> int:
    names = [name for _, name in socket.if_nameindex()]
    others = [name for name in names if name != "lo"]
    return socket.if_nametoindex("eth0" if "eth0" in names else (others or names)[0])


def ask(protocol: str, address: str, port: int, words: str) -> str:
    family, where = socket_address(address, port)
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    message = f"{words} {protocol} {address}".encode()
    with socket.socket(family, kind) as client:
        client.settimeout(PATIENCE)
        if protocol == "group":  # many may answer, from addresses of their own
            client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            client.sendto(message, where)
        else:
            client.connect(where)
            client.send(message)
        return client.recv(100).decode() or "closed"


def attempt(target: list[str | int]) -> str:
    protocol, address, port = target
    try:
        return ask(str(protocol), str(address), int(port), sys.argv[1])
    except TimeoutError:
        return "silence"
    except OSError as error:
        return f"error: {error.strerror}"


targets = json.loads(sys.argv[2])
with ThreadPoolExecutor(len(targets)) as pool:
    print(json.dumps(list(pool.map(attempt, targets))))
