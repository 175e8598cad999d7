"""Ctrl-Z, fg and bg, from the host's shell and in a shell of the box."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from patience import comes_true
from terminal.pseudoterminal import (
    CTRL_C,
    CTRL_Z,
    PLAIN,
    claudebox_path,
    claudebox_terminal,
    name_of,
    processes_in,
    shell_terminal,
    state_of,
    terminal,
)

if TYPE_CHECKING:
    from conftest import Box

pytestmark = pytest.mark.req("SAND-15")

TICKS = """\
echo started $(readlink /proc/self/ns/pid)
n=0
while :; do n=$((n + 1)); echo $n > ticks; sleep 0.05; done
"""

SUSPENDS_ITSELF = """\
import os, signal

print("going", flush=True)
os.kill(0, signal.SIGTSTP)  # as full-screen programs do, claude among them, when they read Ctrl-Z
print("back", flush=True)
"""


def ticks(box: Box) -> int:
    try:
        return int((box.project / "ticks").read_text() or 0)
    except FileNotFoundError:
        return 0


def goes_on(box: Box) -> bool:
    before = ticks(box)
    return comes_true(lambda: ticks(box) > before)


def states_in(namespace: str) -> set[str]:
    """Without the first process of the box, which cannot be stopped and only waits."""
    return {state_of(pid) for pid in processes_in(namespace) if name_of(pid) != "bwrap"}


def test_ctrl_z_suspends_the_box_and_fg_resumes_it(box: Box) -> None:
    box.account.write(box.project / "program", TICKS)
    with shell_terminal(box) as shell:
        shell.read_until("host> ")
        shell.type("claudebox --yes --run bash program\n")
        namespace = shell.read_until(r"^started (pid:\S+)")[1]
        assert goes_on(box)
        shell.type(CTRL_Z)
        shell.read_until("Stopped")
        shell.read_until("host> ")
        assert comes_true(lambda: states_in(namespace) == {"T"})
        shell.type("fg\n")
        assert goes_on(box)
        shell.type(CTRL_C)
        shell.read_until("host> ")
        shell.type("echo status $?\n")
        shell.read_until("^status 130")


def test_bg_lets_the_box_run_on_behind_the_shell(box: Box) -> None:
    box.account.write(box.project / "program", TICKS)
    with shell_terminal(box) as shell:
        shell.read_until("host> ")
        shell.type("claudebox --yes --run bash program\n")
        namespace = shell.read_until(r"^started (pid:\S+)")[1]
        shell.type(CTRL_Z)
        shell.read_until("Stopped")
        shell.type("bg\n")
        assert goes_on(box)
        shell.type("echo the shell still listens\n")
        shell.read_until("^the shell still listens")
        shell.type("kill %1\n")
        assert comes_true(lambda: processes_in(namespace) == [])


def test_program_that_suspends_its_group_comes_back_with_fg(box: Box) -> None:
    box.account.write(box.project / "program", SUSPENDS_ITSELF)
    with shell_terminal(box) as shell:
        shell.read_until("host> ")
        shell.type("claudebox --yes --run python3 program\n")
        shell.read_until("^going")
        shell.read_until("Stopped")
        shell.type("fg\n")
        shell.read_until("^back")


def test_shell_in_the_box_has_job_control(box: Box) -> None:
    with claudebox_terminal(box, "--yes", "--shell", env=PLAIN) as shell:
        shell.type("PS1='in''side> '\n")
        shell.read_until("inside> ")
        shell.type("sleep 100 & jobs\n")
        shell.read_until(r"\[1\].* Running +sleep 100")
        shell.type("sleep 200\n")
        shell.read_until("sleep 200")
        # The shell hands the terminal to the job a moment after it has echoed the line.
        assert comes_true(lambda: shell.foreground_inside() == "sleep")
        shell.type(CTRL_Z)
        shell.read_until(r"\[2\].* Stopped +sleep 200")
        shell.type("fg\n")
        shell.read_until("^sleep 200")
        assert comes_true(lambda: shell.foreground_inside() == "sleep")
        shell.type(CTRL_C)
        shell.read_until("inside> ")
        shell.type("exit 3\n")
        assert shell.wait() == 3


def test_terminal_belongs_to_the_caller_again_after_a_shell_in_the_box(box: Box) -> None:
    """A script that goes on after the box must be able to read from the terminal."""
    box.account.write(box.project / "script", '"$1" --yes --shell\necho ended\nread line\necho "read: $line"\n')
    with terminal(box.account, "sh", "script", claudebox_path(), cwd=box.project, env=PLAIN) as script:
        script.type("PS1='in''side> '\n")
        script.read_until("inside> ")
        script.type("exit\n")
        script.read_until("^ended")
        script.type("next line\n")
        script.read_until("^read: next line")
