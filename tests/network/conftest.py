"""Everything here runs on the host of a test network: the accounts, and with them the boxes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from conftest import Account
from network.internet import Internet, Resident

PASTAS = [path for path in os.environ.get("CLAUDEBOX_TEST_PASTAS", "").split(":") if path] or [
    shutil.which("pasta") or "/usr/bin/pasta"
]


@pytest.fixture(scope="session")
def internet() -> Iterator[Internet]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with Internet() as internet:
        yield internet


@pytest.fixture
def account(account: Account, internet: Internet) -> Resident:
    return Resident.moving(account, internet.host)


@pytest.fixture
def user(user: Account, internet: Internet) -> Resident:
    return Resident.moving(user, internet.host)


@pytest.fixture(params=PASTAS)
def pasta(request: pytest.FixtureRequest, account: Resident) -> str:
    """Every pasta that is at hand, which the account's claudebox will use."""
    path: str = request.param
    account.environ["CLAUDEBOX_PASTA"] = path
    return path
