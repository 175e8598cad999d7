r"""Ctrl-C and Ctrl-\ mean to the program in the box what they mean to it outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from patience import comes_true
from terminal.pseudoterminal import CTRL_BACKSLASH, CTRL_C, Terminal, processes_in, program_terminal

if TYPE_CHECKING:
    from conftest import Box

pytestmark = pytest.mark.req("SAND-15")

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
        terminal.read_until("caught 2")
        terminal.type(CTRL_C)
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
        terminal.read_until("ready")
        terminal.type(CTRL_C)
        terminal.read_until(r"key b'\\x03'")
        assert terminal.wait() == 0


def test_no_signal_is_ignored_or_blocked_in_the_box(box: Box) -> None:
    """What `claudebox` ignores for its own sake, and what Python does, stays outside."""
    status = box.sh("cat /proc/self/status")
    masks = dict(line.split(":\t") for line in status.splitlines() if line.startswith(("SigIgn", "SigBlk")))
    assert masks == {"SigIgn": "0" * 16, "SigBlk": "0" * 16}
