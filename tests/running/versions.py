"""The same program in several versions: the system's own, and in `--all` those of later releases of Debian.

@pytest.mark.parametrize("bwrap", versions("bwrap"))
"""

from collections.abc import Callable

import pytest
from _pytest.mark import ParameterSet

from running import needs, pins

SYSTEM = "system"
SUITES = pins.SUITES


def path(program: str, version: str = SYSTEM) -> str:
    if version == SYSTEM:
        return needs.find_program(program) or f"/usr/bin/{program}"
    return pins.newer(program, version)


def each(make: Callable[[str], object], *, nix: bool = False, newer: bool = False) -> list[ParameterSet]:
    """Parameters made of the names of all versions, or only of the newer ones."""
    own = [] if newer else [pytest.param(make(SYSTEM), id=SYSTEM)]
    return own + [pytest.param(make(suite), id=suite, marks=_marks(suite, nix)) for suite in SUITES]


def versions(program: str) -> list[ParameterSet]:
    return each(lambda version: path(program, version), nix=program == "nix")


def _marks(suite: str, nix: bool) -> list[pytest.MarkDecorator]:
    need = f"{suite}_nix" if nix else suite
    return [pytest.mark.exhaustive("one more version"), getattr(pytest.mark, need)]


# The test gets boxes of every bwrap: versions differ in options and in bugs.
each_bwrap = pytest.mark.parametrize("box", versions("bwrap"), indirect=True)
