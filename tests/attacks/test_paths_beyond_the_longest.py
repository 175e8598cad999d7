"""An agent makes directories until no path leads there any more, only steps: the kernel takes paths of 4096 bytes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from conftest import CLAUDEBOX

if TYPE_CHECKING:
    from conftest import Account, Box

CANARY = "hunter2-canary-41d7"
REFUSED = 125
DOWN = """
import os, sys
home = os.getcwd()
for _ in range(25):
    if not os.path.isdir("d" * 200):
        os.mkdir("d" * 200)
    os.chdir("d" * 200)
"""
HIDE = DOWN + "os.rename(home + '/conf', 'conf')\n"
LOOK = DOWN + "print(open('conf/.env').read())\n"


@pytest.mark.req("SEC-01")
def test_secret_is_not_shown_where_no_path_leads(box: Box, account: Account) -> None:
    account.write(box.project / "conf/.env", f"PASSWORD={CANARY}\n")
    account.write(account.home / ".claudebox/config.toml")  # there is a state, so that masks are remembered
    assert CANARY not in box.sh("cat conf/.env")
    assert box.inside("python3", "-c", HIDE).returncode == 0
    # The attack works without a box: it is there, and can be reached step by step.
    assert CANARY in account.run("/usr/bin/python3", "-c", LOOK, cwd=box.project).stdout
    seen = box.inside("python3", "-c", LOOK)
    assert CANARY not in seen.stdout + seen.stderr
    assert seen.returncode == REFUSED, seen.stderr


@pytest.mark.req("FAIL-01")
def test_project_to_which_no_path_leads_is_refused(box: Box, account: Account) -> None:
    step = f"{DOWN}\nos.execv(sys.argv[1], sys.argv[1:])"
    words = (CLAUDEBOX, "--yes", "--run", "touch", "started")
    result = account.run("/usr/bin/python3", "-c", step, *words, cwd=box.project)
    assert (result.returncode, "too long" in " ".join(result.stderr.split())) == (REFUSED, True), result.stderr
    assert os.listdir(box.project / ("d" * 200)) == ["d" * 200]
