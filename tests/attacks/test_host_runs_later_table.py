"""The agent goes through the tables of what the host runs later, row by row. One box tries them all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attacks.test_host_runs_later import TAMPERING, state_of
from attacks.test_host_runs_later_report import ORDINARY as IN_ONE_LINE
from attacks.test_host_runs_later_report import TITLE, said
from claudebox.features.secrets.table import WANTED as MAY_BE_SECRET
from conftest import Account, Box
from unit.features.guard.test_table import CONTENTS, HELD, ORDINARY, TAKEN_UP

pytestmark = pytest.mark.req("INST-02")

POSSIBLE = {"write", "truncate", "change_mode", "link", "rename", "replace_by_file", "replace_by_symlink"}


def tamper(box: Box, project: Path, *options: str) -> dict[str, list[str]]:
    """What an agent manages to do to each of the places."""
    mount = ("--mount-ro", f"{TAMPERING}:/tampering.py")
    done = box.inside("python3", "/tampering.py", str(project), *HELD, options=(*mount, *options))
    assert done.returncode == 0, done.stderr
    worked: dict[str, list[str]] = json.loads(done.stdout)
    assert worked.keys() == set(HELD)
    return worked


@pytest.fixture
def full_project(account: Account, project: Path) -> Path:
    for place in HELD:
        account.write(project / place, "x\n")
    account.own(project)
    return project


def test_no_row_can_be_changed(box: Box, full_project: Path) -> None:
    before = {place: state_of(full_project / place) for place in HELD}
    worked = tamper(box, full_project, "--review", "off")
    assert {place: attempts for place, attempts in worked.items() if attempts} == {}
    assert {place: state_of(full_project / place) for place in HELD} == before


@pytest.mark.req("LAND-01")
def test_no_change_of_a_row_reaches_the_host(box: Box, full_project: Path) -> None:
    before = {place: state_of(full_project / place) for place in HELD}
    worked = tamper(box, full_project)
    changed = {place for place, attempts in worked.items() if attempts}
    assert changed, "there are layers"
    assert {
        place.partition("/")[0] for place in changed if not (full_project / place.partition("/")[0]).is_dir()
    } == set()
    assert {place: state_of(full_project / place) for place in HELD} == before


@pytest.mark.root_repeats("shows that the attack is real, which one account does")
def test_every_row_can_be_changed_without_the_guard(box: Box, full_project: Path) -> None:
    worked = tamper(box, full_project, "--writable", ".")
    failed = [place for place, attempts in worked.items() if POSSIBLE - set(attempts)]
    # Some may hold secrets, and are masked.
    assert [place for place in failed if not MAY_BE_SECRET.wants(Path(place).name)] == []


def planted(names: list[str]) -> str:
    return f"""
import os
for name, content in {[(name, CONTENTS.get(name, "x")) for name in names]!r}:
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    open(name, "w").write(content)
"""


def test_every_row_is_named_where_nothing_was(box: Box, project: Path) -> None:
    done = box.inside("python3", "-c", planted(HELD))
    assert TITLE in said(done)
    assert f"and {len(HELD) - 12} more" in said(done)
    assert IN_ONE_LINE not in said(done)


def test_ordinary_rows_are_named_in_one_sentence(box: Box, project: Path) -> None:
    names = [name for name in ORDINARY if name not in TAKEN_UP]
    done = box.inside("python3", "-c", planted(names))
    assert TITLE not in said(done)
    assert said(done).startswith(f"claudebox: {IN_ONE_LINE}: ")
    assert said(done).endswith(f" and {len(names) - 6} more")


def test_what_agents_take_up_is_named_by_itself(box: Box, project: Path) -> None:
    done = box.inside("python3", "-c", planted(TAKEN_UP))
    assert TITLE in said(done)
    assert f"and {len(TAKEN_UP) - 12} more" in said(done)
    assert IN_ONE_LINE not in said(done)
