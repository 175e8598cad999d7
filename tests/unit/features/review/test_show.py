"""A diff shows what a terminal would obey, and believes only the user's own configuration."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claudebox.features.review.judge import Item
from claudebox.features.review.show import diff_lines, users_program
from claudebox.text import Style, width
from claudebox.view.review import LONGEST_DIFF, listing, summary
from unit.layers.world import World, make_world, wait_for_the_clock

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
    items = [Item(change) for change in world.changes()]
    return "\n".join([summary("1", items, (), style), listing(items, style), *diff_lines(world.layer, items, style)])


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
    items = [Item(change) for change in world.changes()]
    times = path.stat()
    wait_for_the_clock()
    path.write_text("mild\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    text = "\n".join(diff_lines(world.layer, items, PLAIN))
    assert "cannot be read" in text
    assert "mild" not in text


def test_deletions_are_counted_even_if_they_are_many(tmp_path: Path) -> None:
    world = make_world(tmp_path, {f"f{number}": "x\n" for number in range(50)})
    for number in range(50):
        world.whiteout(f"f{number}")
    items = [Item(change) for change in world.changes()]
    text = summary("1", items, (), PLAIN)
    assert "50 deleted" in text
    assert "and 38 more" in " ".join(text.split())


def test_pager_of_the_repository_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_world(tmp_path, {".git/config": "[core]\n\tpager = touch /tmp/ran\n"})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    assert users_program("core.pager", str(tmp_path)) == ""
    (tmp_path / ".gitconfig").write_text("[core]\n\tpager = delta\n")
    assert users_program("core.pager", str(tmp_path)) == "delta"


def test_diff_hides_no_change(tmp_path: Path) -> None:
    large = "x\n" * LONGEST_DIFF
    world = make_world(tmp_path, {"tool": "same\n", "link": "text\n", "large": large + "old\n"})
    world.write("tool", "same\n", 0o755)
    world.write("large", large + "evil\n")
    (world.upper / "link").symlink_to("/etc/passwd")
    lines = list(diff_lines(world.layer, [Item(change, "a reason") for change in world.changes()], PLAIN))
    assert "changed tool (mode 644 -> 755)" in lines
    assert "+-> /etc/passwd" in lines
    assert "changed large" in lines
    assert "  large: 2M" in lines
    assert lines.count("  this host: a reason") == 3
