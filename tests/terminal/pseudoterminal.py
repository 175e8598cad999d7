"""A person at a terminal: starts a program on a real pty, types, looks, resizes, hangs up."""

import contextlib
import errno
import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from conftest import Account, Box
from patience import PATIENCE

CTRL_C, CTRL_D, CTRL_Z, CTRL_BACKSLASH = "\x03", "\x04", "\x1a", "\x1c"
ROWS, COLUMNS = 24, 80
# A session that has no terminal gets the one that it opens first.
TAKE_TERMINAL = ': <>"$0"; exec "$@"'
PLAIN = {"TERM": "dumb"}  # keeps a shell from wrapping what it prints in escape codes


class Terminal:
    """A program whose controlling terminal is a pty that we hold the other end of."""

    def __init__(
        self,
        account: Account,
        command: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str | None] | None = None,
        stdin: int | IO[bytes] | None = None,
        stdout: int | IO[bytes] | None = None,
    ) -> None:
        """`stdin` and `stdout` are the terminal unless given. A variable that is None is unset."""
        self.master, slave = pty.openpty()
        self.seen = b""  # everything, since the start
        self.looked_at = 0  # how much of it an earlier `read_until` has consumed
        self.resize(ROWS, COLUMNS)
        os.fchown(slave, account.uid, -1)  # as login does
        environ = {**account.environ, **(env or {})}
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            ("/bin/sh", "-c", TAKE_TERMINAL, os.ttyname(slave), *account.becoming(*command)),
            cwd=cwd,
            env={name: value for name, value in environ.items() if value is not None},
            stdin=slave if stdin is None else stdin,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    @property
    def pid(self) -> int:
        return self.process.pid

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, pattern: str, patience: float = PATIENCE) -> re.Match[str]:
        """Wait for a text, given as a regular expression, after what earlier calls have found."""
        deadline = time.monotonic() + patience
        while True:
            text = self.seen[self.looked_at :].decode(errors="replace")
            if found := re.search(pattern, text, re.MULTILINE):
                self.looked_at += len(text[: found.end()].encode())
                return found
            assert self._read(deadline), f"{pattern!r} did not appear in:\n{text}"

    def answer(self, pattern: str, keys: str) -> None:
        """Wait for a text, and then type."""
        self.read_until(pattern)
        self.type(keys)

    def read_all(self, patience: float = PATIENCE) -> str:
        """Wait for the end of all programs on the terminal; everything they ever wrote."""
        deadline = time.monotonic() + patience
        while self._read(deadline):
            pass
        return self.seen.decode(errors="surrogateescape")

    def _read(self, deadline: float) -> bool:
        """Whether there was more before the deadline and before the last program closed the terminal."""
        readable, _, _ = select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            data = b""
        self.seen += data
        return bool(data)

    def wait(self, patience: float = PATIENCE) -> int:
        """The exit status as a shell would show it in $?."""
        deadline = time.monotonic() + patience
        while (status := self.process.poll()) is None and time.monotonic() < deadline:
            self._read(min(deadline, time.monotonic() + 0.05))
        assert status is not None, f"still running after {patience} s:\n{self.seen.decode(errors='replace')}"
        return status if status >= 0 else 128 - status

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def echoes(self) -> bool:
        """Whether the terminal is as a shell expects it: echoing, line by line, with signals."""
        flags: int = termios.tcgetattr(self.master)[3]
        wanted = termios.ECHO | termios.ICANON | termios.ISIG
        return flags & wanted == wanted

    def foreground(self) -> str:
        """The program that gets what is typed."""
        return name_of(os.tcgetpgrp(self.master))

    def foreground_inside(self) -> str:
        """The program that gets what is typed into the terminal of the box."""
        return name_of(int(_stat_field(leader_of(self.pid), 8) or 0))

    def hang_up(self) -> None:
        """Close the terminal's window."""
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def close(self) -> None:
        """End what a failed test left behind, in sessions of their own too."""
        pids = session_of(self.pid)
        boxes = {pid_namespace(pid) for pid in pids} - {pid_namespace(os.getpid()), ""}
        for pid in {*pids, *(pid for box in boxes for pid in processes_in(box))}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.hang_up()


