"""What claudebox does when the box has ended: nothing of it is left, and the terminal is at hand."""

import os
import subprocess
import sys
from contextlib import AbstractContextManager

import pytest

from conftest import CHECKOUT, Box
from terminal.pseudoterminal import PLAIN, Terminal, terminal

pytestmark = pytest.mark.req("SAND-15")

# claudebox with something to do after the box.
WITH_A_DEED = """
import os, sys
sys.path.insert(0, sys.argv.pop(1))
from claudebox import cli
from claudebox.output import terminal
from claudebox.overlay import report as act
from claudebox.errors import Problem

def deed():
    {deed}

def after(plan):
    {watch}
    return lambda may_ask: deed()

act.watch_project = after
cli.main()
"""
TAKES_LONG = """
    import time
    time.sleep(0.5)
    os.write(2, f"started by then: {os.path.exists('started')}\\n".encode())
"""
ASKS = """
    answer = terminal.ask("Keep it? ")
    os.write(2, f"answer: {answer}\\n".encode())
"""
LOOKS = """
    def box_of(pid):
        try:
            return os.readlink(f"/proc/{pid}/ns/pid")
        except OSError:
            return ""
    left = [pid for pid in os.listdir("/proc") if pid.isdigit() and box_of(pid) == open("box").read().strip()]
    os.write(2, f"left: {left}\\n".encode())
"""
STARTS_A_PROGRAM = """
    import subprocess
    done = subprocess.run(["sh", "-c", "id -u; ps -o ignored= -p $$"], stdout=subprocess.PIPE, text=True)
    os.write(2, f"started: {done.stdout.split()}\\n".encode())
"""
FAILS = """
    raise Problem("cannot report", "look yourself")
"""
# Many processes that do not want to end, one in a session of its own.
CROWD = """
readlink /proc/self/ns/pid >box
trap '' HUP INT QUIT TERM
for each in 1 2 3 4 5 6 7 8; do sleep 1000 & setsid sleep 1000 & done
exit 7
"""


def command(deed: str, *arguments: str, watch: str = "pass") -> tuple[str, ...]:
    python = os.path.realpath(sys.executable)
    code = WITH_A_DEED.replace("{deed}", deed).replace("{watch}", watch)
    return (python, "-I", "-c", code, str(CHECKOUT / "src"), "--yes", *arguments)


def run(box: Box, deed: str, *program: str) -> subprocess.CompletedProcess[str]:
    return box.account.run(*command(deed, "--run", *program), cwd=box.project)


def at_a_terminal(box: Box, deed: str, *arguments: str) -> AbstractContextManager[Terminal]:
    return terminal(box.account, *command(deed, *arguments), cwd=box.project, env=PLAIN)


@pytest.mark.parametrize("network", ["full", pytest.param("inet", marks=pytest.mark.network)])
def test_program_does_not_start_before_the_first_look(box: Box, network: str) -> None:
    arguments = command("pass", "--network", network, "--run", "touch", "started", watch=TAKES_LONG)
    result = box.account.run(*arguments, cwd=box.project)
    assert (result.returncode, result.stderr.splitlines()[-1]) == (0, "started by then: False")
    assert (box.project / "started").exists()


def test_failed_look_lets_nothing_start(box: Box) -> None:
    arguments = command("pass", "--run", "touch", "started", watch=FAILS)
    result = box.account.run(*arguments, cwd=box.project)
    assert result.returncode == 125
    assert "error: cannot report" in result.stderr
    assert not (box.project / "started").exists()


def test_nothing_of_the_box_is_left_by_then(box: Box) -> None:
    for _ in range(2):
        result = run(box, LOOKS, "sh", "-c", CROWD)
        assert (result.returncode, result.stderr.splitlines()[-1]) == (7, "left: []")


@pytest.mark.ps
def test_program_started_afterwards_is_an_ordinary_one(box: Box) -> None:
    result = run(box, STARTS_A_PROGRAM, "true")
    # Python's own children ignore SIGPIPE and SIGXFSZ no more; nothing else is ignored for our sake.
    assert result.stderr.splitlines()[-1] == f"started: ['{box.account.uid}', '0000000000000000']"


def test_question_can_be_asked_after_a_shell_in_the_box(box: Box) -> None:
    with at_a_terminal(box, ASKS, "--shell") as opened:
        opened.type("PS1='in''side> '\n")
        opened.answer("inside> ", "exit 3\n")
        opened.answer("Keep it", "y\n")
        opened.read_until("answer: y")
        assert opened.wait() == 3


def test_reader_of_the_output_does_not_wait_for_the_question(box: Box) -> None:
    reading, writing = os.pipe()
    arguments = command(ASKS, "--run", "echo", "data")
    with terminal(box.account, *arguments, cwd=box.project, env=PLAIN, stdout=writing) as opened:
        os.close(writing)
        with os.fdopen(reading) as output:
            assert output.read() == "data\n"
        opened.answer("Keep it", "n\n")
        assert opened.wait() == 0


def test_failure_is_a_failure_of_claudebox(box: Box) -> None:
    result = run(box, FAILS, "true")
    assert (result.returncode, result.stderr.splitlines()[-3:]) == (
        125,
        ["error: cannot report", "", "hint: look yourself"],
    )
