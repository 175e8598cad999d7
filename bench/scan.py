#!/usr/bin/env python3
"""What looking through a project costs, beside listing it: `bench/scan.py [DIRECTORY]`, else a made-up one."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from claudebox.features.secrets import table as project_secrets
from claudebox.host.tree import Tree
from claudebox.host.walk import walk_project
from claudebox.overlay import table as guard_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 9
DIRECTORIES, FILES = 2000, 50


def main() -> None:
    if sys.argv[1:]:
        compare(sys.argv[1])
        return
    with tempfile.TemporaryDirectory(prefix="claudebox-scan-") as root:
        make(root)
        compare(root)


def make(root: str) -> None:
    for number in range(DIRECTORIES):
        directory = Path(root, str(number % 100), str(number))
        directory.mkdir(parents=True)
        for name in range(FILES):
            (directory / f"module_{name}.py").touch()


def compare(root: str) -> None:
    wanted = project_secrets.WANTED | guard_table.WANTED
    entries = walk_project(Tree(), root, wanted)
    listing, walk = best(lambda: list_all(root)), best(lambda: walk_project(Tree(), root, wanted))
    judging = best(lambda: [project_secrets.kind_of(entry.path, root) for entry in entries])
    found = [entry for entry in entries if project_secrets.kind_of(entry.path, root)]
    print(f"{list_all(root)} names, {len(entries)} of interest, {len(found)} to look into")
    print(f"listing {listing:.1f} ms, walking {walk:.1f} ms, judging names {judging:.1f} ms")


def best(act: Callable[[], object]) -> float:
    """Of several rounds, in milliseconds: whatever else the machine does only adds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def list_all(root: str) -> int:
    waiting, seen = [root], 0
    while waiting:
        with os.scandir(waiting.pop()) as listing:
            for entry in listing:
                seen += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return seen


if __name__ == "__main__":
    main()
