"""Everything here runs on the host of a test network: the accounts, and with them the boxes."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator

import pytest

from conftest import SYSTEM_PATH, Account
from network.internet import Internet, Resident


def programs(name: str, variable: str) -> list[str]:
    """The system's own, and those of later releases."""
    own = shutil.which(name, path=SYSTEM_PATH) or f"/usr/bin/{name}"
    return list(dict.fromkeys([own, *filter(None, os.environ.get(variable, "").split(":"))]))


PASTAS = programs("pasta", "CLAUDEBOX_TEST_PASTAS")
NFTS = programs("nft", "CLAUDEBOX_TEST_NFTS")


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


@pytest.fixture(params=itertools.zip_longest(PASTAS, NFTS[: len(PASTAS)], fillvalue=NFTS[0]), ids=PASTAS)
def pasta(request: pytest.FixtureRequest, account: Resident) -> str:
    """Every pasta that is at hand, with the nft of the same release: the account's claudebox uses them."""
    path: str
    path, nft = request.param
    account.environ.update(CLAUDEBOX_PASTA=path, CLAUDEBOX_NFT=nft)
    return path
