"""What is written down from the table of settings, in docs and for shells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from claudebox.problem import Problem
from claudebox.settings.table import SETTINGS
from claudebox.view.completion import SHELLS, completion

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def test_reference_is_what_the_table_says() -> None:
    command = [sys.executable, str(CHECKOUT / "tools" / "settings-reference")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (CHECKOUT / "docs" / "settings.md").read_text() == printed, "tools/settings-reference >docs/settings.md"


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_every_option(shell: str) -> None:
    text = completion(shell)
    options = [setting.option for setting in SETTINGS if not setting.in_files_only]
    spelled = [f"-l {option[2:]}" if shell == "fish" else option for option in options]
    assert [option for option in spelled if option not in text] == []


def test_completion_completes_in_bash() -> None:
    script = completion("bash") + (
        "COMP_WORDS=(claudebox --network i); COMP_CWORD=2; _claudebox; echo ${COMPREPLY[@]}\n"
        "COMP_WORDS=(claudebox --mou); COMP_CWORD=1; _claudebox; echo ${COMPREPLY[@]}\n"
        "COMP_WORDS=(claudebox fix); COMP_CWORD=1; COMPREPLY=(); _claudebox; echo ${COMPREPLY[@]}\n"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["inet", "--mount-ro --mount-rw", ""]


def test_completion_for_an_unknown_shell_is_refused() -> None:
    with pytest.raises(Problem, match="not a known shell"):
        completion("csh")
