#!/usr/bin/env python3
"""What the box's own terminal costs: `bench/terminal.py [ROUNDS]`.

The same programs run on a terminal directly and in a box, in turn: one echoes each key, one writes a lot. Ratios of
one run.
"""

from __future__ import annotations

import os
import pty
import statistics
import sys
import tempfile
import time
from pathlib import Path

CLAUDEBOX = str(Path(__file__).resolve().parent.parent / "claudebox")
ROUNDS = 5
KEYS = 300
MEGABYTES = 20
ECHOES = """
import os, tty
tty.setraw(0)
os.write(1, b"ready")
while (key := os.read(0, 1)) != b"q":
    os.write(1, key)
"""
# Plain text, and a screen full of colours as programs draw it.
WRITES = """
import os, tty
tty.setraw(1)
os.write(1, b"ready")
os.read(0, 1)
data = {line} * (10**6 // len({line}))
for _ in range({megabytes}):
    written = 0
    while written < len(data):
        written += os.write(1, data[written:])
os.write(1, b"done")
"""
LINES = {
    "plain text": b"The quick brown fox jumps over the lazy dog, 0123456789 times.\r\n",
    "coloured text": b"\x1b[12;34H\x1b[38;5;42mThe quick\x1b[0m brown \x1b[1mfox\x1b[22m jumps\x1b[K\r\n",
}


def main() -> None:
    rounds = int(sys.argv[1]) if sys.argv[1:] else ROUNDS
    with tempfile.TemporaryDirectory(prefix="claudebox-terminal-", dir="/var/tmp") as project:
        os.chdir(project)
        compare("key and its echo, microseconds", "keys", ECHOES, round_trip, rounds)
        for name, line in LINES.items():
            source = WRITES.format(line=repr(line), megabytes=MEGABYTES)
            compare(f"{MEGABYTES} MB of {name}, milliseconds", name.split()[0], source, flood, rounds)


def compare(what: str, name: str, source: str, measure, rounds: int) -> None:  # type: ignore[no-untyped-def]
    Path(name).write_text(source)
    direct, boxed = [], []
    for _ in range(rounds):
        direct.append(measure(["python3", name]))
        boxed.append(measure([CLAUDEBOX, "--yes", "--run", "python3", name]))
    one, other = statistics.median(direct), statistics.median(boxed)
    print(f"{what}: directly {one:.0f}, in a box {other:.0f}, {other / one:.2f} times")


def start(command: list[str]) -> tuple[int, int]:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(command[0], command)  # noqa: S606
    seen = b""
    while b"ready" not in seen.split(b"Runs")[-1]:
        seen += os.read(terminal, 65536)
    return pid, terminal


def round_trip(command: list[str]) -> float:
    pid, terminal = start(command)
    times = []
    for _ in range(KEYS):
        begin = time.perf_counter()
        os.write(terminal, b"x")
        os.read(terminal, 16)
        times.append(time.perf_counter() - begin)
        time.sleep(0.002)  # as a person does, who never finds the processes awake
    os.write(terminal, b"q")
    finish(pid, terminal)
    return statistics.median(times) * 1e6


def flood(command: list[str]) -> float:
    pid, terminal = start(command)
    os.write(terminal, b"g")
    begin = time.perf_counter()
    tail = b""
    while b"done" not in tail:
        tail = tail[-4:] + os.read(terminal, 65536)
    taken = time.perf_counter() - begin
    finish(pid, terminal)
    return taken * 1e3


def finish(pid: int, terminal: int) -> None:
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass
    os.waitpid(pid, 0)
    os.close(terminal)


if __name__ == "__main__":
    main()
