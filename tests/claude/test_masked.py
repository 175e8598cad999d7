"""The real Claude Code cannot edit a masked file with its own tools, is told so, and the user's file stays as it is."""

from __future__ import annotations

from typing import Any

import pytest

from claude.session import DUMMY_KEY, Talk
from claudebox.demo import DemoStep, StandIn

pytestmark = pytest.mark.req("SEC-01", "MASK-01")

CANARY = "cAnArY7x9"
ENV = f"PORT=3000\nDB_PASSWORD={CANARY}\n"


class Tools(StandIn):
    """An API that has Claude use these tools, one after the other."""

    def __init__(self, *uses: tuple[str, dict[str, str]]) -> None:
        super().__init__(tuple(DemoStep(name, "") for name, _ in uses), lambda *_: None)
        self.uses = uses

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        block = super().answer(request)
        if block["type"] != "tool_use":
            return block
        name, words = self.uses[int(block["id"].rpartition("_")[2])]
        return {**block, "name": name, "input": words}


@pytest.mark.parametrize("options", [(), ("--review", "--land", "all")], ids=["direct", "review"])
def test_claude_cannot_edit_a_masked_file(user_talk: Talk, options: tuple[str, ...]) -> None:
    path = user_talk.project / ".env"
    user_talk.account.write(path, ENV)
    edit = {"file_path": str(path), "old_string": "PORT=3000\n", "new_string": "PORT=4000\nNEW_FLAG=on\n"}
    uses = (
        ("Read", {"file_path": str(path)}),
        ("Edit", edit),
        ("Bash", {"command": "sed -i s/3000/4000/ .env"}),
        ("Write", {"file_path": str(path.with_name(".env.example")), "content": "NEW_FLAG=on\n"}),
    )
    with Tools(*uses) as api:
        words = (*options, *user_talk.words(api), "-p", "do it")
        done = user_talk.box.claudebox(*words, env=DUMMY_KEY, cwd=user_talk.project)
    assert done.returncode == 0, done.stderr
    read, edited, replaced, written = (text for _, text in api.results)
    assert "PORT=3000" in read
    assert "EROFS" in edited or "EBUSY" in edited, edited
    assert "Device or resource busy" in replaced
    assert CANARY not in str(api.requests)
    assert path.read_text() == ENV
    assert path.with_name(".env.example").read_text() == "NEW_FLAG=on\n", written
