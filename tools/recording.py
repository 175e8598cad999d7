"""A terminal of 80 by 24 that a script types into, as an ordinary user: what working_day.py and pictures.py record.

tmux is started as that user, so that the terminal is theirs: a box refuses one that belongs to somebody else.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLUMNS, LINES = 80, 24
PATIENCE = 60.0
PROMPT = "$ "


class Surprise(Exception):
    """Something did not come as it was told."""


@dataclass
class Person:
    """Who sits at the terminal."""

    name: str
    home: Path
    uid: int
    gid: int
    environ: dict[str, str] = field(default_factory=dict)

    def run(self, *command: str, cwd: Path | None = None, is_checked: bool = True) -> str:
        as_who = {"user": self.uid, "group": self.gid, "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run(
            command,
            cwd=cwd or self.home,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            **as_who,  # type: ignore[call-overload]
        )
        if is_checked and done.returncode != 0:
            raise Surprise(f"{shlex.join(command)}: {done.stderr}")
        return str(done.stdout)

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        self.own(self.home)
        return path

    def own(self, path: Path) -> None:
        if os.geteuid() == 0:
            subprocess.run(["chown", "-hR", f"{self.uid}:{self.gid}", path], check=True)


@contextmanager
def person(name: str) -> Iterator[Person]:
    """Root makes an account and removes it; everybody else plays it themselves, with another home."""
    if os.geteuid() == 0:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", name], check=True)
        entry = pwd.getpwnam(name)
        made = Person(name, Path(entry.pw_dir), entry.pw_uid, entry.pw_gid)
    else:
        directory = Path(tempfile.mkdtemp(prefix="recording-")) / name
        directory.mkdir()
        made = Person(name, directory, os.getuid(), os.getgid())
    made.environ = {
        "HOME": str(made.home),
        "USER": name,
        "LOGNAME": name,
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "PATH": f"{made.home}/.local/bin:/usr/local/bin:/usr/bin:/bin",
    }
    made.write(".local/bin/claudebox", f'#!/bin/sh\nexec {ROOT}/claudebox "$@"\n', mode=0o755)
    try:
        yield made
    finally:
        if os.geteuid() == 0:
            # It is refused while a process of the account still ends.
            removed = [["userdel", "--remove", name]] * 50 + [["userdel", "--force", "--remove", name]]
            while subprocess.run(removed.pop(0), check=False, capture_output=True).returncode and removed:
                time.sleep(0.2)
        else:
            shutil.rmtree(directory.parent, ignore_errors=True)


@dataclass
class Terminal:
    """A window with a shell in it."""

    who: Person
    server: str
    window: str

    def tmux(self, *words: str) -> str:
        return self.who.run("tmux", "-L", self.server, *words)

    def screen(self, *options: str) -> str:
        """What is on it; with `-S -`, also what has scrolled away; with `-e`, its colours."""
        return self.tmux("capture-pane", "-p", "-t", self.window, *options)

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", self.window, *keys)

    def wait(self, what: str, is_there: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not is_there():
            if time.monotonic() > end:
                raise Surprise(f"{what!r} did not come:\n{self.screen('-S', '-')}")
            time.sleep(0.1)

    def shows(self, text: str) -> None:
        self.wait(text, lambda: text in self.screen())

    def is_waiting(self) -> bool:
        """Whether the shell has asked for the next command."""
        return self.screen().rstrip("\n").rpartition("\n")[2] in (PROMPT.strip(), "^C" + PROMPT.strip())

    def start(self, command: str) -> None:
        """Type a command on an empty screen."""
        self.type("clear", "Enter")
        self.wait("an empty screen", lambda: self.screen().strip() == PROMPT.strip())
        self.tmux("clear-history", "-t", self.window)
        self.type("-l", command)
        # Until it is there, the prompt before it looks like the one after it.
        self.shows(PROMPT + command[: COLUMNS // 2])
        self.type("Enter")

    def finish(self) -> str:
        """Wait for the shell, and give all that was shown since the command."""
        self.wait("the prompt", lambda: self.screen().count("\n") > 0 and self.is_waiting())
        lines = self.screen("-S", "-", "-J").rstrip("\n").split("\n")
        return "\n".join(line.rstrip() for line in lines[:-1])

    def run(self, command: str) -> str:
        self.start(command)
        return self.finish()


@contextmanager
def terminals(who: Person, *windows: str, cwd: Path | None = None) -> Iterator[dict[str, Terminal]]:
    """Windows side by side, in which no start-up file of a shell is read and no name of this machine is shown."""
    server = f"recording-{who.name}"
    who.environ["TMUX_TMPDIR"] = str(who.home)
    opened = {}
    try:
        for window in windows:
            terminal = opened[window] = Terminal(who, server, window)
            terminal.tmux(
                *("-f", "/dev/null", "new-session", "-d", "-s", window, "-x", str(COLUMNS), "-y", str(LINES)),
                *("-c", str(cwd or who.home), f"exec env PS1='{PROMPT}' bash --norc --noprofile -i"),
            )
            terminal.shows(PROMPT.strip())
        yield opened
    finally:
        who.run("tmux", "-L", server, "kill-server", is_checked=False)
