"""The program leaves something behind that the host will run, and then does what it can that nobody is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from attacks.test_host_runs_later_report import asked, repository, said
from conftest import Box

pytestmark = pytest.mark.req("INST-02")

__all__ = ["repository"]


@pytest.mark.parametrize("attack", ["kill -s KILL 0", "kill -s KILL -- -1 0"])
def test_parent_cannot_be_killed_from_inside(box: Box, repository: Path, attack: str) -> None:
    done = box.inside("sh", "-c", f"echo true > .envrc.local; trap '' TERM; {attack}; sleep 9")
    assert done.returncode != 0
    assert "new .envrc.local" in said(done)


STOPPED = """python3 -c 'import os, termios
os.set_blocking(2, False)
state = termios.tcgetattr(0)
state[3] &= ~(termios.ISIG | termios.ECHO)
state[6][termios.VEOF] = b"q"
termios.tcsetattr(0, termios.TCSANOW, state)
termios.tcflow(0, termios.TCOOFF)'
"""


def test_terminal_that_shows_nothing_and_loses_answers(box: Box, repository: Path) -> None:
    with asked(box, f"echo true > .envrc.local; {STOPPED}") as opened:
        opened.type("q\n")
        opened.read_until("Moved, under the same names, to")
        assert opened.wait() == 0
    assert not (repository / ".envrc.local").exists()
