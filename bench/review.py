"""What a layer costs: a start with it against one without, work in it, and landing against `cp`.

    bench/review.py [--files 10000] [--rounds 10] [--landing]

Everything is measured in turn, in one run, in a directory below the home. Read the numbers as ratios.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rounds import in_rounds, rows

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
CLAUDEBOX = str(ROOT / "claudebox")
WORK = {
    "git status, 20 times": "for i in $(seq 20); do git status --short >/dev/null; done",
    "read everything (grep -r)": "command grep -rc needle . >/dev/null; true",
    "make 2000 files": "mkdir out; for i in $(seq 2000); do echo $i >out/$i; done; rm -r out",
    "change 500 files (sed -i)": "sed -i s/x/y/ dir-1/* dir-2/* dir-3/* dir-4/* dir-5/*",
}


def timed(deed: Callable[[], object]) -> float:
    start = time.monotonic()
    deed()
    return time.monotonic() - start


class Bench:
    """A project in a home of its own."""

    def __init__(self, home: Path, files: int) -> None:
        self.home = home
        self.project = home / "project"
        self.environ = {**os.environ, "HOME": str(home)}
        for number in range(files):
            path = self.project / f"dir-{number // 100}" / f"file-{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"x {number}\n" * 20)
        for name in (".github/workflows/ci.yml", ".vscode/settings.json", ".claude/settings.json"):
            path = self.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}\n")
        for words in ("init -q", "add -A", "-c user.name=b -c user.email=b@b commit -qm first"):
            self.run("git", *words.split())

    def run(self, *command: str) -> None:
        done = subprocess.run(command, cwd=self.project, env=self.environ, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{command}: {done.stderr}")

    def box(self, *words: str) -> None:
        self.run(CLAUDEBOX, "--yes", *words)

    def compare(self, title: str, ways: dict[str, Callable[[], object]], rounds: int) -> None:
        times = in_rounds({name: partial(timed, deed) for name, deed in ways.items()}, rounds)
        print("\n".join([f"| {title} | median, ms | ratio |", "|---|---:|---:|", *rows(times, next(iter(ways)), 1000)]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--place", default=os.path.expanduser("~"))
    parser.add_argument("--landing", action="store_true", help="only what landing costs")
    said = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=said.place) as directory:
        bench = Bench(Path(directory), said.files)
        if said.landing:
            measure_landing(bench, said.files, said.rounds)
            return
        off = ("--review", "off")
        bench.compare(
            "start",
            {
                "direct": lambda: bench.box(*off, "--run", "true"),
                "three layers of what is guarded": lambda: bench.box("--run", "true"),
                "review": lambda: bench.box("--review", "--run", "true"),
            },
            said.rounds,
        )
        for title, script in WORK.items():
            inner = f"{script}; git checkout -q ."
            bench.compare(
                title,
                {
                    "direct": partial(bench.box, *off, "--run", "sh", "-c", inner),
                    "review": partial(bench.box, "--review", "--run", "sh", "-c", inner),
                },
                max(1, said.rounds // 3),
            )
            bench.run("sh", "-c", f"{CLAUDEBOX} --review discard --yes 2>/dev/null; true")
        measure_landing(bench, said.files, max(1, said.rounds // 3))


LANDED = {
    "new": "mkdir new; cd new; for i in $(seq {files}); do d=$((i / 100)); [ -d $d ] || mkdir $d; echo $i >$d/$i; done",
    "changed": "for f in dir-*/*; do echo changed >>$f; done",
}


def measure_landing(bench: Bench, files: int, rounds: int) -> None:
    """Compare the processor time of `cp -a`, of the list, and of a whole landing, which also empties the layer."""
    for title, script in LANDED.items():
        ways: dict[str, list[float]] = {"cp -a": [], "rm -r": [], "list": [], "list, land and forget the layer": []}
        for _ in range(rounds):
            bench.box("--review", "--run", "sh", "-c", script.format(files=files))
            (upper,) = bench.home.glob(".claudebox/instances/*/layers/*/upper")
            copy = str(bench.home / "copy")
            commands = (
                ("cp", "-a", str(upper), copy),
                ("rm", "-r", copy),
                (CLAUDEBOX, "--review", "list"),
                (CLAUDEBOX, "--review", "land", "--land", "all"),
            )
            for times, command in zip(ways.values(), commands, strict=True):
                times.append(processor_time(partial(bench.run, *command)))
            bench.run("git", "checkout", "-q", ".")
            bench.run("git", "clean", "-qfd")
        head = [f"| {files} {title} files | processor time, s | ratio |", "|---|---:|---:|"]
        print("\n".join([*head, *rows(ways, "cp -a", 1, 2)]))


def processor_time(deed: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    deed()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
