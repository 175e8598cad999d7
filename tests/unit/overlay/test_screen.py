"""A difference is right, shows what a terminal would obey, and believes only the user's own configuration."""

import difflib
import os
import time
from pathlib import Path

import pytest

from claudebox.output.terminal import PAGER, users_pager
from claudebox.overlay.changes import MOST_SHOWN
from claudebox.overlay.screen import diff_lines, listing, summary, unified
from claudebox.text import Style, width
from unit.overlay.world import World, make_world, wait_for_the_clock

pytestmark = pytest.mark.req("LAND-01")
PLAIN = Style(colour=False)


def world_with_odd_names(tmp_path: Path) -> World:
    world = make_world(tmp_path, {"old": "one\ntwo\n", "gone/x": "x\n"})
    world.write("old", "one\nthree \x1b[2J\u202e\n")
    world.write("na\nme\x1b[31m", "x")
    world.write("binary", "x\0y")
    world.whiteout("gone")
    return world


def text_of(world: World, style: Style = PLAIN) -> str:
    changes = world.changes()
    return "\n".join(
        [summary("1", changes, (), style), listing(changes, style), *diff_lines(world.layer, changes, style)]
    )


def test_nothing_that_a_terminal_obeys_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    text = text_of(world_with_odd_names(tmp_path))
    assert text.replace("\n", "").isprintable()
    assert "+three \\x1b[2J\\u202e" in text
    assert "-two" in text
    assert "gone/ (1 file)" in text
    assert "\\ No newline at end of file" in text
    assert max(width(line) for line in text.splitlines() if "na\\nme" not in line) <= 80


def test_line_that_looks_like_the_head_of_a_diff_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`++i; evil()` is `+++i; evil()` in a diff, where `+++ b/file` is usual."""
    monkeypatch.setenv("HOME", str(tmp_path))
    world = make_world(tmp_path, {"old": "one\n-- checked\n"})
    world.write("old", "one\n++i; evil()\n")
    world.write("new", "++i; evil()\n++ more\n")
    text = text_of(world).splitlines()
    assert text.count("+++i; evil()") == 2
    assert "+++ more" in text
    assert "--- checked" in text


def test_file_that_changed_since_the_list_was_made_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is shown has to be what would land, even if another box has a descriptor of it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    world = make_world(tmp_path, {})
    path = world.write("new", "evil\n")
    changes = world.changes()
    times = path.stat()
    wait_for_the_clock()
    path.write_text("mild\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    text = "\n".join(diff_lines(world.layer, changes, PLAIN))
    assert "cannot be read" in text
    assert "mild" not in text


def test_deletions_are_counted_even_if_they_are_many(tmp_path: Path) -> None:
    world = make_world(tmp_path, {f"f{number}": "x\n" for number in range(50)})
    for number in range(50):
        world.whiteout(f"f{number}")
    changes = world.changes()
    text = summary("1", changes, (), PLAIN)
    assert "50 deleted" in text
    assert "and 38 more" in " ".join(text.split())


def test_pager_of_the_repository_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_world(tmp_path, {".git/config": "[core]\n\tpager = touch /tmp/ran\n"})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("PAGER", raising=False)
    assert users_pager(str(tmp_path)) == PAGER
    (tmp_path / ".gitconfig").write_text("[core]\n\tpager = delta\n")
    assert users_pager(str(tmp_path)) == "delta"


def test_diff_hides_no_change(tmp_path: Path) -> None:
    large = "x\n" * MOST_SHOWN
    world = make_world(tmp_path, {"tool": "same\n", "link": "text\n", "large": large + "old\n"})
    world.write("tool", "same\n", 0o755)
    world.write("large", large + "evil\n")
    (world.upper / "link").symlink_to("/etc/passwd")
    lines = list(diff_lines(world.layer, [change.replace(reason="a reason") for change in world.changes()], PLAIN))
    assert "changed tool (mode 644 -> 755)" in lines
    assert "+-> /etc/passwd" in lines
    assert "changed large" in lines
    assert "  large: 2M" in lines
    assert lines.count("  this host: a reason") == 3


def test_same_as_the_library_where_that_is_quick() -> None:
    old = [f"line {number}" for number in range(3000)]
    new = [*old[:100], "new", *old[150:2000], "", "++i", *old[2001:]]
    assert list(unified(old, new)) == list(difflib.unified_diff(old, new, lineterm=""))[2:]
    assert list(unified(old, old)) == []


@pytest.mark.parametrize("each", [2, 20, 90])
def test_crafted_lines_do_not_make_it_last(each: int) -> None:
    """Lines that come again, but seldom enough for the library not to leave them out, and in another order."""
    lines = [f"{number}" for number in range(20_000 // each)] * each
    begun = time.process_time()
    shown = list(unified(lines, lines[1:] + lines[:1] + ["x"] + lines[::-1]))
    assert time.process_time() - begun < 20
    assert len(shown) > 20_000
