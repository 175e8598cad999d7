"""Records are values, and an origin says where something in the box comes from."""

import ast
from pathlib import Path

import pytest

import claudebox
from claudebox.model import BY_DEFAULT, Origin
from claudebox.record import Record
from syntax import nodes

RULE = Origin.of_rule("guard", "the host runs it later")
OPTION = Origin.of_option("--env")
VARIABLE = Origin.of_variable("CLAUDEBOX_NETWORK")
FILE = Origin.of_file("~/.claudebox/config.toml", 3)
PROJECT_FILE = Origin.of_file(".claudebox.toml", 12, is_project=True)


@pytest.mark.parametrize(
    ("origin", "shown", "is_said", "is_typed", "is_projects"),
    [
        (RULE, "guard", False, False, False),
        (BY_DEFAULT, "default", False, False, False),
        (OPTION, "--env", True, True, False),
        (VARIABLE, "CLAUDEBOX_NETWORK", True, False, False),
        (FILE, "~/.claudebox/config.toml:3", True, False, False),
        (PROJECT_FILE, ".claudebox.toml:12", True, False, True),
    ],
)
def test_kind_decides(origin: Origin, shown: str, is_said: bool, is_typed: bool, is_projects: bool) -> None:
    assert origin.shown == shown
    assert (origin.is_said, origin.is_typed, origin.is_projects) == (is_said, is_typed, is_projects)
    assert origin.is_default == (origin is BY_DEFAULT)


@pytest.mark.parametrize("name", ["--env", "guard", "CLAUDEBOX_X", ".claudebox.toml", "a:3", "default"])
def test_name_decides_nothing(name: str) -> None:
    """A file may be called like an option, and a rule like a file."""
    made = (
        Origin.of_rule(name),
        Origin.of_option(name),
        Origin.of_variable(name),
        Origin.of_file(name, 3),
        Origin.of_file(name, 3, is_project=True),
    )
    assert [origin.is_typed for origin in made] == [False, True, False, False, False]
    assert [origin.is_projects for origin in made] == [False, False, False, False, True]
    assert [origin.is_said for origin in made] == [False, True, True, True, True]
    assert [origin.is_rule("other", name) for origin in made] == [True, False, False, False, False]
    assert not any(origin.is_rule("other") or origin.is_default for origin in made)


def test_nobody_takes_the_shown_text_apart() -> None:
    source = Path(claudebox.__file__).parent
    apart = {"startswith", "endswith", "partition", "rpartition", "split", "rsplit", "removeprefix", "removesuffix"}
    found = [
        f"{path.relative_to(source)}:{node.lineno}"
        for path in sorted(source.rglob("*.py"))
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in apart
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shown"
    ]
    assert found == []


# Records are values: complete, comparable, unchangeable.


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
