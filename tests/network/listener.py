"""Servers in a box, until its input ends: python3 listener.py 127.0.0.1 3000 ::1 3000 …

Each answers with the port that was reached, if it was spoken to. For each port that is written to the input, the output
tells who answers there, for somebody in the box.
"""

import socket
import sys
import threading


def serve(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        with connection:
            words = connection.recv(100)
            connection.sendall(f"box {listener.getsockname()[1]}".encode() if words else b"")


def ask(port: int) -> str:
    try:
        with socket.create_connection(("localhost", port), 5) as connection:
            connection.sendall(b"who is there?")
            return connection.recv(100).decode() or "nobody"
    except OSError:
        return "nobody"


for address, number in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, int(number)), family=family)
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
print("listening", flush=True)
for line in sys.stdin:
    print(ask(int(line)), flush=True)
