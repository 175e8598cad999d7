"""A signal for claudebox is the program's. When claudebox dies, nothing stays behind to read what is typed next."""

import os
import signal

import pytest

from claudebox.sandbox.gate import program_of
from conftest import Box
from patience import PATIENCE, comes_true
from terminal.pseudoterminal import (
    Terminal,
    children_of,
    claudebox_path,
    claudebox_terminal,
    leader_of,
    name_of,
    processes_in,
    program_terminal,
    session_of,
    shell_terminal,
    state_of,
)
from terminal.pseudoterminal import terminal as pseudoterminal

pytestmark = pytest.mark.req("SAND-15")

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
    return comes_true(lambda: processes_in(namespace) == [])


FINISHES_ITS_WORK = """\
import os, signal, time

def finish(number, frame):
    os.write(1, f"caught {number}\\n".encode())
    time.sleep(0.3)
    os.write(1, b"work finished\\n")
    os._exit(5)

signal.signal(signal.SIGTERM, finish)
signal.signal(signal.SIGHUP, finish)
print("ready", flush=True)
while True:
    time.sleep(0.1)  # pause() would forget a signal that comes just before it
"""

HAS_NO_HANDLER = """\
sleep 1000 &
echo ready $(readlink /proc/self/ns/pid)
exec sleep 1000
"""

# What a full-screen program has switched on when it is killed.
FULL_SCREEN = """\
import os, time, tty
tty.setraw(0)
os.write(1, b"\\x1b[?1049h\\x1b[?25lready\\r\\n")
time.sleep(1000)
"""


@pytest.mark.req("SAND-14", "TTY-01")
@pytest.mark.parametrize("who", ["box", "program"])
def test_who_is_killed_from_outside_says_so_and_leaves_a_sane_terminal(shop: Box, who: str) -> None:
    """As the kernel does when memory runs out: a program that is gone cannot tell why."""
    with program_terminal(shop, "python3", FULL_SCREEN) as terminal:
        terminal.read_until("ready")
        bwrap = next(pid for pid in children_of(terminal.pid) if name_of(pid) == "bwrap")
        os.kill(bwrap if who == "box" else program_of(bwrap), signal.SIGKILL)
        assert terminal.wait() == 128 + signal.SIGKILL
        assert terminal.echoes()
        shown = terminal.read_all()
    assert "\x1b[?1049l" in shown
    said = f"claudebox: the {who} was ended by signal 9 (Killed): perhaps memory ran out, or what --memory allows\r\n"
    assert shown.rpartition("\x1b")[2].partition("claudebox:")[1:] == ("claudebox:", said.removeprefix("claudebox:"))


def test_signal_that_was_sent_on_purpose_is_not_explained(shop: Box) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        done = shop.claudebox("--yes", "--quiet", "--run", "sh", "-c", f"kill -{number} $$")
        assert (done.returncode, done.stderr) == (128 + number, "")


def test_prompt_after_ctrl_c_starts_a_line_of_its_own(shop: Box) -> None:
    with program_terminal(shop, "sh", "echo ready; exec sleep 1000") as terminal:
        terminal.answer("ready", "\x03")
        assert terminal.wait() == 128 + signal.SIGINT
        assert terminal.read_all().endswith("^C\r\n")


