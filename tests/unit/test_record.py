"""Records are values: complete, comparable, unchangeable."""

from __future__ import annotations

import pytest

from claudebox.record import Record


class Point(Record):
    x: int
    y: int = 2


class Other(Record):
    x: int
    y: int = 2


def test_fields_by_place_and_by_name_are_the_same() -> None:
    assert Point(1) == Point(x=1) == Point(1, 2) == Point(1, y=2)
    assert repr(Point(1)) == "Point(x=1, y=2)"


def test_equality_needs_the_same_kind() -> None:
    assert Point(1) != Other(1)
    assert Point(1) != (1, 2)
    assert len({Point(1), Point(1, 2), Point(2), Other(1)}) == 3


@pytest.mark.parametrize("arguments", [((), {}), ((1, 2, 3), {}), ((1,), {"z": 1}), ((1,), {"x": 1}), ((), {"y": 1})])
def test_wrong_fields_are_refused(arguments: tuple[tuple[int, ...], dict[str, int]]) -> None:
    with pytest.raises(TypeError):
        Point(*arguments[0], **arguments[1])


def test_field_cannot_be_changed() -> None:
    point = Point(1)
    with pytest.raises(AttributeError):
        point.x = 3  # type: ignore[misc]
    assert point == Point(1)


def test_field_cannot_be_removed() -> None:
    point = Point(1)
    with pytest.raises(AttributeError):
        del point.x
    assert point == Point(1)


def test_copy_leaves_the_original() -> None:
    point = Point(1)
    assert point.replace(x=5) == Point(5)
    assert point == Point(1)
    with pytest.raises(TypeError):
        point.replace(z=1)
