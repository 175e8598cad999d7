import pytest

from claude.session import Talk
from conftest import Box


@pytest.fixture
def talk(box: Box, claude: str) -> Talk:
    """Claude, as the ordinary user and as root."""
    return Talk(box, claude)


@pytest.fixture
def user_talk(shop: Box, claude: str) -> Talk:
    """Claude as the ordinary user, where root would show nothing more."""
    return Talk(shop, claude)
