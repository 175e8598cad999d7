import subprocess
from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet

from conftest import Box
from running.needs import needed
from terminal.pseudoterminal import claudebox_path

TITLE = "the box has left this, and this host may run it unasked"


@pytest.fixture(autouse=True)
@needed("box")
def boxes() -> None:
    """Each attack is tried in a box, or in one that is not protected."""


def said(done: subprocess.CompletedProcess[str]) -> str:
    """What is printed after the audit."""
    _, found, after = done.stderr.partition("claudebox: ")
    return " ".join((found + after).split())


def box_words(box: Box, *command: str) -> tuple[str, ...]:
    return (claudebox_path(), *box.options, "--yes", "--quiet", "--run", *command)


def in_default(names: Iterable[str], *some: str) -> list[ParameterSet]:
    """Parameters: that an attack is real without its protection, the default run shows for some of them."""
    real = pytest.mark.exhaustive("the default run shows it for others")
    return [pytest.param(name, marks=() if name in some else real) for name in names]
