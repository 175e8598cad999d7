"""Claude's state, while other boxes of the project write it, and when it is damaged."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from claudebox.errors import Problem
from claudebox.facts import ClaudeHome
from claudebox.features.claude import current_state
from claudebox.host.tree import Tree
from claudebox.state import Instance, State
from claudebox.state.claude_settings import LARGEST_FILE

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
    for second in range(int(time.time()), int(time.time()) + 100):
        (claude / f"broken-{second}.json").symlink_to(users)
    with pytest.raises(Problem) as raised:
        current_state(Tree(), home(str(tmp_path / "state")))
    _, _, commands = raised.value.hint.partition("start afresh:\n")
    subprocess.run(["sh", "-c", commands], check=True)
    assert (users / ".claude.json").read_bytes() == STATE
    assert current_state(Tree(), home(str(tmp_path / "state"))) == b""
