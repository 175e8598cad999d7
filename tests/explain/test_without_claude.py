"""A question can be asked before Claude is installed: a newcomer looks around first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Box


@pytest.mark.req("UX-01")
def test_question_is_answered_where_claude_is_not_installed(box: Box) -> None:
    done = box.claudebox("--explain", "192.168.1.1", env={"PATH": "/usr/bin:/bin"})
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "192.168.1.1: reachable"), done.stderr
    assert done.stderr == "claudebox: claude is not installed: this is about a box without it\n"
    wrong = box.claudebox("--explain", "x", "--profile", "nosuch", env={"PATH": "/usr/bin:/bin"})
    assert wrong.returncode == 125
