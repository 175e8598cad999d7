"""The state of all projects can be looked at, and what is gone collected."""

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from claude.session import Talk, broke, fingerprint
from claudebox.commands.kept import Listed, Size, find_instances, find_others, listing, overview
from claudebox.state import Instance, State
from claudebox.text import style_for
from conftest import Account, Box
from terminal.pseudoterminal import claudebox_terminal

pytestmark = pytest.mark.req("INST-03")

FAILED = 125
DAY = 24 * 3600


def instance(account: Account, name: str, project: Path, size: int = 0, days: int = 0) -> Path:
    """The state of a project, as a launch leaves it."""
    directory = account.home / ".claudebox" / "instances" / name
    note = account.write(directory / "project", f"{project}\n")
    account.write(directory / "claude" / "history.jsonl", "x" * size)
    os.utime(note, (time.time() - days * DAY,) * 2)
    return directory


@pytest.fixture
def gone(user_talk: Talk) -> Path:
    return instance(user_talk.account, "aaaaaaaaaaaaaaaa", user_talk.account.home / "src" / "gone")


@pytest.fixture
def kept(user_talk: Talk) -> Path:
    return instance(user_talk.account, "bbbbbbbbbbbbbbbb", user_talk.project)


def test_launch_is_listed(talk: Talk) -> None:
    assert talk.box.claudebox("--instances").stdout == "No project has been started in a box yet.\n"
    talk.inside("true")
    other = talk.account.write(talk.account.home / "src" / "gone" / "a").parent
    replace(talk, box=replace(talk.box, project=other)).inside("head -c 5000000 /dev/zero > ~/.claude/large")
    shutil.rmtree(other)
    head, first, second, *others = talk.box.claudebox("--instances").stdout.splitlines()
    assert head.split() == ["last", "use", "size", "project"]
    assert first.split() == ["today", "5M", str(other), "(gone)"]
    assert second.split()[::2] == ["today", str(talk.project)]
    assert others[-1] == "All of it is in ~/.claudebox. To remove it: claudebox --uninstall"


@pytest.mark.req("STATE-01")
def test_all_that_is_kept_is_listed(user: Account) -> None:
    """Not only what is kept for projects: whatever is in the directory."""
    for name in ("config.toml", "profiles/mine.toml", ".credentials.json", "decisions", "packages/x", "of/a/version"):
        user.write(user.home / ".claudebox" / name, "x" * 1000)
    state = State(str(user.home))
    text = overview(find_instances(state), find_others(state), style_for(False, {}))
    assert text.splitlines() == [
        "No project has been started in a box yet.",
        "              3K  your own: .credentials.json, config.toml, profiles",
        "              3K  what claudebox remembers besides: decisions, of, packages",
    ]


def test_listing_is_in_order_of_use(user: Account) -> None:
    here = user.write(user.home / "here" / "a").parent
    used = [
        instance(user, name, place, size, days)
        for name, place, size, days in (
            ("a" * 16, user.home / "gone", 10, 400),
            ("b" * 16, here, 2000, 1),
            ("c" * 16, here, 3_000_000, 0),
        )
    ]
    left = user.home / ".claudebox/instances/.gone.1"  # by a removal that was ended: agents chose what is in it
    left.mkdir()
    os.mkfifo(left / "project")
    found = find_instances(State(str(user.home)))
    assert [(item.instance.directory, item.is_gone) for item in found] == [
        (str(used[2]), False),
        (str(used[1]), False),
        (str(used[0]), True),
    ]
    rows = [line.split()[:3] for line in listing(found, style_for(False, {})).splitlines()[1:]]
    assert [row[:2] for row in rows] == [["today", "3M"], ["yesterday", "2K"], ["400", "days"]]


@pytest.mark.req("UX-01")
def test_name_of_a_project_cannot_write_on_the_screen(user: Account) -> None:
    item = Listed(Instance("/x", ""), "/home/a/\x1b[2J\nforged", time.time(), Size(0), True)
    text = listing([item], style_for(False, {}))
    assert "\x1b" not in text
    assert len(text.splitlines()) == 2


