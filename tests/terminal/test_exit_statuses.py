"""$? after claudebox: the program's own, or one that says who failed."""

from pathlib import Path

import pytest

import claudebox
from conftest import Box
from terminal.pseudoterminal import terminal

pytestmark = pytest.mark.req("SAND-14")

SOURCE = Path(claudebox.__file__).parent.parent


@pytest.mark.parametrize("status", [0, 1, 125, 255])
def test_status_of_the_program_is_ours(box: Box, status: int) -> None:
    assert box.inside("sh", "-c", f"exit {status}").returncode == status


@pytest.mark.parametrize("number", [1, 2, 3, 9, 11, 15])
def test_program_killed_by_a_signal_gives_128_and_the_signal(box: Box, number: int) -> None:
    assert box.inside("sh", "-c", f"kill -{number} $$").returncode == 128 + number


# As some servers and editors do for themselves, and forget that what they start inherits it.
PASSES_ON = """\
import os, signal, sys
if sys.argv[1] == "blocked":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
else:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", *sys.argv[2:]])
"""
# Without the shell of a checkout, which would undo it.
STARTS = "import sys; sys.path.insert(0, sys.argv.pop(1)); from claudebox.cli import main; main()"


@pytest.mark.parametrize("how", ["blocked", "ignored"])
@pytest.mark.parametrize("where", ["at a terminal", "without one"])
def test_caller_that_does_not_hear_of_children_gets_the_status_too(box: Box, how: str, where: str) -> None:
    words = ["python3", "-c", PASSES_ON, how, STARTS, str(SOURCE)]
    words += ["--yes", "--run", "sh", "-c", "sleep 0.1; exit 7"]
    if where == "without one":
        assert box.account.run(*words, cwd=box.project).returncode == 7
        return
    with terminal(box.account, *words, cwd=box.project) as opened:
        assert opened.wait() == 7


def test_command_that_cannot_be_started_gives_127_or_126(box: Box) -> None:
    result = box.inside("no-such-command")
    assert (result.returncode, "no-such-command" in result.stderr.splitlines()[-1]) == (127, True)
    assert box.inside("./README.md").returncode == 126


def test_refusal_and_wrong_usage_give_125(box: Box) -> None:
    assert box.inside("true", cwd="/").returncode == 125
    assert box.claudebox("--mount-ro").returncode == 125


@pytest.mark.req("FAIL-01", "SAND-01")
def test_claude_that_cannot_be_started_gives_127_or_126_and_else_its_own(box: Box) -> None:
    place = box.account.home / "bin" / "claude"

    def status(text: str, mode: int) -> int:
        return named(str(box.account.write(place, text, mode=mode)))

    def named(claude: str) -> int:
        return box.claudebox("--yes", env={"CLAUDEBOX_CLAUDE": claude}).returncode

    assert named("/no/such/claude") == 127
    result = box.claudebox("--yes", env={"PATH": "/usr/bin:/bin"})
    assert (result.returncode, result.stderr.splitlines()[0]) == (127, "error: claude is not installed")
    assert status("#!/bin/sh\n", 0o644) == 126
    result = box.claudebox("--yes", env={"PATH": f"{place.parent}:/usr/bin:/bin"})
    assert (result.returncode, str(place) in result.stderr) == (126, True), "as a shell answers"
    for line in ("#!/no/such/node", "#!/usr/bin/env no-such-interpreter"):
        assert status(f"{line}\n", 0o755) == 126
    assert status("#!/bin/sh\nexit 42\n", 0o755) == 42
