from __future__ import annotations

from pathlib import Path

import pytest

from claudebox.model import Plan
from screens.boxes import SCREENS, debian


@pytest.fixture(params=SCREENS)
def screen(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def plan(screen: str, tmp_path: Path) -> Plan:
    return SCREENS[screen](debian(tmp_path))
