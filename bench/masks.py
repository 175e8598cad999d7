#!/usr/bin/env python3
"""How long the agent sees the real `.env` when it is saved on the host while a box runs.

usage: bench/masks.py [SAVES] [--busy] [--review]

A reader in the box opens the file again and again, while it is saved on the host in each way. Printed is how many of
the saves a reader saw that sleeps 10 ms between two looks, and one that never sleeps.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

CLAUDEBOX = str(Path(__file__).resolve().parent.parent / "claudebox")
PAUSES = (0.02, 0.05)  # seconds between two saves, at random: no rhythm of the reader may be met or missed
BUSY = [sys.executable, "-c", "while True: pass"]
READER = """
import os, sys, time
name, pause, seen, gaps, reads, start = sys.argv[1], float(sys.argv[2]), set(), [], 0, 0
open("ready", "w").close()
while not os.path.getsize("stop"):  # in a layer, what was missing stays so
    for _ in range(1 if pause else 200):
        before = time.perf_counter()
        try:
            with open(name, "rb") as file: content = file.read()
        except OSError: content = b""
        reads += 1
        if b"cAnArY" in content:
            seen.add(content.partition(b"cAnArY")[2][:4])
            start = start or before
        elif start:
            gaps.append(int(1e6 * (before - start)))
            start = 0
    time.sleep(pause)
gaps = sorted(gaps) or [0]
print(len(seen), reads, gaps[len(gaps) // 2], gaps[-1])
"""


def rename(path: Path, content: str) -> None:
    new = path.with_name("new")
    new.write_text(content)
    new.replace(path)


def write_in_place(path: Path, content: str) -> None:
    path.write_text(content)


def sed(path: Path, content: str) -> None:
    subprocess.run(["sed", "-i", f"1s/.*/{content.splitlines()[0]}/", path], check=True)


def vim(path: Path, content: str) -> None:
    substitute = f"1s/.*/{content.splitlines()[0]}/"
    commands = ("-c", "set backupcopy=no", "-c", substitute, "-c", "wq")
    words = ["vim", "-N", "-es", "-u", "NONE", "-i", "NONE", *commands, str(path)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)


def new_file(path: Path, content: str) -> None:
    """A name that was not there when the box started."""
    path.with_name(".env.local").unlink(missing_ok=True)
    path.with_name(".env.local").write_text(content)


WAYS: tuple[Callable[[Path, str], None], ...] = (vim, sed, rename, write_in_place, new_file)


def measure(way: Callable[[Path, str], None], saves: int, pause: float, options: list[str]) -> str:
    with tempfile.TemporaryDirectory(dir=Path.home()) as directory:
        project = Path(directory)
        env = project / ".env"
        env.write_text("API_TOKEN=atTheStart1\nPORT=3000\n")
        (project / "stop").touch()
        name = ".env.local" if way == new_file else ".env"
        script = ["python3", "-c", READER, name, str(pause)]
        words = [CLAUDEBOX, "--yes", "--quiet", *options, "--run", *script]
        with subprocess.Popen(words, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as box:
            shown = project if "--review" not in options else next_layer()
            while not (shown / "ready").exists():
                time.sleep(0.05)
                shown = project if "--review" not in options else next_layer()
            time.sleep(1)
            for number in range(saves):
                way(env, f"API_TOKEN=cAnArY{number:04d}x\nPORT=3000\n")
                time.sleep(random.uniform(*PAUSES))  # noqa: S311
            (project / "stop").write_text("now\n")
            seen, reads, median, longest = (box.communicate()[0].split() + ["?"] * 4)[:4]
    gap = "" if pause else f", for {median} µs (median) to {longest} µs"
    return f"{seen} of {saves} saves seen in {reads} reads{gap}"


def next_layer() -> Path:
    found = sorted(Path.home().glob(".claudebox/instances/*/layers/*/upper"), key=lambda path: path.stat().st_ctime)
    return found[-1] if found else Path("/nowhere")


def main(words: list[str]) -> None:
    saves = next((int(word) for word in words if word.isdigit()), 200)
    options = ["--review", "on", "--land", "all"] if "--review" in words else []
    others = [subprocess.Popen(BUSY) for _ in range(os.cpu_count() or 1)] if "--busy" in words else []
    try:
        for way in WAYS:
            for pause in (0.01, 0.0):
                told = f"{way.__name__:<15} {'sleeps 10 ms' if pause else 'never sleeps'}: "
                print(told + measure(way, saves, pause, options), flush=True)
    finally:
        for other in others:
            other.kill()


main(sys.argv[1:])
