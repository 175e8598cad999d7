from __future__ import annotations

import pytest

from claude.session import Talk
from conftest import Account, Box


@pytest.fixture
def talk(box: Box, claude: str) -> Talk:
    """Claude, as the ordinary user and as root."""
    return Talk(box, claude)


@pytest.fixture
def user_talk(user: Account, claude: str) -> Talk:
    """Claude as the ordinary user, where root would show nothing more."""
    project = user.home / "src" / "shop"
    user.write(project / "README.md", "a shop\n")
    return Talk(Box(user, project), claude)
