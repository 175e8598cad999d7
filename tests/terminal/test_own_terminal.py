"""The box has a terminal of its own, and the user's is as it was, however the box ends."""

import os
import signal
import termios
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from attacks.test_outlive import WEAKER
from conftest import Box
from network.processes import is_alive
from patience import comes_true
from terminal.pseudoterminal import (
    CTRL_C,
    CTRL_Z,
    PLAIN,
    Terminal,
    children_of,
    claudebox_path,
    claudebox_terminal,
    leader_of,
    name_of,
    processes_in,
    program_terminal,
    sentinel_of,
    shell_terminal,
    terminal,
)

pytestmark = pytest.mark.req("TTY-01")

LOCAL_MODES = 3  # in what tcgetattr returns

# Takes the terminal as full-screen programs do, and never gives it back.
FULL_SCREEN = """\
import os, signal, sys, tty

tty.setraw(0)
os.write(1, b"\\x1b[?1049h\\x1b[?25l\\x1b[?1000h\\x1b[?1006h\\x1b[?2004h\\x1b[>1u")
os.write(1, b"ready " + os.readlink("/proc/self/ns/pid").encode() + b"\\r\\n")
while True:
    signal.pause()
"""
UNDONE = ("?1049l", "?25h", "?1000l", "?1006l", "?2004l", "<99u")
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
    "leader": leader_of,
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
    with shell_terminal(box, typed="claudebox --yes --run seq 100000 2>/dev/null | TERM=xterm less\n") as shell:
        shell.answer("^22\r", "G")
        shell.answer("^100000\r", "q")
        shell.read_until("host> ")


def test_program_in_a_pipeline_can_ask_on_the_terminal(box: Box) -> None:
    with shell_terminal(
        box,
        program='read line </dev/tty; echo "got $line"',
        typed="echo input | claudebox --yes --run sh program 2>/dev/null | cat; echo en''ded\n",
    ) as shell:
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
    with shell_terminal(
        box, program="echo ready >&2; exec sleep 1000", typed="claudebox --yes --run sh program | cat\n"
    ) as shell:
        shell.answer("^ready", CTRL_C)
        shell.answer("host> ", "echo status ${PIPESTATUS[0]}\n")
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
    box.account.write(box.project / "script", f"'{claudebox_path()}' --yes --run python3 program; echo ended $?")
    with shell_terminal(box, program=SUSPENDS_ITSELF, typed="sh script\n") as shell:
        for begin in ("ready", "again", "again"):
            shell.answer(f"^{begin}", CTRL_Z)
            shell.read_until("Stopped")
            shell.read_until("host> ")
            assert shell.foreground() == "bash"
            shell.type("fg\n")
        shell.answer("^again", "q")
        shell.read_until("^ended 0")


STOPS_AT_ONCE = """\
import os, signal
for number in range(100):
    os.write(1, b"stop %d\\n" % number)
    os.kill(0, signal.SIGTSTP)
"""


def test_fg_continues_a_program_once(box: Box) -> None:
    """A second SIGCONT would undo what the program has done since the first."""
    with shell_terminal(box, program=STOPS_AT_ONCE, typed="claudebox --yes --run python3 program\n") as shell:
        for number in range(20):
            shown = shell.read_until(r"(?s)^stop .*?Stopped")[0]
            assert shown.split("\r\n")[0] == f"stop {number}"
            assert shown.count("stop ") == 1
            shell.answer("host> ", "fg\n")


