from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from claude.session import Talk

if TYPE_CHECKING:
    from conftest import Account, Box


@pytest.fixture
def claude() -> str:
    """The real Claude Code."""
    path = os.environ.get("CLAUDEBOX_TEST_CLAUDE")
    if not path:
        pytest.skip("CLAUDEBOX_TEST_CLAUDE names no Claude Code")
    return path


@pytest.fixture
def talk(box: Box, claude: str) -> Talk:
    """Claude, as the ordinary user and as root."""
    return Talk(box, claude)


@pytest.fixture
def user_talk(user: Account, claude: str) -> Talk:
    """Claude as the ordinary user, where root would show nothing more."""
    from conftest import Box

    project = user.home / "src" / "shop"
    user.write(project / "README.md", "a shop\n")
    return Talk(Box(user, project), claude)
