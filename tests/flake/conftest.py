"""One machine per Nix, where everything is built once. What does not depend on Nix is tried with the system's own."""

import os
from collections.abc import Iterator

import pytest

from conftest import make_account
from flake.machine import Flake, Machine, Package, read_package, set_up
from running.needs import needed
from running.versions import path, versions


@pytest.fixture(scope="session")
@needed("box", "nix", "git")
def flake() -> Iterator[Flake]:
    yield from make_flake(path("nix"))


@pytest.fixture(scope="session", params=versions("nix"))
@needed("box", "nix", "git")
def flake_of_each_nix(request: pytest.FixtureRequest) -> Iterator[Flake]:
    if request.param == path("nix"):
        yield request.getfixturevalue("flake")
    else:
        yield from make_flake(request.param)


def make_flake(nix: str) -> Iterator[Flake]:
    for account in make_account("user"):
        flake = set_up(account, nix)
        yield flake
        if os.geteuid() != 0:
            make_removable(flake.machine)


def make_removable(machine: Machine) -> None:
    """A store is read-only, also for whoever made it."""
    for place, _, _ in os.walk(machine.directory / "nix"):
        os.chmod(place, 0o700)


@pytest.fixture(scope="session")
def package(flake: Flake) -> Package:
    return read_package(flake.machine, flake.build("default"))
