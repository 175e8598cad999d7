"""The working day of docs/working-day.md, and the pictures of README.md, can be made again."""

import subprocess
import sys
from pathlib import Path
from xml.dom import minidom

import pytest

from conftest import CHECKOUT
from running.needs import needed

pytestmark = [pytest.mark.tmux, pytest.mark.exhaustive("a whole day, of which each part is tried elsewhere")]


@pytest.fixture
@needed("box", "git", "npm")
def play(claude: str) -> None:
    """What both scripts need."""


def run(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CHECKOUT / "tools" / script), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)


@pytest.mark.xdist_group("maya")
def test_working_day_goes_as_expected(play: None, tmp_path: Path) -> None:
    done = run("working_day.py", str(tmp_path / "day.md"))
    assert done.returncode == 0, done.stderr
    assert "a box around ~/src/shop" in (tmp_path / "day.md").read_text()


@pytest.mark.xdist_group("maya")
def test_pictures_are_made_from_what_a_terminal_shows(play: None, tmp_path: Path) -> None:
    done = run("pictures.py", str(tmp_path))
    assert done.returncode == 0, done.stderr
    for name, shown in (("first-screen", "Start? [Y/n]"), ("demo", "17 of 17 secrets stayed outside.")):
        picture = minidom.parse(str(tmp_path / f"{name}.svg"))
        lines = ["".join(_texts(line)) for line in picture.getElementsByTagName("text")]
        assert shown in lines


def _texts(node: minidom.Node) -> list[str]:
    if isinstance(node, minidom.Text):
        return [node.data]
    return [text for child in node.childNodes for text in _texts(child)]
