"""Servers on the internet for boxes that go by names."""

from collections.abc import Iterator

import pytest

from network.allowlist.world import serving
from network.internet import Internet
from running.needs import needed


@pytest.fixture(scope="session")
@needed("clients")
def world(internet: Internet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Internet]:
    with serving(internet, tmp_path_factory.mktemp("world")):
        yield internet
