from collections.abc import Callable
from functools import cache

import pytest

from claudebox.model import Plan
from screens.boxes import SCREENS, debian


@pytest.fixture(params=SCREENS)
def screen(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Plan]:
    """Nobody can change a plan, so one of each is enough."""
    return cache(lambda screen: SCREENS[screen](debian(tmp_path_factory.mktemp("machine"))))


@pytest.fixture
def plan(screen: str, plans: Callable[[str], Plan]) -> Plan:
    return plans(screen)