@contextlib.contextmanager
def terminal(
    account: Account,
    *command: str,
    cwd: Path,
    env: Mapping[str, str | None] | None = None,
    stdin: int | IO[bytes] | None = None,
    stdout: int | IO[bytes] | None = None,
) -> Iterator[Terminal]:
    """Any program on a new terminal."""
    opened = Terminal(account, command, cwd=cwd, env=env, stdin=stdin, stdout=stdout)
    try:
        yield opened
    finally:
        opened.close()


@contextlib.contextmanager
def claudebox_terminal(
    box: Box,
    *arguments: str,
    cwd: Path | None = None,
    env: Mapping[str, str | None] | None = None,
    stdin: int | IO[bytes] | None = None,
    stdout: int | IO[bytes] | None = None,
) -> Iterator[Terminal]:
    """claudebox on a new terminal, in the project."""
    command = (claudebox_path(), *box.options, *arguments)
    with terminal(box.account, *command, cwd=cwd or box.project, env=env, stdin=stdin, stdout=stdout) as opened:
        yield opened


def program_terminal(
    box: Box,
    interpreter: str,
    source: str,
    **how: Any,
) -> contextlib.AbstractContextManager[Terminal]:
    """A script in the box, without the question. It is a file, so that the audit does not show what it will print."""
    box.account.write(box.project / "program", source)
    return claudebox_terminal(box, "--yes", "--run", interpreter, "program", **how)


@contextlib.contextmanager
def shell_terminal(box: Box, *command: str, program: str = "", typed: str = "") -> Iterator[Terminal]:
    """An interactive shell on the host, in the project, where `claudebox` is the command, or another one.

    The file `program` is what a test wants to start there, and `typed` what is typed at the first prompt.
    """
    words = shlex.join(command or (claudebox_path(),))
    box.account.write(box.project / "rc", f"PS1='host> '; claudebox() {{ {words} \"$@\"; }}\n")
    if program:
        box.account.write(box.project / "program", program)
    with terminal(box.account, "bash", "--rcfile", "rc", "-i", cwd=box.project, env=PLAIN) as shell:
        shell.read_until("host> ")
        shell.type(typed)
        yield shell


def claudebox_path() -> str:
    return str(Path(__file__).parent.parent.parent / "claudebox")


def session_of(leader: int) -> list[int]:
    """Every process of a terminal session, the oldest first."""
    return [pid for pid in _pids() if _stat_field(pid, 6) == str(leader)]


def children_of(parent: int) -> list[int]:
    return [pid for pid in _pids() if _stat_field(pid, 4) == str(parent)]


def leader_of(claudebox: int) -> int:
    """The process that leads the session of the box's terminal; 0 if there is none (yet)."""
    return next(
        (pid for pid in children_of(claudebox) if _stat_field(pid, 6) == str(pid) and _stat_field(pid, 7) != "0"), 0
    )


def sentinel_of(claudebox: int) -> int:
    return next(iter(children_of(leader_of(claudebox))), 0)


def name_of(pid: int) -> str:
    """The program that a process runs, as `ps` shows it."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def state_of(pid: int) -> str:
    """One letter, as `ps` shows it: T is stopped, Z dead but not yet waited for."""
    return _stat_field(pid, 3)


def processes_in(namespace: str) -> list[int]:
    """Every live process of a pid namespace, named as `readlink /proc/self/ns/pid` prints it."""
    return [pid for pid in _pids() if pid_namespace(pid) == namespace and state_of(pid) != "Z"]


def pid_namespace(pid: int) -> str:
    """Empty if there is no such process, or if it is none of ours."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat_field(pid: int, number: int) -> str:
    """A field of /proc/PID/stat, numbered as in proc(5); empty if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[number - 3]
