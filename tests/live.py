"""A box that runs while its project changes on the host, and says what it sees there."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from conftest import CLAUDEBOX, Account, Box
from patience import comes_true

CANARY = "cAnArY7x9secret"
ENV = f"PORT=3000\nDB_PASSWORD={CANARY}\n"
# Says what each file shows whenever it changes, until it is told to end.
READER = """
import os, sys, time
shown = {}
while not os.path.exists("stop"):
    for name in sys.argv[1:]:
        try:
            with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK), "rb") as file: content = file.read()
        except OSError as error: content = error.strerror.encode()
        if shown.get(name) != content: print(name, content, flush=True)
        shown[name] = content
    open("round", "w").close()
    time.sleep(0.01)
"""


@dataclass
class Running:
    """A box that reads some files again and again."""

    project: Path
    account: Account
    process: subprocess.Popen[str]
    log: Path
    errors: Path

    def lines(self, name: str) -> list[str]:
        return [line.partition(" ")[2] for line in self.log.read_text().splitlines() if line.startswith(f"{name} ")]

    def last(self, name: str) -> str:
        """What the box shows when it has looked once more."""
        (self.project / "round").unlink(missing_ok=True)
        comes_true((self.project / "round").exists)
        return next(reversed(self.lines(name)), "")

    def is_masked(self, name: str, text: str = "DB_PASSWORD=") -> bool:
        return text in self.last(name) and CANARY not in self.last(name)

    def save(self, name: str, content: str) -> None:
        """As editors do it."""
        self.account.write(self.project / "new", content).rename(self.project / name)


@contextmanager
def running(box: Box, *names: str, options: tuple[str, ...] = ()) -> Iterator[Running]:
    log, errors = (box.account.write(box.account.home / f"{name}-{time.monotonic_ns()}") for name in ("log", "errors"))
    words = (CLAUDEBOX, "--yes", "--quiet", *options, "--run", "python3", "-c", READER, *names)
    with (
        log.open("w") as out,
        errors.open("w") as err,
        box.account.running(*words, cwd=box.project, stdout=out.fileno(), stderr=err.fileno()) as process,
    ):
        assert comes_true((box.project / "round").exists)
        yield Running(box.project, box.account, process, log, errors)
        (box.project / "stop").touch()
        process.wait(30)
