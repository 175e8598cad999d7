"""Ctrl-Z, fg and bg, from the host's shell and in a shell of the box."""

import pytest

from conftest import Box
from patience import comes_true
from terminal.pseudoterminal import (
    CTRL_BACKSLASH,
    CTRL_C,
    CTRL_Z,
    PLAIN,
    Terminal,
    claudebox_path,
    claudebox_terminal,
    name_of,
    processes_in,
    program_terminal,
    shell_terminal,
    state_of,
    terminal,
)

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
    with shell_terminal(box, program=TICKS, typed="claudebox --yes --run bash program\n") as shell:
        namespace = shell.read_until(r"^started (pid:\S+)")[1]
        assert goes_on(box)
        shell.type(CTRL_Z)
        shell.read_until("Stopped")
        shell.read_until("host> ")
        assert comes_true(lambda: states_in(namespace) == {"T"})
        shell.type("fg\n")
        assert goes_on(box)
        shell.type(CTRL_C)
        shell.answer("host> ", "echo status $?\n")
        shell.read_until("^status 130")


def test_bg_lets_the_box_run_on_behind_the_shell(box: Box) -> None:
    with shell_terminal(box, program=TICKS, typed="claudebox --yes --run bash program\n") as shell:
        namespace = shell.read_until(r"^started (pid:\S+)")[1]
        shell.type(CTRL_Z)
        shell.answer("Stopped", "bg\n")
        assert goes_on(box)
        shell.type("echo the shell still listens\n")
        shell.answer("^the shell still listens", "kill %1\n")
        assert comes_true(lambda: processes_in(namespace) == [])


def test_program_that_suspends_its_group_comes_back_with_fg(box: Box) -> None:
    with shell_terminal(box, program=SUSPENDS_ITSELF, typed="claudebox --yes --run python3 program\n") as shell:
        shell.read_until("^going")
        shell.answer("Stopped", "fg\n")
        shell.read_until("^back")


def test_shell_in_the_box_has_job_control(box: Box) -> None:
    with claudebox_terminal(box, "--yes", "--shell", env=PLAIN) as shell:
        shell.type("PS1='in''side> '\n")
        shell.answer("inside> ", "sleep 100 & jobs\n")
        shell.answer(r"\[1\].* Running +sleep 100", "sleep 200\n")
        shell.read_until("sleep 200")
        # The shell hands the terminal to the job a moment after it has echoed the line.
        assert comes_true(lambda: shell.foreground_inside() == "sleep")
        shell.type(CTRL_Z)
        shell.answer(r"\[2\].* Stopped +sleep 200", "fg\n")
        shell.read_until("^sleep 200")
        assert comes_true(lambda: shell.foreground_inside() == "sleep")
        shell.type(CTRL_C)
        shell.answer("inside> ", "exit 3\n")
        assert shell.wait() == 3


def test_terminal_belongs_to_the_caller_again_after_a_shell_in_the_box(box: Box) -> None:
    """A script that goes on after the box must be able to read from the terminal."""
    box.account.write(box.project / "script", '"$1" --yes --shell\necho ended\nread line\necho "read: $line"\n')
    with terminal(box.account, "sh", "script", claudebox_path(), cwd=box.project, env=PLAIN) as script:
        script.type("PS1='in''side> '\n")
        script.answer("inside> ", "exit\n")
        script.answer("^ended", "next line\n")
        script.read_until("^read: next line")


# Ctrl-C and Ctrl-\ mean to the program in the box what they mean to it outside.


FINISHES_ITS_WORK = """\
import os, signal, time

def say(text):
    os.write(1, text.encode() + b"\\n")  # unlike print, at home in a handler

def finish(number, frame):
    say(f"caught {number}")
    time.sleep(0.3)
    say("work finished")
    os._exit(5)

signal.signal(signal.SIGINT, finish)
signal.signal(signal.SIGQUIT, finish)
say("ready " + os.readlink("/proc/self/ns/pid"))
while True:
    time.sleep(0.1)  # pause() would forget a signal that comes just before it
"""

TRAPS = """\
trap 'sleep 0.3; echo work finished; exit 5' INT
echo ready $(readlink /proc/self/ns/pid)
while :; do sleep 0.1; done
"""

HAS_NO_HANDLER = """\
echo ready $(readlink /proc/self/ns/pid)
exec sleep 1000
"""

READS_KEYS = """\
import sys, tty

tty.setraw(0)
print("ready", end="\\r\\n", flush=True)
key = sys.stdin.buffer.raw.read(1)
print(f"key {key!r}", end="\\r\\n", flush=True)
"""


def ready(terminal: Terminal) -> str:
    """The pid namespace of a program that has started."""
    return terminal.read_until(r"^ready (pid:\S+)")[1]


@pytest.mark.parametrize(("interpreter", "program"), [("python3", FINISHES_ITS_WORK), ("bash", TRAPS)])
def test_program_that_handles_ctrl_c_finishes_its_work(box: Box, interpreter: str, program: str) -> None:
    with program_terminal(box, interpreter, program) as terminal:
        ready(terminal)
        terminal.type(CTRL_C)
        terminal.read_until("work finished")
        assert terminal.wait() == 5


def test_second_ctrl_c_does_not_end_the_box_either(box: Box) -> None:
    patient = FINISHES_ITS_WORK.replace("time.sleep(0.3)", "signal.signal(2, signal.SIG_IGN); os.read(0, 1)")
    with program_terminal(box, "python3", patient) as terminal:
        ready(terminal)
        terminal.type(CTRL_C)
        terminal.answer("caught 2", CTRL_C)
        terminal.type("\n")
        terminal.read_until("work finished")
        assert terminal.wait() == 5


def test_ctrl_backslash_can_be_handled_too(box: Box) -> None:
    with program_terminal(box, "python3", FINISHES_ITS_WORK) as terminal:
        ready(terminal)
        terminal.type(CTRL_BACKSLASH)
        terminal.read_until("caught 3")
        assert terminal.wait() == 5


@pytest.mark.parametrize(("key", "status"), [(CTRL_C, 130), (CTRL_BACKSLASH, 131)])
def test_program_without_a_handler_dies_and_nothing_lingers(box: Box, key: str, status: int) -> None:
    with program_terminal(box, "sh", HAS_NO_HANDLER) as terminal:
        namespace = ready(terminal)
        terminal.type(key)
        assert terminal.wait() == status
        assert comes_true(lambda: processes_in(namespace) == [])


def test_ctrl_c_is_a_byte_to_a_full_screen_program(box: Box) -> None:
    with program_terminal(box, "python3", READS_KEYS) as terminal:
        terminal.answer("ready", CTRL_C)
        terminal.read_until(r"key b'\\x03'")
        assert terminal.wait() == 0


def test_no_signal_is_ignored_or_blocked_in_the_box(box: Box) -> None:
    """What `claudebox` ignores for its own sake, and what Python does, stays outside."""
    status = box.sh("cat /proc/self/status")
    masks = dict(line.split(":\t") for line in status.splitlines() if line.startswith(("SigIgn", "SigBlk")))
    assert masks == {"SigIgn": "0" * 16, "SigBlk": "0" * 16}
