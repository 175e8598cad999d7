"""When claudebox is ended from outside, the box ends with it: nothing stays behind to read what is typed next."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from terminal.pseudoterminal import Terminal, comes_true, name_of, processes_in, program_terminal, session_of

if TYPE_CHECKING:
    from conftest import Box

pytestmark = pytest.mark.req("SAND-15")

AT_ONCE = 3.0  # seconds, on a busy machine

# Children that ignore polite signals, one of them in a session of its own.
HOLDS_ON = """\
trap '' HUP INT QUIT TERM
sleep 1000 &
setsid sleep 1000 &
while [ "$(ps -e -o comm= | grep -c sleep)" != 2 ]; do :; done
echo ready $(readlink /proc/self/ns/pid)
wait
"""


def ready(terminal: Terminal) -> str:
    """The pid namespace of a box whose children are all there."""
    namespace = terminal.read_until(r"^ready (pid:\S+)")[1]
    assert sorted(map(name_of, processes_in(namespace))) == ["bwrap", "sh", "sleep", "sleep"]
    return namespace


def nothing_remains(namespace: str) -> bool:
    return comes_true(lambda: processes_in(namespace) == [], patience=AT_ONCE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_signal_to_claudebox_ends_the_whole_box(box: Box, number: signal.Signals) -> None:
    with program_terminal(box, "sh", HOLDS_ON) as terminal:
        namespace = ready(terminal)
        terminal.signal(number)
        assert terminal.wait(AT_ONCE) == 128 + number
        assert nothing_remains(namespace)


def test_closed_terminal_ends_the_whole_box(box: Box) -> None:
    with program_terminal(box, "sh", HOLDS_ON) as terminal:
        namespace = ready(terminal)
        terminal.hang_up()
        assert terminal.process.wait(AT_ONCE) == -signal.SIGHUP
        assert nothing_remains(namespace)


def test_end_of_the_program_ends_what_it_left_behind(box: Box) -> None:
    with program_terminal(box, "sh", HOLDS_ON.replace("\nwait", "\nread line; exit 4")) as terminal:
        namespace = ready(terminal)
        terminal.type("\n")
        assert terminal.wait() == 4
        assert nothing_remains(namespace)


def test_no_process_of_ours_stays_between_the_terminal_and_the_program(box: Box) -> None:
    with program_terminal(box, "sh", "echo ready; exec sleep 1000") as terminal:
        terminal.read_until("^ready")
        assert comes_true(lambda: [name_of(pid) for pid in session_of(terminal.pid)] == ["bwrap", "bwrap", "sleep"])
        assert session_of(terminal.pid)[0] == terminal.pid
