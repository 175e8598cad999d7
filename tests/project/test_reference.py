"""What docs say from tables of the program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import reference
from claudebox.view.help import EXIT_STATUSES

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def test_reference_is_what_the_table_says() -> None:
    command = [sys.executable, str(CHECKOUT / "tools" / "settings-reference")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (CHECKOUT / "docs" / "settings.md").read_text() == printed, "tools/settings-reference >docs/settings.md"


def test_exit_statuses_are_those_of_the_help() -> None:
    assert reference.EXIT_STATUSES == EXIT_STATUSES
