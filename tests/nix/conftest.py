"""Everything here runs on a machine with Nix: the account, and with it the box.

    @on(sandbox="false")                                # on a machine configured like that; otherwise as is usual
    def test_…(box: Box, host: NixHost) -> None:

The account is the ordinary user: the daemon trusts root as it is.
"""

from collections.abc import Callable, Iterator

import pytest

from conftest import Account
from nix.daemon import Configuration, NixHost, configurations
from nix.machine import Resident
from running.needs import needed


@pytest.fixture(scope="session")
@needed("root", "nix", "ip")
def hosts() -> Iterator[Callable[[Configuration], NixHost]]:
    """Machines by their configuration, each made when it is first asked for."""
    made: dict[Configuration, NixHost] = {}

    def host(configuration: Configuration) -> NixHost:
        if configuration not in made:
            made[configuration] = NixHost(configuration).__enter__()
        return made[configuration]

    yield host
    for each in made.values():
        each.stop()  # all at once: the kernel takes a while to clear up
    for each in made.values():
        each.close()


@pytest.fixture(params=configurations())
def host(request: pytest.FixtureRequest, hosts: Callable[[Configuration], NixHost]) -> NixHost:
    configuration: Configuration = request.param
    return hosts(configuration)


@pytest.fixture
def account(user: Account, host: NixHost) -> Resident:
    return host.settle(user)
