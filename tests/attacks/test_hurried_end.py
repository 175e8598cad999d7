"""What comes after a box is done, however hurriedly the user leaves: an agent can wait for just that."""

import os
import signal
import time
from pathlib import Path

import pytest

from conftest import Account, Box, make_repository
from patience import PATIENCE
from terminal.pseudoterminal import CTRL_BACKSLASH, CTRL_C, Terminal, claudebox_path, program_terminal

pytestmark = pytest.mark.req("INST-02", "SAND-15")

PAUSE = 0.001  # seconds between two signals of somebody who is in a hurry
# For a moment the program has ended and the box has not: a signal that comes then ends the box.
ENDED_BY_TERM = (5, 128 + signal.SIGTERM)
# With its log, git writes the message of the next commit where this leads.
DETOUR = ".git/logs/HEAD"
LEAVES_A_DETOUR = f"""\
import os, signal, time

heard = []
for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
    signal.signal(number, lambda *_: heard.append(1))
os.write(2, b"ready\\r\\n")
while not heard:
    time.sleep(0.01)  # pause() would forget a signal that comes just before it
os.remove("{DETOUR}")
os.symlink("../victim", "{DETOUR}")
if os.path.exists(".vscode"):
    open(".vscode/tasks.json", "w").write("{{}}")
os._exit(5)
"""


@pytest.fixture
def repository(account: Account, project: Path) -> Path:
    return make_repository(account, project)


def is_mended(repository: Path) -> bool:
    return not (repository / DETOUR).is_symlink()


def keep_signalling(opened: Terminal, number: signal.Signals) -> int:
    """Send the signal again and again, until nobody is left to hear it; how that one ended."""
    deadline = time.monotonic() + PATIENCE
    while opened.process.poll() is None and time.monotonic() < deadline:
        opened.signal(number)
        time.sleep(PAUSE)
    return opened.wait()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_signals_that_come_one_after_the_other_end_nothing_early(
    box: Box, repository: Path, number: signal.Signals
) -> None:
    """A window that is closed sends several: the shell does, and the kernel when the shell has ended."""
    with program_terminal(box, "python3", LEAVES_A_DETOUR) as opened:
        opened.read_until("^ready")
        status, shown = keep_signalling(opened, number), opened.read_all()
    assert is_mended(repository), shown
    assert status in (5, 128 + number)


def test_many_signals_are_passed_on(box: Box) -> None:
    """One may come while another one still loads what it needs, or looks for the program, and so on without end."""
    source = "import os, signal, time\nsignal.signal(signal.SIGTERM, lambda *_: None)\nprint('ready', flush=True)\n"
    source += "while not os.path.exists('go'): time.sleep(0.01)\nos._exit(5)\n"
    with program_terminal(box, "python3", source) as opened:
        opened.read_until("^ready")
        for _ in range(1500):
            opened.signal(signal.SIGTERM)
            time.sleep(PAUSE / 10)
        box.account.write(box.project / "go")
        assert opened.wait() in ENDED_BY_TERM


@pytest.mark.parametrize("key", [CTRL_C, CTRL_BACKSLASH], ids=["interrupt", "quit"])
def test_keys_that_interrupt_leave_nothing_out_without_a_word(box: Box, repository: Path, key: str) -> None:
    with program_terminal(box, "python3", LEAVES_A_DETOUR) as opened:
        opened.read_until("^ready")
        deadline = time.monotonic() + PATIENCE
        while opened.process.poll() is None and time.monotonic() < deadline:
            opened.type(key)
            time.sleep(PAUSE)
        status, shown = opened.wait(), opened.read_all()
    # The terminal echoes keys between any two letters.
    assert is_mended(repository) or "claudebox: interrupted" in shown.replace("^\\", "").replace("^C", "")
    assert status == 5, "it is up to the program"


def test_nobody_has_to_hear_what_is_said_about_a_review(box: Box, account: Account, repository: Path) -> None:
    """To say it on a terminal that is gone fails, and so did all that came after it."""
    account.write(repository / ".vscode/settings.json", "{}\n")
    with program_terminal(box, "python3", LEAVES_A_DETOUR) as opened:
        opened.read_until("^ready")
        opened.hang_up()
        opened.process.wait(PATIENCE)
    assert list(account.home.glob(".claudebox/instances/*/layers/*/upper/.vscode/tasks.json"))
    assert is_mended(repository)


def test_nobody_has_to_read_the_errors(box: Box, account: Account, repository: Path) -> None:
    account.write(repository / ".vscode/settings.json", "{}\n")
    account.write(repository / "program", LEAVES_A_DETOUR)
    reader, writer = os.pipe()
    words = (claudebox_path(), *box.options, "--yes", "--quiet", "--run", "python3", "program")
    with account.running(*words, cwd=repository, stderr=writer) as process:
        os.close(writer)
        assert b"ready" in os.read(reader, 100)
        os.close(reader)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 5
    assert is_mended(repository)
