"""A program signals its process group, to which a script that started claudebox may belong."""

import os
import signal
import subprocess
import sys

import pytest

from conftest import CHECKOUT, CLAUDEBOX, Account, Box
from patience import PATIENCE, comes_true

pytestmark = pytest.mark.req("SAND-15")

# claudebox on a kernel before Linux 6.12, and without what it does instead.
WITHOUT_SCOPES = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from claudebox import cli
from claudebox.process import isolation
isolation.SCOPES_SINCE = 1000
{change}
cli.main()
"""
SHARES_THE_GROUP = "import os; os.setpgid = lambda *_: None"
PYTHON = os.path.realpath(sys.executable)


def older(change: str = "") -> tuple[str, ...]:
    return (PYTHON, "-I", "-c", WITHOUT_SCOPES.replace("{change}", change), str(CHECKOUT / "src"))


OLD = older()
UNPROTECTED = older(SHARES_THE_GROUP)


def script(box: Box, claudebox: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """A script, without a terminal, in which the box kills whatever it can."""
    text = '"$@" --yes --run sh -c "kill -s KILL 0"; echo "status $?"'
    return box.account.run("sh", "-c", text, "sh", *claudebox, cwd=box.project)


@pytest.mark.parametrize("claudebox", [(CLAUDEBOX,), OLD], ids=["this kernel", "before 6.12"])
def test_script_goes_on(box: Box, claudebox: tuple[str, ...]) -> None:
    assert script(box, claudebox).stdout == "status 137\n"


def test_script_is_killed_where_nothing_keeps_the_program_from_it(box: Box) -> None:
    assert script(box, UNPROTECTED).returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP])
def test_signal_to_the_group_reaches_the_program_all_the_same(box: Box, account: Account, number: int) -> None:
    trap = "trap 'echo caught; exit 5' INT QUIT TERM HUP; echo >ready; while :; do sleep 0.05; done"
    words = (*OLD, "--yes", "--run", "bash", "-c", trap)
    with account.running(*words, cwd=box.project, stdout=subprocess.PIPE) as process:
        assert comes_true((box.project / "ready").exists)
        os.killpg(process.pid, number)
        assert process.communicate(timeout=PATIENCE)[0] == "caught\n"
        assert process.returncode == 5
