"""Every field of the JSON is documented, and no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claudebox.cli import run
from claudebox.model import Plan
from claudebox.view.as_json import audit_json, dry_run_json
from explain.test_answers import ANSWER
from reference import FIELDS, HEAD
from screens.boxes import debian
from screens.test_json import AUDIT, DRY_RUN
from shapes import Either, Table


def of_shape(shape: Any, path: str = "") -> Iterator[str]:
    """The paths of the fields that a shape has."""
    if isinstance(shape, dict):
        for key, inner in shape.items():
            yield from of_shape(inner, f"{path}.{key.removeprefix('?')}".lstrip("."))
    elif isinstance(shape, list) and isinstance(shape[0], dict):
        yield from of_shape(shape[0], f"{path}[]")
    elif isinstance(shape, Either) and isinstance(shape.shapes[0], dict):
        yield path
        yield from of_shape(shape.shapes[0], path)
    else:
        yield path


def of_value(value: Any, path: str = "") -> Iterator[str]:
    """The paths of the fields that are printed."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from of_value(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in value:
            yield from of_value(inner, f"{path}[]")
    elif value != []:
        yield path


@pytest.mark.parametrize(
    ("option", "shape"),
    [("--audit", AUDIT), ("--dry-run", DRY_RUN), ("--explain", {"thing": str, "answers": [ANSWER]})],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_documented_fields_are_those_of_the_shape(option: str, shape: Any) -> None:
    assert isinstance(DRY_RUN["environment"], Table)
    assert sorted(HEAD | FIELDS[option]) == sorted(set(of_shape(HEAD | shape)))


def test_what_is_printed_is_documented(plan: Plan) -> None:
    free = ("environment.", "broker.limits.")  # names of variables, and of limits
    for option, text in (("--audit", audit_json(plan)), ("--dry-run", dry_run_json(plan))):
        printed = {path for path in of_value(json.loads(text)) if not path.startswith(free)}
        assert printed - (HEAD | FIELDS[option]).keys() == set()


def test_other_modes_are_documented(capfd: pytest.CaptureFixture[str]) -> None:
    for option in ("--instances", "--profile"):
        run([option, "--json"])
        printed = set(of_value(json.loads(capfd.readouterr().out)))
        assert printed - (HEAD | FIELDS[option]).keys() <= {"instances[].reviews"}, option


def test_review_is_documented(tmp_path: Path) -> None:
    told = json.loads(audit_json(debian(tmp_path).plan("--review", "--run", "true")))
    assert [f"review.{key}" in FIELDS["--audit"] for key in told["review"]] == [True] * 4
