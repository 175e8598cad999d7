"""What is found of saved conversations, in a directory where the agent may have written anything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claudebox.features.claude import conversations
from claudebox.features.claude.conversations import directory_name, is_identifier, saved_conversations

PROJECT = "/home/ada/src/shop.js"
NAME = "0123abcd-0123-4567-89ab-0123456789ab"
OTHER = "fedcba98-0123-4567-89ab-0123456789ab"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the conversations of the project are."""
    place = tmp_path / "projects" / "-home-ada-src-shop-js"
    place.mkdir(parents=True)
    return place


def test_conversations_are_found_by_their_names(tmp_path: Path, place: Path) -> None:
    for name in (f"{NAME}.jsonl", f"{NAME}.json", "notes.jsonl", f"{NAME.upper()}.jsonl", f"{OTHER}x.jsonl"):
        (place / name).touch()
    assert list(saved_conversations(str(tmp_path), PROJECT)) == [NAME]
    assert saved_conversations(str(tmp_path), "/home/ada/src/other") == {}


@pytest.mark.req("INST-01")
def test_nothing_is_followed_or_opened(tmp_path: Path, place: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (place / f"{NAME}.jsonl").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(place / f"{OTHER}.jsonl")
    assert saved_conversations(str(tmp_path), PROJECT) == {}


@pytest.mark.req("INST-01")
@pytest.mark.parametrize("part", ["projects", "-home-ada-src-shop-js"])
def test_directory_that_is_a_symlink_is_none(tmp_path: Path, place: Path, part: str) -> None:
    (place / f"{NAME}.jsonl").touch()
    real = place.parent if part == "projects" else place
    moved = real.rename(tmp_path / "moved")
    real.symlink_to(moved)
    assert saved_conversations(str(tmp_path), PROJECT) == {}


def test_look_is_bounded(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        (place / f"{NAME[:-1]}{number}.jsonl").touch()
    monkeypatch.setattr(conversations, "MOST_LOOKED_AT", 5)
    assert len(saved_conversations(str(tmp_path), PROJECT)) == 5


def test_newest_that_was_written_meanwhile_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    conversations._say_how_to_go_on({NAME: 5}, {NAME: 5})
    assert capsys.readouterr().err == ""
    conversations._say_how_to_go_on({NAME: 5}, {NAME: 7, OTHER: 6})
    assert capsys.readouterr().err == f"\nResume it in a box with:\nclaudebox --resume {NAME}\n"


@pytest.mark.parametrize("name", ["", NAME[1:], f"{NAME}-", NAME.replace("-", ""), NAME.replace("a", "g"), f"{NAME}\n"])
def test_other_names_are_no_identifiers(name: str) -> None:
    assert is_identifier(NAME)
    assert not is_identifier(name)


def test_directory_is_called_as_claude_calls_it() -> None:
    assert directory_name("/srv/a b/été_1.x") == "-srv-a-b--t--1-x"
    assert directory_name("/Ω👍") == "----"
