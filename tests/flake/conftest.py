"""One machine per Nix, where everything is built once. What does not depend on Nix is tried with the system's own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from conftest import SYSTEM_PATH, make_account
from flake.machine import Flake, Machine, Package, nix_programs, read_package, set_up

OWN, *NEWER = nix_programs()


@pytest.fixture(scope="session")
def flake() -> Iterator[Flake]:
    yield from make_flake(OWN)


@pytest.fixture(scope="session", params=[OWN, *NEWER])
def flake_of_each_nix(request: pytest.FixtureRequest) -> Iterator[Flake]:
    if request.param == OWN:
        yield request.getfixturevalue("flake")
    else:
        yield from make_flake(request.param)


def make_flake(nix: str) -> Iterator[Flake]:
    missing = [program for program in (nix, "patchelf") if not shutil.which(program, path=SYSTEM_PATH)]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}")
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
