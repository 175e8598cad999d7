"""A check that lets everything pass would hide what it is there for."""

from typing import Any

import pytest

from shapes import Table, either, faults, maybe

SHAPE = {"name": str, "size": maybe(int), "kind": either("ro", "rw"), "parts": [{"path": str}], "?more": Table(bool)}
GOOD: dict[str, Any] = {"name": "x", "size": None, "kind": "ro", "parts": [{"path": "/"}], "more": {"a": True}}


@pytest.mark.parametrize("change", [{}, {"size": 3}, {"parts": []}, {"more": {}}])
def test_what_fits_has_no_fault(change: dict[str, Any]) -> None:
    assert faults(SHAPE, GOOD | change) == []


def test_what_may_be_missing_may_be_missing() -> None:
    assert faults(SHAPE, {key: value for key, value in GOOD.items() if key != "more"}) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"name": None}, "$.name: no str: None"),
        ({"size": True}, "$.size: no int: True"),
        ({"kind": "xx"}, "$.kind: not 'ro': 'xx'"),
        ({"parts": [{"path": "/"}, {}]}, "$.parts[1]: no `path`"),
        ({"parts": {}}, "$.parts: no list: {}"),
        ({"parts": ["/"]}, "$.parts[0]: no object: '/'"),
        ({"more": {"a": 1}}, "$.more.a: no bool: 1"),
        ({"more": []}, "$.more: no object: []"),
        ({"other": 1}, "$: `other` is unknown"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(change: dict[str, Any], fault: str) -> None:
    assert faults(SHAPE, GOOD | change) == [fault]


def test_missing_key_is_a_fault() -> None:
    assert faults({"name": str}, {}) == ["$: no `name`"]
