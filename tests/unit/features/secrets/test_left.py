"""A masked file that was edited in a box which somebody ended by force is neither lost nor passed over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claudebox.features.secrets.act import tell_of_left

pytestmark = pytest.mark.req("SEC-01")
NOBODY = 1 << 30  # no process has this number


def leave(place: Path, process: int, content: str) -> Path:
    directory = place / f"{process}-0123456789ab"
    directory.mkdir(parents=True)
    (directory / "3").write_text(content)
    (directory / "3-given-.env").write_text("PORT=3000\n")
    return directory


def test_edited_file_of_a_killed_box_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = leave(tmp_path, NOBODY, "PORT=4000\n")
    tell_of_left(str(tmp_path))
    said = capsys.readouterr().err
    assert "claudebox: .env: a box that was ended by force had edited it; nothing landed\n" in said
    (kept,) = tmp_path.iterdir()
    assert kept.name in said
    assert kept.read_text() == "PORT=4000\n"
    assert not directory.exists()
    tell_of_left(str(tmp_path))
    assert capsys.readouterr().err == ""


def test_file_that_was_not_edited_is_removed_without_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leave(tmp_path, NOBODY, "PORT=3000\n")
    tell_of_left(str(tmp_path))
    assert (capsys.readouterr().err, list(tmp_path.iterdir())) == ("", [])


def test_file_of_a_box_that_runs_is_left_alone(tmp_path: Path) -> None:
    directory = leave(tmp_path, os.getpid(), "PORT=4000\n")
    tell_of_left(str(tmp_path))
    assert sorted(path.name for path in directory.iterdir()) == ["3", "3-given-.env"]


def test_symlink_in_its_place_is_not_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = leave(tmp_path / "edited", NOBODY, "x")
    (directory / "3").unlink()
    (directory / "3").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text("secret\n")
    tell_of_left(str(tmp_path / "edited"))
    assert capsys.readouterr().err == ""
    assert (tmp_path / "secret").read_text() == "secret\n"
