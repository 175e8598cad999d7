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
from pathlib import Path

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
        project = Path(home) / "project"
        project.mkdir()
        commands = contenders(project, chosen.srt)
        times = measure(commands, project, chosen.rounds)
    print(table(times))


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
    subprocess.run(
        [claudebox, "--yes", "--run", "true"], cwd=project, check=True, capture_output=True
    )  # makes its state
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


def measure(commands: dict[str, list[str]], project: Path, rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in commands}
    for round_number in range(-WARM_UP, rounds):
        for name, command in commands.items():
            rewind_data()
            start = time.perf_counter()
            start_and_wait(command, project)
            if round_number >= 0:
                times[name].append(time.perf_counter() - start)
    return times


def start_and_wait(command: list[str], project: Path) -> None:
    subprocess.run(
        command,
        cwd=project,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=tuple(DATA),
    )


def table(times: dict[str, list[float]]) -> str:
    interpreter_alone, bwrap_alone, *_ = times.values()
    floor = {
        "bare interpreter + the same bwrap": [sum(both) for both in zip(interpreter_alone, bwrap_alone, strict=True)]
    }
    rows = ["| | median, ms | claudebox takes |", "|---|---:|---:|"]
    for name, values in (times | floor).items():
        ratio = statistics.median(own / other for own, other in zip(times["claudebox"], values, strict=True))
        rows.append(f"| {name} | {1000 * statistics.median(values):.1f} | {ratio:.2f} × |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
