"""The manual page, as its readers see it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tools.shared_files import manual_page

from claudebox import __version__
from claudebox.settings.table import BY_KEY, SETTINGS
from claudebox.view.help import EXIT_STATUSES

# It would be another one each time that it is built.
NO_DATE = re.compile(r"mandoc: \S+ WARNING: missing date, using \"\": TH\n")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "claudebox.1"
    file.write_text(manual_page())
    return file


@pytest.mark.mandoc
def test_manual_page_has_no_known_mistake(page: Path) -> None:
    said = subprocess.run(["mandoc", "-T", "lint", str(page)], capture_output=True, text=True, check=False)
    assert NO_DATE.sub("", said.stdout) == ""


@pytest.mark.mandoc
@pytest.mark.parametrize("reader", ["man -l", "mandoc -T utf8"])
def test_manual_page_shows_everything_of_the_table(page: Path, reader: str) -> None:
    environ = {"PATH": "/usr/bin:/bin", "MANWIDTH": "200", "LANG": "C.UTF-8", "MANPAGER": "cat"}
    done = subprocess.run([*reader.split(), str(page)], env=environ, capture_output=True, text=True, check=True)
    shown = re.sub(r".\x08", "", done.stdout)
    wanted = [setting.option for setting in SETTINGS if not setting.in_files_only]
    wanted += [setting.variable for setting in SETTINGS if setting.variable]
    wanted += [*BY_KEY, *(status for status, _ in EXIT_STATUSES), __version__]
    wanted += [setting.metavar.replace("…", "...") for setting in SETTINGS]
    assert [word for word in wanted if word not in shown] == []


def test_manual_page_is_plain_text() -> None:
    assert manual_page().isascii()
