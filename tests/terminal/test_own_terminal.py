"""The box has a terminal of its own, and the user's is as it was, however the box ends."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attacks.test_outlive import WEAKER
from network.processes import is_alive
from patience import PATIENCE, comes_true
from terminal.pseudoterminal import (
    CTRL_C,
    CTRL_Z,
    Terminal,
    children_of,
    claudebox_path,
    claudebox_terminal,
    keeper_of,
    name_of,
    processes_in,
    program_terminal,
    sentinel_of,
    shell_terminal,
    terminal,
)

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from conftest import Box

pytestmark = pytest.mark.req("TTY-01")

# Takes the terminal as full-screen programs do, and never gives it back.
FULL_SCREEN = """\
import os, signal, sys, tty

tty.setraw(0)
os.write(1, b"\\x1b[?1049h\\x1b[?25l\\x1b[?1000h\\x1b[?1006h\\x1b[?2004h\\x1b[>1u")
os.write(1, b"ready " + os.readlink("/proc/self/ns/pid").encode() + b"\\r\\n")
while True:
    signal.pause()
"""
UNDONE = ("?1049l", "?25h", "?1000l", "?1006l", "?2004l", "<1u")
# A script that looks after nothing itself, unlike a shell that somebody types into.
THEN_GOES_ON = '"$1" --yes --run python3 program\necho "status $?"\nread line\necho "read: $line"\n'


def script_terminal(box: Box, program: str, script: str = THEN_GOES_ON) -> AbstractContextManager[Terminal]:
    box.account.write(box.project / "program", program)
    box.account.write(box.project / "script", script)
    return terminal(box.account, "sh", "script", claudebox_path(), cwd=box.project)


def claudebox_below(opened: Terminal) -> int:
    """The claudebox that a script has started."""
    return children_of(opened.pid)[0]


def builder_of(claudebox: int) -> int:
    return next(pid for pid in children_of(claudebox) if name_of(pid) == "bwrap")


def first_of(claudebox: int) -> int:
    return next(pid for pid in children_of(builder_of(claudebox)) if name_of(pid) == "bwrap")


def program_of(claudebox: int) -> int:
    return children_of(first_of(claudebox))[0]


PARTS: dict[str, Callable[[int], int]] = {
    "parent": lambda claudebox: claudebox,
    "keeper": keeper_of,
    "bwrap": builder_of,
    "first process": first_of,
    "program": program_of,
}


@pytest.mark.parametrize("part", PARTS)
def test_terminal_is_as_it_was_whoever_is_killed(box: Box, part: str) -> None:
    with script_terminal(box, FULL_SCREEN) as opened:
        namespace = opened.read_until(r"ready (pid:\S+)")[1]
        assert not opened.echoes()
        os.kill(PARTS[part](claudebox_below(opened)), signal.SIGKILL)
        # Without the leader of its session the program may be hung up before it is killed.
        opened.read_until(r"status (137|129)\r?$")
        assert comes_true(opened.echoes)
        assert comes_true(lambda: processes_in(namespace) == [])
        opened.type("words\n")
        opened.read_until("^read: words")
        shown = opened.read_all()
    assert [code for code in UNDONE if f"\x1b[{code}" not in shown] == []


def test_sentinel_is_not_needed_to_go_on(box: Box) -> None:
    with program_terminal(box, "sh", "echo ready; read line; exit 4") as opened:
        opened.read_until("^ready")
        sentinel = sentinel_of(opened.pid)
        os.kill(sentinel, signal.SIGKILL)
        assert comes_true(lambda: not is_alive(sentinel))
        opened.type("\n")
        assert opened.wait() == 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_terminal_is_as_it_was_after_a_signal(box: Box, number: signal.Signals) -> None:
    with script_terminal(box, FULL_SCREEN) as opened:
        opened.read_until(r"ready (pid:\S+)")
        os.kill(claudebox_below(opened), number)
        opened.read_until(rf"status ({128 + number}|1)\r?$")  # Python makes an exception of SIGINT
        assert opened.echoes()


CHANGES = """\
import fcntl, os, struct, termios
state = termios.tcgetattr(0)
state[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
paths = ("/dev/stdin", "/dev/tty", "/dev/console")
for descriptor in [os.open(path, os.O_RDWR | os.O_NOCTTY) for path in paths]:
    termios.tcsetattr(descriptor, termios.TCSANOW, state)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 7, 7, 0, 0))
    os.set_blocking(descriptor, False)
    fcntl.ioctl(descriptor, termios.TIOCEXCL)
    termios.tcflow(descriptor, termios.TCOOFF)
