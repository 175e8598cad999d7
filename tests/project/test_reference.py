"""What docs say from the table of settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def test_reference_is_what_the_table_says() -> None:
    command = [sys.executable, str(CHECKOUT / "tools" / "settings-reference")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (CHECKOUT / "docs" / "settings.md").read_text() == printed, "tools/settings-reference >docs/settings.md"


def test_reference_of_statuses_and_json_is_what_the_tables_say() -> None:
    command = [sys.executable, str(CHECKOUT / "tools" / "reference")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (CHECKOUT / "docs" / "reference.md").read_text() == printed, "tools/reference >docs/reference.md"
