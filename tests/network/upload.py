"""In the box: upload so many bytes so many times, and print the longest pause, in seconds.

usage: upload.py ADDRESS PORT SIZE TIMES
"""

import socket
import sys
import time

CHUNK = bytes(1 << 18)
PATIENCE = 5  # seconds; whoever waits so long need not wait for the end


def main() -> None:
    address, port, size, times = sys.argv[1], *map(int, sys.argv[2:])
    print(max(longest_pause(address, port, size) for _ in range(times)))


def longest_pause(address: str, port: int, size: int) -> float:
    pauses = []
    with socket.create_connection((address, port), timeout=PATIENCE) as connection:
        try:
            for _ in range(size // len(CHUNK)):
                start = time.monotonic()
                connection.sendall(CHUNK)
                pauses.append(time.monotonic() - start)
            start = time.monotonic()
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
            pauses.append(time.monotonic() - start)
        except TimeoutError:
            return PATIENCE
    return max(pauses)


if __name__ == "__main__":
    main()