open("changed", "w").close()
os.read(os.open("wait", os.O_RDONLY), 1)
"""


def test_box_cannot_change_the_users_terminal(box: Box) -> None:
    os.mkfifo(box.project / "wait")
    box.account.own(box.project)
    with program_terminal(box, "python3", CHANGES) as opened:
        assert comes_true((box.project / "changed").exists)
        opened.resize(24, 80)
        with open(box.project / "wait", "w") as going:
            going.write(".")
        assert opened.wait() == 0
        assert opened.echoes()


def test_names_of_the_terminal_are_the_boxes_own(box: Box) -> None:
    script = "tty; echo one >/dev/tty; echo two >/dev/console; ls -l /dev/pts; stty size; exec ps -o tty= -p $$"
    with program_terminal(box, "sh", script) as opened:
        opened.read_until("^/dev/console\r$")
        opened.read_until("^one\r$")
        opened.read_until("^two\r$")
        opened.read_until("^24 80\r$")
        assert opened.wait() == 0


def test_terminal_that_is_not_the_controlling_one(box: Box) -> None:
    """As after `setsid`."""
    command = ("setsid", "--wait", claudebox_path(), "--yes", "--run", "sh", "-c", 'read line; echo "got $line"; tty')
    with terminal(box.account, *command, cwd=box.project) as opened:
        assert comes_true(lambda: not opened.echoes())
        opened.type("words\r")
        opened.read_until("^got words")
        opened.read_until("^/dev/console")
        assert opened.wait() == 0
        assert opened.echoes()


def test_second_terminal_is_refused(box: Box) -> None:
    master, slave = os.openpty()
    os.fchown(slave, box.account.uid, -1)
    with claudebox_terminal(box, "--yes", "--run", "touch", "started", stdout=slave) as opened:
        assert opened.wait() == 125
        assert "descriptor 1 is another terminal" in opened.read_all()
    assert not (box.project / "started").exists()
    os.close(master)
    os.close(slave)


# Pipelines.


@pytest.mark.less
def test_pager_gets_the_keys_and_the_output(box: Box) -> None:
    with shell_terminal(box) as shell:
        shell.read_until("host> ")
        shell.type("claudebox --yes --run seq 100000 2>/dev/null | TERM=xterm less\n")
        shell.read_until("^22\r")
        shell.type("G")
        shell.read_until("^100000\r")
        shell.type("q")
        shell.read_until("host> ")


def test_program_in_a_pipeline_can_ask_on_the_terminal(box: Box) -> None:
    box.account.write(box.project / "program", 'read line </dev/tty; echo "got $line"')
    with shell_terminal(box) as shell:
        shell.read_until("host> ")
        shell.type("echo input | claudebox --yes --run sh program 2>/dev/null | cat; echo en''ded\n")
        assert comes_true(lambda: not shell.echoes())
        shell.type("words\r")
        shell.read_until("^got words")
        shell.read_until("^ended")


def test_writer_upstream_does_not_wait_for_the_question(box: Box) -> None:
    script = 'yes | "$1" --yes --run true; echo "status $?"\n'
    with script_terminal(box, "", script) as opened:
        opened.read_until("^status 0")


def test_ctrl_c_reaches_a_box_whose_output_is_a_pipe(box: Box) -> None:
    # `exec`: a shell that has just forked would take the signal itself, and wait.
    box.account.write(box.project / "program", "echo ready >&2; exec sleep 1000")
    with shell_terminal(box) as shell:
        shell.read_until("host> ")
        shell.type("claudebox --yes --run sh program | cat\n")
        shell.read_until("^ready")
        shell.type(CTRL_C)
        shell.read_until("host> ")
        shell.type("echo status ${PIPESTATUS[0]}\n")
        shell.read_until("^status 130")


# Job control.

SUSPENDS_ITSELF = """\
import os, signal, tty
tty.setraw(0)
os.write(1, b"ready\\r\\n")
while True:
    key = os.read(0, 1)
    if key == b"\\x1a":
        os.write(1, b"\\x1b[?1049l")
        os.kill(0, signal.SIGTSTP)
        os.write(1, b"again\\r\\n")
    elif key == b"q":
        break