# The terminal turns Ctrl-Z into a signal for this one, and shows it as ^Z.
LEAVES_KEYS_TO_THE_TERMINAL = """\
import os, signal
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


def test_ctrl_z_right_after_fg_is_not_undone_by_it(box: Box) -> None:
    with shell_terminal(
        box, program=LEAVES_KEYS_TO_THE_TERMINAL, typed="claudebox --yes --run python3 program\n"
    ) as shell:
        shell.read_until("^ready")
        claudebox = claudebox_below(shell)
        leader = leader_of(claudebox)
        shell.type(CTRL_Z)
        shell.read_until("Stopped")
        shell.read_until("host> ")
        # It is slow to carry out what `fg` means.
        os.kill(leader, signal.SIGSTOP)
        shell.type("fg\n")
        assert comes_true(lambda: not sends_signals(shell) and _state(claudebox) == "S")
        read = calls(claudebox, "syscr")
        shell.type(CTRL_Z)
        assert comes_true(lambda: calls(claudebox, "syscr") > read and _state(claudebox) == "S")
        os.kill(leader, signal.SIGCONT)
        shell.read_until("Stopped")


def test_stop_does_not_overtake_an_earlier_order_to_go_on(box: Box) -> None:
    with shell_terminal(
        box, program=LEAVES_KEYS_TO_THE_TERMINAL, typed="claudebox --yes --run python3 program\n"
    ) as shell:
        shell.read_until("^ready")
        claudebox = claudebox_below(shell)
        leader, program = leader_of(claudebox), program_of(claudebox)
        os.kill(leader, signal.SIGSTOP)
        for number in (signal.SIGCONT, signal.SIGTSTP):
            written = calls(claudebox, "syscw")
            os.kill(claudebox, number)
            # It notes the signal, and then it acts.
            assert comes_true(lambda: calls(claudebox, "syscw") > written and _state(claudebox) == "S")  # noqa: B023
        os.kill(leader, signal.SIGCONT)
        shell.read_until("Stopped")
        assert comes_true(lambda: _state(program) == "T")


def sends_signals(opened: Terminal) -> bool:
    """Whether Ctrl-Z is a signal, as in a shell, and not a key for whoever reads them all."""
    return bool(termios.tcgetattr(opened.master)[LOCAL_MODES] & termios.ISIG)


def test_fg_continues_a_box_that_stopped_while_claudebox_was_stopped(box: Box) -> None:
    """Once is enough: the box had stopped before."""
    with shell_terminal(box, program=SUSPENDS_WHEN_TOLD, typed="claudebox --yes --run python3 program\n") as shell:
        shell.read_until("^ready")
        leader = leader_of(claudebox_below(shell))
        os.kill(claudebox_below(shell), signal.SIGSTOP)
        shell.read_until("Stopped")
        shell.read_until("host> ")
        written = calls(leader, "syscw")
        box.account.write(box.project / "go")
        # It notes the signal that the sentinel has stopped, and tells the parent.
        assert comes_true(lambda: calls(leader, "syscw") == written + 2)
        shell.type("fg\n")
        shell.read_until("^again")


SUSPENDS_WHEN_TOLD = """\
import os, signal, time
os.write(1, b"ready\\n")
while not os.path.exists("go"):
    time.sleep(0.01)
os.kill(0, signal.SIGTSTP)
os.write(1, b"again\\n")
"""


def test_continuing_claudebox_leaves_the_shell_in_the_box_in_front(box: Box) -> None:
    """Its jobs have process groups of their own; somebody may send SIGCONT at any time."""
    with claudebox_terminal(box, "--yes", "--shell", env=PLAIN) as shell:
        shell.type("PS1='in''side> '\n")
        shell.answer("inside> ", "sleep 1000\n")
        assert comes_true(lambda: shell.foreground_inside() == "sleep")
        leader = leader_of(shell.pid)
        heard = calls(leader, "syscr")
        os.kill(shell.pid, signal.SIGCONT)
        assert comes_true(lambda: calls(leader, "syscr") > heard and _state(leader) == "S")
        shell.type(CTRL_C)
        shell.answer("inside> ", "exit 3\n")
        assert shell.wait() == 3


def calls(pid: int, kind: str) -> int:
    """How often a process has read (`syscr`) or written (`syscw`)."""
    fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(fields[kind])


def test_terminal_is_brought_back_although_the_box_has_just_stopped(box: Box) -> None:
    """The leader has that to tell, and nobody is left who would hear it."""
    with script_terminal(box, SUSPENDS_WHEN_TOLD) as opened:
        opened.read_until("^ready")
        claudebox = claudebox_below(opened)
        leader, sentinel = leader_of(claudebox), sentinel_of(claudebox)
        os.kill(leader, signal.SIGSTOP)
        box.account.write(box.project / "go")
        assert comes_true(lambda: _state(sentinel) == "T")
        os.kill(claudebox, signal.SIGKILL)
        # The kernel continues the leader, whom nobody else could continue any more.
        opened.read_until("^status 137")
        assert comes_true(opened.echoes)


def test_job_control_where_claudebox_can_make_no_namespace(box: Box) -> None:
    with shell_terminal(
        box, *WEAKER, program=SUSPENDS_ITSELF, typed="claudebox --yes --run python3 program; echo sta''tus $?\n"
    ) as shell:
        shell.answer("^ready", CTRL_Z)
        shell.read_until("Stopped")
        shell.answer("host> ", "fg\n")
        shell.answer("^again", "q")
        shell.read_until("host> ")


def test_reader_behind_the_shell_stops_until_fg(box: Box) -> None:
    with shell_terminal(
        box, program='read line; echo "got $line"', typed="claudebox --yes --run sh program &\n"
    ) as shell:
        # The shell tells before its next prompt.
        comes_true(lambda: "T" in states(box, shell))
        shell.type("\n")
        shell.answer(r"Stopped\(?.*claudebox|Stopped", "fg\n")
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
    with shell_terminal(box, typed="claudebox --yes --run sh program &\n") as shell:
        shell.answer("^ready", "fg\n")
        assert comes_true(lambda: os.tcgetpgrp(shell.master) != shell.pid and not shell.echoes())
        box.account.write(box.project / "go")
        shell.type("words\r")
        shell.read_until("^got words")
        shell.read_until("host> ")


def test_reader_whom_nobody_could_continue_gets_an_error(box: Box) -> None:
    """As outside; and it does not keep the machine busy."""
    with shell_terminal(
        box, program="read line; echo status $?", typed="(claudebox --yes --run sh program &)\n"
    ) as shell:
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