@pytest.mark.req("FAIL-01")
def test_nothing_is_removed_without_a_yes(user_talk: Talk, gone: Path, kept: Path) -> None:
    done = user_talk.box.claudebox("--instances", "gc")
    assert done.returncode == FAILED
    assert str(user_talk.account.home / "src" / "gone") in done.stdout
    assert (gone.exists(), kept.exists()) == (True, True)


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("\n", FAILED), ("n\n", FAILED)])
def test_it_asks_before_it_removes(user_talk: Talk, gone: Path, kept: Path, answer: str, status: int) -> None:
    with claudebox_terminal(user_talk.box, "--instances", "gc") as opened:
        opened.answer(r"Remove these, with their conversations\? \[y/N\] ", answer)
        assert opened.wait() == status
    assert (gone.exists(), kept.exists()) == (status != 0, True)


def test_yes_removes_what_is_gone_and_nothing_else(user_talk: Talk, gone: Path, kept: Path) -> None:
    before = fingerprint(kept)
    unknown = user_talk.account.write(gone.parent / "cccccccccccccccc" / "claude" / "a").parent.parent
    assert user_talk.box.claudebox("--instances", "gc", "--yes").returncode == 0
    assert (gone.exists(), unknown.exists()) == (False, True)
    assert fingerprint(kept) == before
    again = user_talk.box.claudebox("--instances", "gc", "--yes")
    assert (again.returncode, again.stdout) == (0, "Every project is still there: nothing to remove.\n")


@pytest.mark.parametrize("why", ["review", "unmounted", "below a mount point"])
def test_what_may_still_be_needed_goes_only_after_a_question_of_its_own(shop: Box, why: str) -> None:
    """A mount point of a disk that is not there is an empty directory."""
    account, home = shop.account, shop.account.home
    disk = home / "disk"
    disk.mkdir()
    account.own(disk)
    project = home / "src" / "gone" if why == "review" else disk / ("deep/shop" if "below" in why else "shop")
    kept, sure = instance(account, "a" * 16, project), instance(account, "b" * 16, home / "src" / "other")
    if why == "review":
        note = json.dumps({"project": str(project), "git": "", "since": 0, "known": {}})
        account.write(kept / "layers" / "1" / "note", note)
    done = shop.claudebox("--instances", "gc", "--yes")
    assert (done.returncode, kept.exists(), sure.exists()) == (0, True, False), done.stderr
    said = "1 review not landed" if why == "review" else "it may be on a disk that is not mounted"
    assert f"It stays: {said}.\n" in done.stdout
    for answer, is_there in (("n\n", True), ("y\n", False)):
        with claudebox_terminal(shop, "--instances", "gc", "--yes") as opened:
            opened.answer(rf"Remove it, although: {said}\? \[y/N\] ", answer)
            assert opened.wait() == 0
        assert kept.exists() is is_there


@pytest.mark.req("FAIL-01")
def test_no_symlink_is_followed(user_talk: Talk, gone: Path, kept: Path) -> None:
    account = user_talk.account
    outside = account.write(account.home / "outside" / "precious", "x" * 3_000_000).parent
    (gone / "claude" / "link").symlink_to(outside)
    (gone / "claude" / "file").symlink_to(outside / "precious")
    before = fingerprint(outside)
    assert "3M" not in user_talk.box.claudebox("--instances").stdout
    assert user_talk.box.claudebox("--instances", "gc", "--yes").returncode == 0
    assert not gone.exists()
    assert fingerprint(outside) == before


@pytest.mark.req("FAIL-01")
def test_symlink_in_place_of_a_state_is_left_alone(user_talk: Talk, gone: Path) -> None:
    outside = user_talk.account.write(user_talk.account.home / "outside" / "project", "/gone\n").parent
    (gone.parent / "dddddddddddddddd").symlink_to(outside)
    done = user_talk.box.claudebox("--instances", "gc", "--yes")
    assert (done.returncode, gone.exists(), outside.exists()) == (0, False, True), done.stderr


@pytest.mark.parametrize("mode", [0o000, 0o444, 0o555])
def test_directory_that_the_agent_closed_is_no_obstacle(user_talk: Talk, gone: Path, mode: int) -> None:
    closed = user_talk.account.write(gone / "claude" / "closed" / "a").parent
    closed.chmod(mode)
    listed = user_talk.box.claudebox("--instances")
    assert (listed.returncode, listed.stderr) == (0, "")
    done = user_talk.box.claudebox("--instances", "gc", "--yes")
    assert not broke(done), done.stderr
    assert (done.returncode, gone.exists()) == (0, False), done.stderr
