from __future__ import annotations

import pytest

from running.needs import needed


@pytest.fixture(autouse=True)
@needed("box")
def boxes() -> None:
    """Each attack is tried in a box, or in one that is not protected."""
