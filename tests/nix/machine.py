"""Machines to put Nix on: the real one, but for a /nix, an /etc, processes and a loopback of their own.

Nix wants /nix/store, and no other place is the same: paths are part of what it builds. The machine that runs the tests
may have a store already, which no test may touch, or none, and then a /nix that comes and goes would show in the other
tests that run meanwhile. So a store is mounted where only the tests of Nix see it, in a mount namespace. That also
lets several stand side by side, each with a daemon and a nix.conf that are, for claudebox, simply this host's.

Nothing reaches a real network from there, and nothing stays: a machine ends when its standard input is closed, which
the kernel does even if the tests are killed, and with its first process go all others.

What runs there are real programs of real accounts: `Resident.moving(account, machine)`.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from conftest import Account

INIT = Path(__file__).with_name("machine.sh")
# Only inside is a directory of a machine one; and a program that hangs there has to be ended from there: it would
# outlive the `nsenter` that started it.
ENTER = """
    cd "$1" && user=$2 group=$3 patience=$4 && shift 4 &&
    exec timeout --signal KILL "$patience" setpriv --reuid "$user" --regid "$group" --clear-groups -- "$@"
"""


class Machine:
    """A machine of its own as far as Nix is concerned; `etc` lies over its /etc, and is not to be changed later."""

    def __init__(self) -> None:
        # Not below pytest's own directory: that is private to who started the tests.
        self.directory = Path(tempfile.mkdtemp(prefix="claudebox-nix-", dir="/var/tmp"))
        self.directory.chmod(0o755)
        self.etc = self.directory / "etc"
        self.etc.mkdir()
        (self.directory / "nix").mkdir()
        self.init: subprocess.Popen[str] | None = None

    def start(self, without: Sequence[str] = ()) -> Self:
        """Have it, without some programs of the real machine."""
        namespaces = ("--fork", "--kill-child", "--pid", "--mount", "--net")
        self.init = subprocess.Popen(
            ["unshare", *namespaces, "--", "sh", str(INIT), str(self.directory), *without],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.init.stdout is not None
        assert self.init.stdout.readline() == "ready\n", "no machine with Nix can be made here"
        self.first = Path(f"/proc/{self.init.pid}/task/{self.init.pid}/children").read_text().split()[0]
        return self

    @property
    def root(self) -> Path:
        """Its file system, as seen from outside. An absolute symlink in there leads elsewhere."""
        return Path(f"/proc/{self.first}/root")

    def stop(self) -> None:
        """Begin to end it."""
        if self.init is not None and self.init.stdin is not None:
            self.init.stdin.close()

    def close(self) -> None:
        self.stop()
        if self.init is not None:
            self.init.wait()
            assert self.init.stdout is not None
            self.init.stdout.close()
        # Nix takes the right to write from what is in its store; root needs none.
        shutil.rmtree(self.directory)

    def entered(
        self, *command: str, cwd: Path | str = "/", uid: int = 0, gid: int = 0, patience: float = 60
    ) -> list[str]:
        """The command that runs a command there."""
        assert self.init is not None
        there = ("nsenter", f"--target={self.first}", "--mount", "--net", "--pid", "sh", "-c", ENTER, "enter")
        return [*there, str(cwd), str(uid), str(gid), str(patience), *command]

    def run(self, *command: str, input: str = "", env: dict[str, str] | None = None) -> str:
        """The output of a program that has to succeed there, as root."""
        argv = self.entered(*command, patience=20)
        done = subprocess.run(argv, input=input, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@dataclass
class Resident(Account):
    """An account whose programs run on such a machine."""

    machine: Machine | None = None

    @classmethod
    def moving(cls, account: Account, machine: Machine) -> Resident:
        return cls(**{each.name: getattr(account, each.name) for each in fields(Account)}, machine=machine)

    def becoming(self, *command: str) -> tuple[str, ...]:
        """Root goes there and becomes this account there."""
        return command

    def moved(self, *command: str, cwd: Path | str | None = None, patience: float = 60) -> list[str]:
        assert self.machine is not None
        return self.machine.entered(*command, cwd=cwd or self.home, uid=self.uid, gid=self.gid, patience=patience)

    def run(self, *command: str, **how: object) -> subprocess.CompletedProcess[str]:
        cwd: Path | None = how.pop("cwd", None)  # type: ignore[assignment]
        patience: float = how.pop("timeout", 60)  # type: ignore[assignment]
        return super().run(*self.moved(*command, cwd=cwd, patience=patience), **how)  # type: ignore[arg-type]

    def start(self, *command: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        return super().start(*self.moved(*command, cwd=cwd))
