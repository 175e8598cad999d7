"""Everything here runs on the host of a test network: the accounts, and with them the boxes."""

from collections.abc import Iterator

import pytest

from conftest import Account
from network.internet import Internet, Resident
from running.needs import needed
from running.versions import each, path


@pytest.fixture(scope="session")
@needed("root", "network")
def internet() -> Iterator[Internet]:
    with Internet() as internet:
        yield internet


@pytest.fixture
def account(account: Account, internet: Internet) -> Resident:
    return Resident.moving(account, internet.host)


@pytest.fixture
def user(user: Account, internet: Internet) -> Resident:
    return Resident.moving(user, internet.host)


@pytest.fixture(params=each(lambda version: version))
def pasta(request: pytest.FixtureRequest, account: Resident) -> str:
    """The pasta of each release, with its nft: the account's claudebox uses them."""
    own = path("pasta", request.param)
    account.environ.update(CLAUDEBOX_PASTA=own, CLAUDEBOX_NFT=path("nft", request.param))
    return own
