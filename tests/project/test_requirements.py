"""docs/requirements.md and the `req` marks of the tests say the same.

A row of a table there starts with an id, or a range of ids, and has a cell that is its state: `held` or `later`.
Tests are named as `tests/…/test_….py`.
"""

import functools
import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent.parent
DOCUMENT = CHECKOUT / "docs" / "requirements.md"
TESTS = sorted((CHECKOUT / "tests").rglob("test_*.py"))
HELD, LATER = "held", "later"
MARK = re.compile(r"pytest\.mark\.req\(([^()]*)\)")
NAME = re.compile(r'"([^"]*)"')


def expand(text: str) -> list[str]:
    """`NIX-01..03` as its three ids; what is not an id as nothing."""
    found = re.fullmatch(r"`?([A-Z]+)-(\d\d)(?:\.\.(\d\d))?`?", text)
    if found is None:
        return []
    area, first, last = found.groups()
    return [f"{area}-{number:02}" for number in range(int(first), int(last or first) + 1)]


def states(text: str) -> dict[str, str]:
    """The state of each requirement of the document."""
    result: dict[str, str] = {}
    for line in text.splitlines():
        first, *rest = [cell.strip() for cell in line.strip().strip("|").split("|")]
        for identifier in expand(first):
            assert identifier not in result, f"{identifier} has two rows"
            result[identifier] = next((cell for cell in rest if cell in (HELD, LATER)), "")
    return result


@functools.cache
def marks(path: Path) -> set[str]:
    """The ids in all `pytest.mark.req(…)` of a file. To parse all tests would take a second."""
    return {name for words in MARK.findall(path.read_text()) for name in NAME.findall(words)}


@pytest.fixture
def document() -> str:
    assert DOCUMENT.exists(), "docs/requirements.md is missing"
    return DOCUMENT.read_text()


def test_every_row_has_a_state(document: str) -> None:
    rows = states(document)
    assert rows
    assert [identifier for identifier, state in rows.items() if not state] == []


def test_marks_name_requirements_that_exist(document: str) -> None:
    known = states(document).keys()
    unknown = {str(path.relative_to(CHECKOUT)): marks(path) - known for path in TESTS if marks(path) - known}
    assert unknown == {}


def test_what_is_held_has_a_test(document: str) -> None:
    marked = set().union(*(marks(path) for path in TESTS))
    held = {identifier for identifier, state in states(document).items() if state == HELD}
    assert held - marked == set()


def test_named_tests_exist(document: str) -> None:
    named = re.findall(r"tests/[\w./-]*\w", document)
    assert [name for name in named if not (CHECKOUT / name).exists()] == []
