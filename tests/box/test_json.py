"""`--json` with every mode that prints data: one object, which says who wrote it and in which form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from claudebox.settings.words import JSON_MODES, PROFILES
from conftest import Account, Box
from shapes import HEAD, Table, faults, maybe

ENTRIES = Table(maybe(str))
REVIEW = {"number": int, "project": str, "size": int}
CHANGE = {
    "path": str,
    "kind": str,
    "what": str,
    "size": int,
    "target": maybe(str),
    "is_conflict": bool,
    "host_runs": maybe(str),
}
INSTANCE = {
    "project": maybe(str),
    "directory": str,
    "last_use": str,
    "size": int,
    "cache": int,
    "is_whole": bool,
    "is_gone": bool,
    "reviews": [REVIEW],
}
OTHER = {"name": str, "size": int, "is_whole": bool, "is_users": bool}
# What is typed, and the form of what is printed. The rest of the modes have tests of their own.
SHAPES: dict[str, dict[str, Any]] = {
    "--version": {"version": str, "programs": Table(str)},
    "--profile": {"profiles": [{"name": str, "description": str, "file": str}]},
    "--instances": {"directory": str, "others": [OTHER], "instances": [INSTANCE]},
    "--review list": {"reviews": [{**REVIEW, "is_in_use": bool, "changes": int}], "damaged": [str]},
    "--review show": {**REVIEW, "changes": [CHANGE], "never_lands": [{"path": str, "reason": str}]},
    "--auth-log": {"auth_log": [ENTRIES]},
    "--network-log": {"network_log": [ENTRIES]},
}
WITH_OWN_TESTS = ("audit", "dry_run", "explain", "check", "prove")


def test_every_mode_that_prints_data_is_tried_here_or_elsewhere() -> None:
    here = {words.split()[0].removeprefix("--").replace("-", "_") for words in SHAPES}
    assert {*(here - {"profile"}), PROFILES, *WITH_OWN_TESTS} == set(JSON_MODES)


@pytest.mark.box
@pytest.mark.attributes
@pytest.mark.req("INST-03", "LAND-01")
def test_json_of_each_mode_has_this_shape(user: Account) -> None:
    box = Box(user, user.home / "src" / "shop")
    user.write(box.project / "README.md")
    made = box.inside("sh", "-c", "echo x >new; echo x >.envrc", options=("--review",))
    assert made.returncode == 0, made.stderr
    told = {words: box.claudebox(*words.split(), "--json") for words in SHAPES}
    for words, shape in SHAPES.items():
        assert told[words].returncode == 0, told[words].stderr
        assert faults({**HEAD, **shape}, json.loads(told[words].stdout)) == [], words
    shown = json.loads(told["--review show"].stdout)
    assert {change["path"]: bool(change["host_runs"]) for change in shown["changes"]} == {".envrc": True, "new": False}
    (listed,) = json.loads(told["--instances"].stdout)["instances"]
    assert (listed["project"], listed["is_gone"]) == (str(box.project), False)
    assert [review["number"] for review in listed["reviews"]] == [shown["number"]]
