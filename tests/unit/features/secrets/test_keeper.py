"""In which order the process that mounts does what it has to do, however much there is."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from claudebox.features.secrets import keeper
from claudebox.features.secrets.act import Keeping
from claudebox.features.secrets.decide import Judging

pytestmark = pytest.mark.req("MASK-01")

MANY = 200


@pytest.fixture
def hand(tmp_path: Path) -> Iterator[keeper.Hand]:
    """As if it were in a box, which nothing here enters."""
    judging = SimpleNamespace(directories=list, also={}, kind=lambda _: None)
    numbers = {f"{tmp_path}/.env": 0}
    made = keeper.Hand(Keeping(str(tmp_path), str(tmp_path), "/", numbers, (), cast(Judging, judging), 2, False), -1)
    made.box, made.room = os.open("/", os.O_PATH), len(made.directories) + MANY
    yield made
    for descriptor in (made.host, made.box, made.events, *made.directories.values()):
        os.close(descriptor)


def test_masked_file_comes_before_a_flood(hand: keeper.Hand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(MANY):
        (tmp_path / f"{number}").mkdir()
    (tmp_path / ".env").touch()
    looked = list[tuple[str, int]]()
    monkeypatch.setattr(hand, "look", lambda path: looked.append((path, len(hand.directories))))
    before = len(hand.directories)
    hand.read_events()
    assert looked == [(f"{tmp_path}/.env", before)]
    hand.read_on()
    assert len(hand.directories) <= before + keeper.FEW + keeper.AT_ONCE
    while hand.news or hand.unread or hand.listing:
        hand.read_on()
    assert len(hand.directories) == before + MANY


def test_removed_directories_are_closed_one_by_one(hand: keeper.Hand, tmp_path: Path) -> None:
    """The kernel removes them from the disk only then, and that may take a thousandth of a second for each."""
    for number in range(MANY):
        (tmp_path / f"{number}").mkdir()
        hand.watch(f"{tmp_path}/{number}")
        (tmp_path / f"{number}").rmdir()
    before = len(hand.directories)
    (tmp_path / "new").mkdir()
    assert hand.watch(f"{tmp_path}/new") > 0
    assert len(hand.directories) == before
    assert not hand.is_full


def test_more_new_things_than_are_kept(hand: keeper.Hand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "MOST_NEWS", 1)
    for number in range(MANY):
        (tmp_path / f"{number}").mkdir()
    hand.read_events()
    assert not hand.news
    while hand.unread or hand.listing:
        hand.read_on()
    assert len(hand.directories) > MANY
