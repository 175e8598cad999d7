"""What is found of saved conversations, in a directory where the agent may have written anything."""

import os
import subprocess
from pathlib import Path

import pytest

from claudebox.errors import Problem
from claudebox.facts import ClaudeHome
from claudebox.features.claude import conversations, current_state
from claudebox.features.claude.conversations import directory_name, is_identifier, saved_conversations
from claudebox.host.tree import Tree
from claudebox.state import Instance, State
from claudebox.state.claude_settings import LARGEST_FILE

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


# What claudebox writes into Claude's home, while other boxes of the project do the same.


STATE = b'{"projects": {}}\n'


class BusyTree(Tree):
    """Files of a project whose other box writes `.claude.json` just after somebody has looked for it."""

    def appear(self, path: str) -> None:
        (Path(self.root + path).parent).mkdir(parents=True, exist_ok=True)
        Path(self.root + path).write_bytes(STATE)

    def read_plain(self, path: str, limit: int = 1 << 20, inode: int = 0) -> bytes | None:
        content = super().read_plain(path, limit, inode)
        self.appear(path)
        return content

    def lstat(self, path: str) -> os.stat_result | None:
        status = super().lstat(path)
        self.appear(path)
        return status


def home(state: str = "/state") -> ClaudeHome:
    place = "/home/alice/.claude"
    return ClaudeHome(State("/home/alice"), Instance(state, "/home/alice/shop"), place, place, place)


def test_state_that_appears_meanwhile_is_no_damage(tmp_path: Path) -> None:
    """Boxes of a new project that start at once failed, now and then: the file was not there, and then it was."""
    assert current_state(BusyTree(str(tmp_path)), home()) == b""
    assert current_state(BusyTree(str(tmp_path)), home()) == STATE


def test_what_puts_a_damaged_state_aside_follows_no_symlink_of_the_agents(tmp_path: Path) -> None:
    """Too large to be read whole, it is damaged for us, and not for the user's Claude, which would run its servers."""
    claude, users = tmp_path / "state/claude", tmp_path / "alice"
    claude.mkdir(parents=True)
    users.mkdir()
    (users / ".claude.json").write_bytes(STATE)
    (claude / ".claude.json").write_text("{" + " " * LARGEST_FILE + "}")
    (claude / "broken.json").symlink_to(users)
    with pytest.raises(Problem) as raised:
        current_state(Tree(), home(str(tmp_path / "state")))
    _, _, commands = raised.value.hint.partition("start afresh:\n")
    subprocess.run(["sh", "-c", commands], check=True)
    assert (users / ".claude.json").read_bytes() == STATE
    assert current_state(Tree(), home(str(tmp_path / "state"))) == b""
