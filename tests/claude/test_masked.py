"""The real Claude Code edits a masked file with its own tools; the lines land, and the secrets stay."""

from __future__ import annotations

from typing import Any

import pytest

from claude.session import DUMMY_KEY, Talk
from claudebox.demo import DemoStep, StandIn

pytestmark = pytest.mark.req("SEC-01")

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


@pytest.mark.parametrize("options", [(), ("--review", "--land", "safe")], ids=["direct", "review"])
def test_claude_edits_a_masked_file(user_talk: Talk, options: tuple[str, ...]) -> None:
    path = user_talk.project / ".env"
    user_talk.account.write(path, ENV)
    edit = {"file_path": str(path), "old_string": "PORT=3000\n", "new_string": "PORT=4000\nNEW_FLAG=on\n"}
    with Tools(("Read", {"file_path": str(path)}), ("Edit", edit)) as api:
        words = (*options, *user_talk.words(api), "-p", "do it")
        done = user_talk.box.claudebox(*words, env=DUMMY_KEY, cwd=user_talk.project)
    assert done.returncode == 0, done.stderr
    assert len(api.results) == 2
    assert CANARY not in str(api.requests)
    assert path.read_text() == f"PORT=4000\nNEW_FLAG=on\nDB_PASSWORD={CANARY}\n", (api.results, done.stderr)
