"""Standard input and output: pipes, files, no terminal at all, and readers that leave early."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from conftest import Account, Box
from terminal.pseudoterminal import CTRL_D, PLAIN, claudebox_path, program_terminal, terminal

pytestmark = pytest.mark.req("SAND-15")


def run_shell(account: Account, script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A line of shell on the host, with claudebox as $1."""
    return account.run("bash", "-c", script, "bash", claudebox_path(), cwd=cwd)


def test_data_passes_through_pipes_unchanged(box: Box) -> None:
    script = """
        head -c 10000000 /dev/urandom > sent
        cat sent | "$1" --yes --run cat | cat > received
        echo ${PIPESTATUS[*]}
        cmp sent received && echo same
    """
    assert run_shell(box.account, script, box.project).stdout == "0 0 0\nsame\n"


def test_audit_never_mixes_with_the_data(box: Box) -> None:
    result = box.inside("echo", "data")
    assert (result.stdout, "a box around" in result.stderr) == ("data\n", True)


def test_output_may_be_a_pipe_while_the_input_is_the_terminal(box: Box) -> None:
    read_end, write_end = os.pipe()
    with program_terminal(box, "sh", 'read line; echo "got $line"', stdout=write_end) as opened:
        os.close(write_end)
        opened.type("words\n")
        with os.fdopen(read_end) as output:
            assert output.read() == "got words\n"
        assert opened.wait() == 0


def test_works_without_any_terminal(box: Box) -> None:
    result = run_shell(box.account, 'setsid --wait "$1" --yes --run sh -c "cat; tty" < /dev/null', box.project)
    assert (result.returncode, result.stdout) == (1, "not a tty\n")


def test_reader_that_leaves_early_ends_the_writer_in_the_box(box: Box) -> None:
    assert box.sh('bash -c "yes | head -1; echo \\${PIPESTATUS[*]}"') == "y\n141 0\n"


def test_reader_that_leaves_early_ends_the_box(box: Box) -> None:
    script = '"$1" --yes --run yes 2> /dev/null | head -1; echo ${PIPESTATUS[*]}'
    assert run_shell(box.account, script, box.project).stdout == "y\n141 0\n"


@pytest.mark.parametrize("arguments", ["--dry-run --shell", "--audit --shell", "--help", "--dry-run --json --shell"])
def test_reader_that_leaves_early_sees_no_traceback(box: Box, arguments: str) -> None:
    """The reader is gone before the first byte, so that every write fails."""
    script = f'mkfifo gone; {{ read x <gone; "$1" {arguments}; echo $? >&2; }} | {{ exec <&-; echo >gone; }}'
    assert run_shell(box.account, script, box.project).stderr == "141\n"


def test_full_disk_is_an_error_without_a_traceback(box: Box) -> None:
    result = run_shell(box.account, '"$1" --dry-run --shell > /dev/full', box.project)
    assert (result.returncode, "Traceback" in result.stderr, "No space left" in result.stderr) == (125, False, True)


# The size of the terminal, now and when it changes.


REPORT_SIZE = """\
import os, signal, time

def report(*_):
    columns, rows = os.get_terminal_size(0)
    os.write(1, f"size {rows}x{columns}\\n".encode())

signal.signal(signal.SIGWINCH, report)
report()
while True:
    time.sleep(0.1)  # pause() would forget a signal that comes just before it
"""


@pytest.mark.req("SAND-15")
def test_resize_reaches_the_program(box: Box) -> None:
    with program_terminal(box, "python3", REPORT_SIZE) as terminal:
        terminal.read_until("size 24x80")
        terminal.resize(50, 132)
        terminal.read_until("size 50x132")
        terminal.resize(10, 40)
        terminal.read_until("size 10x40")


# What was typed before the box started is what the program reads.


@pytest.mark.req("TTY-01")
@pytest.mark.parametrize("is_boxed", [False, True], ids=["control", "box"])
@pytest.mark.parametrize("typed", ["", "one\n", f"one\ntw{CTRL_D}o\n"], ids=["nothing", "line", "part of a line"])
def test_end_of_input_that_was_typed_ahead_is_one(box: Box, typed: str, is_boxed: bool) -> None:
    """`script </dev/null` types one at once: the program would get a zero byte, and wait for ever."""
    box.account.write(box.project / "program", "import sys; print([sys.stdin.read()])")
    start = (claudebox_path(), *box.options, "--yes", "--run") if is_boxed else ()
    program = shlex.join([*start, "python3", "program"])
    script = f"echo waiting; until [ -e typed ]; do sleep 0.01; done; exec {program}"
    with terminal(box.account, "sh", "-c", script, cwd=box.project, env=PLAIN) as opened:
        opened.answer("waiting", typed + CTRL_D)
        box.account.write(box.project / "typed", "")
        opened.read_until(re.escape(str([typed.replace(CTRL_D, "")])))
        assert opened.wait() == 0