"""


def test_script_is_suspended_with_the_box(box: Box) -> None:
    """Or else the shell would wait for the script, and the script for the box."""
    box.account.write(box.project / "program", SUSPENDS_ITSELF)
    box.account.write(box.project / "script", f"'{claudebox_path()}' --yes --run python3 program; echo ended $?")
    with shell_terminal(box) as shell:
        shell.read_until("host> ")
        shell.type("sh script\n")
        for begin in ("ready", "again", "again"):
            shell.read_until(f"^{begin}")
            suspend(shell)
            shell.read_until("host> ")
            assert shell.foreground() == "bash"
            shell.type("fg\n")
        shell.read_until("^again")
        shell.type("q")
        shell.read_until("^ended 0")


def suspend(shell: Terminal) -> None:
    """Press Ctrl-Z. The `fg` of a moment ago may still be on its way, and undo it: a person presses it once more."""
    for patience in (20.0, 20.0, PATIENCE):
        shell.type(CTRL_Z)
        with contextlib.suppress(AssertionError):
            shell.read_until("Stopped", patience)
            return
    raise AssertionError(f"not stopped: {shell.seen[-500:]!r}")


def test_job_control_where_claudebox_can_make_no_namespace(box: Box) -> None:
    box.account.write(box.project / "program", SUSPENDS_ITSELF)
    with shell_terminal(box, *WEAKER) as shell:
        shell.read_until("host> ")
        shell.type("claudebox --yes --run python3 program; echo sta''tus $?\n")
        shell.read_until("^ready")
        shell.type(CTRL_Z)
        shell.read_until("Stopped")
        shell.read_until("host> ")
        shell.type("fg\n")
        shell.read_until("^again")
        shell.type("q")
        shell.read_until("host> ")


def test_reader_behind_the_shell_stops_until_fg(box: Box) -> None:
    box.account.write(box.project / "program", 'read line; echo "got $line"')
    with shell_terminal(box) as shell:
        shell.read_until("host> ")
        shell.type("claudebox --yes --run sh program &\n")
        # The shell tells before its next prompt.
        comes_true(lambda: "T" in states(box, shell))
        shell.type("\n")
        shell.read_until(r"Stopped\(?.*claudebox|Stopped")
        shell.type("fg\n")
        assert comes_true(lambda: not shell.echoes())
        shell.type("words\r")
        shell.read_until("^got words")
        shell.read_until("host> ")


def states(box: Box, shell: Terminal) -> set[str]:
    return {_state(pid) for pid in children_of(shell.pid)}


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return ""


def test_box_behind_the_shell_can_be_fetched_while_it_runs(box: Box) -> None:
    box.account.write(
        box.project / "program", "echo ready; until [ -e go ]; do sleep 0.05; done; read line; echo got $line"
    )
    with shell_terminal(box) as shell:
        shell.read_until("host> ")
        shell.type("claudebox --yes --run sh program &\n")
        shell.read_until("^ready")
        shell.type("fg\n")
        assert comes_true(lambda: os.tcgetpgrp(shell.master) != shell.pid and not shell.echoes())
        box.account.write(box.project / "go")
        shell.type("words\r")
        shell.read_until("^got words")
        shell.read_until("host> ")


def test_reader_whom_nobody_could_continue_gets_an_error(box: Box) -> None:
    """As outside; and it does not keep the machine busy."""
    box.account.write(box.project / "program", "read line; echo status $?")
    with shell_terminal(box) as shell:
        shell.read_until("host> ")
        shell.type("(claudebox --yes --run sh program &)\n")
        shell.read_until("^status [^0]")


# Much output.


def test_terminal_that_stands_still_makes_the_program_wait(box: Box) -> None:
    megabytes = 16
    program = (
        f"import os, sys\nos.write(2, b'ready\\n')\nfor _ in range({megabytes}): sys.stdout.write('x' * 999999 + '\\n')"
    )
    with program_terminal(box, "python3", program) as opened:
        opened.read_until("^ready")
        memory = resident(opened.pid)
        assert comes_true(lambda: _state(program_of(opened.pid)) == "S")
        assert resident(opened.pid) < memory + 8_000_000
        missing = megabytes * 999_999 - shown(opened)
        while missing > 0:
            missing -= os.read(opened.master, 1 << 16).count(b"x")
        assert opened.wait() == 0


def shown(opened: Terminal) -> int:
    """How much of it was there when something else was looked for."""
    return opened.seen.rpartition(b"ready")[2].count(b"x")


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