POLITE = [signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", POLITE)
def test_signal_to_claudebox_reaches_the_program(box: Box, number: signal.Signals) -> None:
    with program_terminal(box, "python3", FINISHES_ITS_WORK) as terminal:
        terminal.read_until("^ready")
        terminal.signal(number)
        terminal.read_until(f"caught {number:d}")
        terminal.read_until("work finished")
        assert terminal.wait() == 5


@pytest.mark.parametrize("number", POLITE)
def test_signal_to_claudebox_ends_a_program_without_a_handler(box: Box, number: signal.Signals) -> None:
    with program_terminal(box, "sh", HAS_NO_HANDLER) as terminal:
        namespace = terminal.read_until(r"^ready (pid:\S+)")[1]
        terminal.signal(number)
        assert terminal.wait() == 128 + number
        assert nothing_remains(namespace)


@pytest.mark.parametrize("number", POLITE)
@pytest.mark.ps
def test_program_may_ignore_it_as_outside(box: Box, number: signal.Signals) -> None:
    with program_terminal(box, "sh", HOLDS_ON.replace("\nwait", "\nread line; exit 4")) as terminal:
        ready(terminal)
        terminal.signal(number)
        terminal.type("\n")
        assert terminal.wait() == 4


def test_program_that_was_to_ignore_hangups_does(box: Box) -> None:
    script = f"trap '' HUP; exec '{claudebox_path()}' --yes --run sh program"
    box.account.write(box.project / "program", "echo ready; read line; exit 4")
    with pseudoterminal(box.account, "sh", "-c", script, cwd=box.project) as terminal:
        terminal.read_until("^ready")
        terminal.signal(signal.SIGHUP)
        terminal.type("\n")
        assert terminal.wait() == 4


@pytest.mark.parametrize("options", [(), ("--network", "none")], ids=["full", "none"])
@pytest.mark.ps
def test_killed_claudebox_takes_the_whole_box_with_it(box: Box, options: tuple[str, ...]) -> None:
    box.account.write(box.project / "program", HOLDS_ON)
    with claudebox_terminal(box, "--yes", *options, "--run", "sh", "program") as terminal:
        namespace = ready(terminal)
        terminal.signal(signal.SIGKILL)
        assert terminal.wait() == 128 + signal.SIGKILL
        assert nothing_remains(namespace)


def test_closed_terminal_ends_the_whole_box(box: Box) -> None:
    with program_terminal(box, "sh", HAS_NO_HANDLER) as terminal:
        namespace = terminal.read_until(r"^ready (pid:\S+)")[1]
        terminal.hang_up()
        assert terminal.process.wait(PATIENCE) == 128 + signal.SIGHUP
        assert nothing_remains(namespace)


@pytest.mark.parametrize("suspends", [False, True])
def test_box_that_was_disowned_outlives_the_window(box: Box, suspends: bool) -> None:
    """If it suspends itself, nobody could continue it, so it goes on, as outside."""
    source = "import os, signal, time\nopen('ready', 'w')\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
    source += "os.kill(0, signal.SIGTSTP)\n" * suspends + "open('done', 'w')\n"
    start = "claudebox --yes --run python3 program </dev/null >log 2>&1 & disown\n"
    with shell_terminal(box, program=source, typed=start) as shell:
        assert comes_true((box.project / "ready").exists)
        shell.hang_up()
        assert shell.process.wait(PATIENCE) != 0
        box.account.write(box.project / "go")
        assert comes_true((box.project / "done").exists)


TALKS_UNTIL_HANG_UP = """\
import os, signal, time

def finish(*_):
    time.sleep(0.3)
    open("done", "w")
    os._exit(0)

signal.signal(signal.SIGHUP, finish)
print("ready", flush=True)
while True:
    time.sleep(0.001)
    try:
        os.write(1, b".")
    except OSError:
        pass
"""


def test_program_that_talks_when_the_terminal_is_closed_finishes_its_work(box: Box) -> None:
    with program_terminal(box, "python3", TALKS_UNTIL_HANG_UP) as terminal:
        terminal.read_until("^ready")
        # So that it finds both at once: that there is something to show, and nobody to show it to.
        terminal.signal(signal.SIGSTOP)
        assert comes_true(lambda: state_of(terminal.pid) == "T")
        terminal.hang_up()
        assert comes_true((box.project / "done").exists)


@pytest.mark.ps
@pytest.mark.root_repeats("it waits, and a terminal hangs up on everybody alike")
def test_closed_terminal_ends_a_program_that_holds_on(box: Box) -> None:
    with program_terminal(box, "sh", HOLDS_ON) as terminal:
        namespace = ready(terminal)
        terminal.hang_up()
        assert terminal.process.wait(PATIENCE) == -signal.SIGHUP
        assert nothing_remains(namespace)


@pytest.mark.ps
def test_end_of_the_program_ends_what_it_left_behind(box: Box) -> None:
    with program_terminal(box, "sh", HOLDS_ON.replace("\nwait", "\nread line; exit 4")) as terminal:
        namespace = ready(terminal)
        terminal.type("\n")
        assert terminal.wait() == 4
        assert nothing_remains(namespace)


def test_only_three_small_processes_stay_outside(box: Box) -> None:
    with program_terminal(box, "sh", "echo ready; exec sleep 1000") as terminal:
        terminal.read_until("^ready")
        assert session_of(terminal.pid) == [terminal.pid]
        names = ["bwrap", "bwrap", "python3", "python3", "sleep"]
        inside = leader_of(terminal.pid)
        assert comes_true(lambda: sorted(name_of(pid)[:7] for pid in session_of(inside)) == names)
