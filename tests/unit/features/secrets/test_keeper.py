"""In which order the process that mounts does what it has to do, however much there is."""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from claudebox.features.secrets import Judging, keeper
from claudebox.features.secrets.decoys import Keeping

pytestmark = pytest.mark.req("MASK-01")

MANY = 200


def hand_of(project: Path, directories: tuple[str, ...] = ()) -> keeper.Hand:
    judging = SimpleNamespace(
        facts=SimpleNamespace(host=SimpleNamespace(began=0)),
        directories=lambda: directories,
        also={},
        kind=lambda path: ("all", "") if ".env" in path else None,
    )
    numbers = {f"{project}/.env": 0}
    return keeper.Hand(Keeping(str(project), str(project), "/", numbers, (), cast(Judging, judging), 2, False), -1)


@pytest.fixture
def hand(tmp_path: Path) -> Iterator[keeper.Hand]:
    """As if it were in a box, which nothing here enters."""
    made = hand_of(tmp_path)
    made.watches.is_inside = True
    made.watches.room = len(made.watches.directories) + MANY
    yield made
    made.watches.close()
    os.close(made.host)


def test_masked_file_comes_before_a_flood(hand: keeper.Hand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(MANY):
        (tmp_path / f"{number}").mkdir()
    (tmp_path / ".env").touch()
    looked = list[tuple[str, int]]()
    monkeypatch.setattr(hand, "look", lambda path, *_, **__: looked.append((path, len(hand.watches.directories))))
    before = len(hand.watches.directories)
    hand.take_events()
    assert looked == [(f"{tmp_path}/.env", before)]
    hand.read_on()
    assert len(hand.watches.directories) <= before + keeper.FEW + keeper.AT_ONCE
    while hand.news or hand.watches.has_more():
        hand.read_on()
    assert len(hand.watches.directories) == before + MANY


def test_removed_directories_are_closed_one_by_one(hand: keeper.Hand, tmp_path: Path) -> None:
    """The kernel removes them from the disk only then, and that may take a thousandth of a second for each."""
    for number in range(MANY):
        (tmp_path / f"{number}").mkdir()
        hand.watches.add(f"{tmp_path}/{number}")
        (tmp_path / f"{number}").rmdir()
    before = len(hand.watches.directories)
    (tmp_path / "new").mkdir()
    assert hand.watches.add(f"{tmp_path}/new") > 0
    assert len(hand.watches.directories) == before
    assert not hand.watches.is_full


def test_more_new_things_than_are_kept(hand: keeper.Hand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "MOST_NEWS", 1)
    for number in range(MANY):
        (tmp_path / f"{number}").mkdir()
    hand.take_events()
    assert len(hand.news) <= 3
    while hand.watches.has_more():
        hand.read_on()
    assert len(hand.watches.directories) > MANY


def test_few_open_files_are_left_for_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `ulimit -n 1024`. Without a free descriptor, nothing can be mounted."""
    few = keeper.MORE_OPEN + 10
    monkeypatch.setattr(resource, "getrlimit", lambda _: (few, few))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    made = [str(tmp_path / f"{number}") for number in range(MANY)]
    for path in made:
        os.mkdir(path)
    hand = hand_of(tmp_path, tuple(made))
    assert (len(hand.watches.directories), hand.watches.is_full) == (10, True)
    hand.watches.close()
    os.close(hand.host)


@pytest.mark.parametrize("is_lost", [True, False])
def test_flood_holds_up_no_new_file_for_ever(
    hand: keeper.Hand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_lost: bool
) -> None:
    """The box makes names that say nothing, faster than they are looked at. The kernel may lose some, too."""
    monkeypatch.setattr(keeper, "MOST_NEWS", 5)
    monkeypatch.setattr(os, "fork", lambda: 1)
    looked = list[str]()
    monkeypatch.setattr(hand, "look", lambda path, *_, **__: looked.append(path))
    for number in range(MANY):
        (tmp_path / f"{number}").mkdir()
        hand.watches.add(f"{tmp_path}/{number}")
    hand.take_events()
    (tmp_path / f"{MANY - 1}/.env.new").touch()
    for turn in range(MANY * 2):
        for number in range(keeper.FEW * 2):
            (tmp_path / f"0/{turn}-{number}").touch()
        if is_lost:
            os.read(hand.watches.events, 1 << 16)
            monkeypatch.setattr(hand.watches, "read_events", dict)
            hand.watches.has_lost = True
        hand.take_events()
        hand.read_on()
        if f"{tmp_path}/{MANY - 1}/.env.new" in looked:
            break
    else:
        pytest.fail("it was never looked at")
    while hand.news or hand.watches.has_more():
        hand.read_on()


def test_agents_own_files_use_up_nothing_that_is_told(
    hand: keeper.Hand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fork", lambda: 1)
    (tmp_path / "notes").touch()
    for number in range(8):
        (tmp_path / f".env.{number}").touch()
        hand.gaps.tell(f"{tmp_path}/.env.{number}", "made")
    (tmp_path / ".env.had").touch()
    os.link(tmp_path / ".env.had", tmp_path / "had")
    hand.gaps.tell(f"{tmp_path}/.env.had", "made")
    monkeypatch.setattr(keeper, "MOST_SHOWN", 0)
    (tmp_path / ".env.open").touch()
    hand.gaps.tell(f"{tmp_path}/.env.open", "made")
    said = (tmp_path / "notes").read_text().splitlines()
    assert [line.split()[1] for line in said] == [".env.had", ".env.open", *(f".env.{n}" for n in range(5)), "and"]
    assert all("can read it" in line for line in said[:2])
    assert "3 more" in said[-1]


def test_files_take_no_room_from_directories(hand: keeper.Hand, tmp_path: Path) -> None:
    hand.watches.room = len(hand.watches.directories) + 1
    for number in range(MANY):
        (tmp_path / f".env.{number}").write_text("x")
        hand.look(f"{tmp_path}/.env.{number}")
    (tmp_path / "new").mkdir()
    assert hand.watches.add(f"{tmp_path}/new") > 0
    assert not hand.watches.is_full


def test_paths_are_whole_at_the_end(hand: keeper.Hand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", lambda: 1)
    (tmp_path / "notes").touch()
    name = "services/payments/config/.env.production"
    hand.gaps.tell(f"{tmp_path}/{name}", "made")
    assert (tmp_path / "notes").read_text().split()[1] == name


def test_disk_is_full(hand: keeper.Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be kept until the end makes it one that is not finished."""
    monkeypatch.setattr(os, "fork", lambda: 1)
    hand.gaps.tell("/x/.env", "made")  # nothing is there to write to
    assert hand.gaps.is_lost


def settle(hand: keeper.Hand) -> None:
    with suppress(BlockingIOError):
        hand.take_events()
    while hand.news or hand.watches.has_more():
        hand.read_on()


def where_asked(hand: keeper.Hand, path: Path) -> list[str]:
    """Where the files are that wait to be judged by a name; "gone" if there is none."""
    held = [here for (name, _), here in hand.waiting.items() if name == str(path)]
    return [keeper.path_of(here) if here >= 0 else "gone" for here in held]


def test_empty_file_is_judged_where_it_is_when_something_is_written(hand: keeper.Hand, tmp_path: Path) -> None:
    """As `vault … > .env.prod` writes it, long after the shell has made it. The box has moved it meanwhile."""
    new, moved = tmp_path / ".env.prod", tmp_path / "notes.txt"
    for is_found_first in (True, False):
        hand.waiting.clear()
        with new.open("w") as file:
            if is_found_first:
                settle(hand)
            new.rename(moved)
            settle(hand)
            assert not hand.waiting
            file.write("DB_PASSWORD=x")
        settle(hand)
        assert where_asked(hand, new) == [str(moved)]


def test_empty_file_that_the_box_has_removed_is_told_when_something_is_written(
    hand: keeper.Hand, tmp_path: Path
) -> None:
    new = tmp_path / ".env.prod"
    with new.open("w") as file:
        settle(hand)
        new.unlink()
        settle(hand)
        assert (hand.watches.held, hand.waiting) == (0, {})
        file.write("DB_PASSWORD=x")
    settle(hand)
    assert where_asked(hand, new) == ["gone"]


@pytest.mark.parametrize("end", ["notes.txt", "other/notes.txt"])
@pytest.mark.parametrize("is_one_look", [True, False])
def test_new_file_keeps_its_first_name_until_it_was_opened(
    hand: keeper.Hand, tmp_path: Path, end: str, *, is_one_look: bool
) -> None:
    """The box moves it on by a name that an editor removes."""
    new, between, moved = tmp_path / ".env.prod", tmp_path / ".env.prod.swp", tmp_path / end
    unwatched = tmp_path / "other"
    unwatched.mkdir()
    settle(hand)
    for number in [
        number for number, here in hand.watches.directories.items() if keeper.path_of(here) == f"{unwatched}"
    ]:
        hand.watches.forget(number)
    (tmp_path / ".t").write_text("DB_PASSWORD=x")
    settle(hand)
    (tmp_path / ".t").rename(new)
    new.rename(between)
    if not is_one_look:
        settle(hand)
    between.rename(moved)
    settle(hand)
    assert where_asked(hand, new) == (["gone"] if is_one_look and "/" in end else [str(moved)])


def test_what_came_before_the_kernel_lost_something_counts(
    hand: keeper.Hand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fork", lambda: 1)
    (tmp_path / "notes").touch()
    settle(hand)
    new = tmp_path / ".env.prod"
    new.write_text("DB_PASSWORD=x")
    new.unlink()
    data = os.read(hand.watches.events, 1 << 16)
    lost = b"".join(part.to_bytes(4, "little", signed=True) for part in (-1, keeper.LOST, 0, 0))
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(os, "read", lambda *_: data + lost)
            hand.take_events()
        settle(hand)
    assert where_asked(hand, new) == ["gone"]
    assert (tmp_path / "notes").read_text() == f"claudebox: {keeper.MUCH}\n"
