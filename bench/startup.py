#!/usr/bin/env python3
"""What a start costs, as ratios against others in one run.

usage: bench/startup.py [--rounds N] [--srt PATH]

Each round starts `true` once in each sandbox, one after the other, and compares within the round: a machine that gets
faster or slower meanwhile changes no ratio. Prints medians, of times and of the rounds' ratios, as a Markdown table.
Run it with nothing beside it. Peers that are not installed are left out, and said to be.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from rounds import Times, in_rounds, ratio

CHECKOUT = Path(__file__).resolve().parent.parent
WARM_UP = 3
DATA: dict[int, bytes] = {}  # descriptors that the bare bwrap reads from


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--srt", default=shutil.which("srt"), help="the srt command of @anthropic-ai/sandbox-runtime")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="claudebox-bench-", dir="/var/tmp") as home:
        os.environ["HOME"] = home
        for title, make in (("an empty directory", Path.mkdir), ("a usual project", make_usual_project)):
            project = Path(home) / title
            make(project)
            times = measure(contenders(project, chosen.srt), project, chosen.rounds)
            print(f"In {title}:\n\n{table(times)}\n")


def make_usual_project(project: Path) -> None:
    """A repository with what costs a start something: files to look through, to mask and to guard."""
    for directory in ("src", ".github/workflows", ".claude", ".vscode"):
        (project / directory).mkdir(parents=True)
    for number in range(300):
        (project / "src" / f"{number}.py").write_text("pass\n")
    for name, text in {
        ".env": "API_KEY=sk-0123456789abcdefghijklmnop\n",
        ".gitignore": ".env\n",
        ".claude/settings.json": "{}\n",
        ".vscode/settings.json": "{}\n",
        ".github/workflows/ci.yml": "on: push\n",
        "package.json": "{}\n",
        "Makefile": "all:\n",
    }.items():
        (project / name).write_text(text)
    identity = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "begin")):
        subprocess.run(["git", *identity, *words], cwd=project, check=True)


def contenders(project: Path, srt: str | None) -> dict[str, list[str]]:
    claudebox = str(CHECKOUT / "claudebox")
    commands = {
        "bare interpreter (`python3 -I -c pass`)": [interpreter(), "-I", "-c", "pass"],
        "the same bwrap": same_bwrap(claudebox, project),
        "claudebox": [claudebox, "--yes", "--run", "true"],
    }
    if firejail := shutil.which("firejail"):
        commands["firejail"] = [firejail, "--quiet", "true"]
    if srt:
        commands["srt"] = [srt, "true"]
    for peer in ("firejail", "srt"):
        if peer not in commands:
            print(f"{peer} is not installed: left out", file=sys.stderr)
    return commands


def interpreter() -> str:
    """The one that ./claudebox uses."""
    system = "/usr/bin/python3"
    return system if os.access(system, os.X_OK) else sys.executable


def same_bwrap(claudebox: str, project: Path) -> list[str]:
    """bwrap with the very options of claudebox, and nothing before it. It reads its data from descriptors of ours."""
    for _ in range(2):  # makes the state, and what only a box with state has
        subprocess.run([claudebox, "--yes", "--run", "true"], cwd=project, check=True, capture_output=True)
    text = subprocess.run(
        [claudebox, "--dry-run", "--json", "--run", "true"], cwd=project, check=True, capture_output=True, text=True
    ).stdout
    plan = json.loads(text)
    options = [word for operation in plan["options"] for word in operation]
    return [
        plan["executable"],
        *(word if isinstance(word, str) else data_path(word) for word in options),
        *plan["program"],
    ]


def data_path(data: dict[str, str]) -> str:
    """The number of a descriptor with this content, inherited by what we start."""
    content = data["text"].encode() if "text" in data else bytes.fromhex(data["hex"])
    descriptor = os.memfd_create("data", 0)
    os.write(descriptor, content)
    DATA[descriptor] = content
    return str(descriptor)


def rewind_data() -> None:
    """bwrap reads a descriptor to its end, and the offset is shared with us."""
    for descriptor in DATA:
        os.lseek(descriptor, 0, os.SEEK_SET)


def measure(commands: dict[str, list[str]], project: Path, rounds: int) -> Times:
    starts = {name: partial(start_and_wait, command, project) for name, command in commands.items()}
    return in_rounds(starts, rounds, WARM_UP)


def start_and_wait(command: list[str], project: Path) -> float:
    rewind_data()
    start = time.perf_counter()
    subprocess.run(
        command,
        cwd=project,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=tuple(DATA),
    )
    return time.perf_counter() - start


def table(times: Times) -> str:
    """Here the base differs from row to row: what claudebox takes, in units of each."""
    alone, bwrap, *_ = times.values()
    floor = {"bare interpreter + the same bwrap": [sum(both) for both in zip(alone, bwrap, strict=True)]}
    everything = times | floor
    lines = ["| | median, ms | claudebox takes |", "|---|---:|---:|"]
    for name, values in everything.items():
        lines.append(
            f"| {name} | {1000 * statistics.median(values):.1f} | {ratio(everything, 'claudebox', name):.2f} × |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
