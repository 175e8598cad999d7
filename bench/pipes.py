#!/usr/bin/env python3
"""What it costs that a pipe of the caller is carried to one of the box: `bench/pipes.py [ROUNDS] [OTHER_CLAUDEBOX]`.

The same program has pipes as standard streams, directly and in a box, and in one of another version if its path is
given. It writes a lot, reads a lot, or answers line by line. Starts are not counted. Ratios to directly, of rounds.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from rounds import in_rounds, rows

CLAUDEBOX = str(Path(__file__).resolve().parent.parent / "claudebox")
ROUNDS = 9
MEGABYTES = 1000
LINES = 300
PIECE = 1 << 16
PROGRAM = f"""
import os, sys
os.write(1, b"ready\\n")
if sys.argv[1] == "writes":
    os.read(0, 1)
    for _ in range({MEGABYTES} * 10**6 // {PIECE}):
        os.write(1, bytes({PIECE}))
elif sys.argv[1] == "reads":
    while os.read(0, {PIECE}):
        pass
    os.write(1, b"done\\n")
else:
    while line := os.read(0, {PIECE}):
        os.write(1, line)
"""


def main() -> None:
    rounds = int(sys.argv[1]) if sys.argv[1:] else ROUNDS
    boxes = {"in a box": CLAUDEBOX, **({"in another box": sys.argv[2]} if sys.argv[2:] else {})}
    starts = {"directly": (), **{name: (path, "--yes", "--quiet", "--run") for name, path in boxes.items()}}
    with tempfile.TemporaryDirectory(prefix="claudebox-pipes-", dir="/var/tmp") as project:
        Path(project, "program").write_text(PROGRAM)
        for what, work in (("writes", count_output), ("reads", send_input), ("answers", ask)):
            contenders = {name: partial(measure, words, project, what, work) for name, words in starts.items()}
            unit = "a line and its answer, microseconds" if what == "answers" else f"{MEGABYTES} MB, milliseconds"
            print(f"\n| {what}: {unit} | median | ratio |\n|---|---:|---:|")
            print("\n".join(rows(in_rounds(contenders, rounds), "directly", 1e6 if what == "answers" else 1e3, 0)))


def measure(words: tuple[str, ...], project: str, what: str, work) -> float:  # type: ignore[no-untyped-def]
    command = [*words, "python3", "program", what]
    with subprocess.Popen(command, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        while b"ready" not in process.stdout.read(PIECE):
            pass
        taken: float = work(process)
        process.stdin.close()  # type: ignore[union-attr]
    return taken


def count_output(process) -> float:  # type: ignore[no-untyped-def]
    begin = time.perf_counter()
    process.stdin.write(b".")
    while process.stdout.read(PIECE):
        pass
    return time.perf_counter() - begin


def send_input(process) -> float:  # type: ignore[no-untyped-def]
    begin = time.perf_counter()
    piece = bytes(PIECE)
    for _ in range(MEGABYTES * 10**6 // PIECE):
        process.stdin.write(piece)
    process.stdin.close()
    process.stdout.read(PIECE)
    return time.perf_counter() - begin


def ask(process) -> float:  # type: ignore[no-untyped-def]
    times = []
    for _ in range(LINES):
        begin = time.perf_counter()
        process.stdin.write(b"a line\n")
        process.stdout.read(PIECE)
        times.append(time.perf_counter() - begin)
        time.sleep(0.001)  # so that the processes are never found awake
    return statistics.median(times)


if __name__ == "__main__":
    main()
