"""ruff and mypy have nothing to say."""

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import CHECKOUT


@pytest.mark.long
@pytest.mark.parametrize("command", ["mypy", "ruff check", "ruff format --check"])
def test_linter_has_nothing_to_say(command: str) -> None:
    program, *words = command.split()
    linter = str(Path(sys.executable).with_name(program))
    done = subprocess.run([linter, *words], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
