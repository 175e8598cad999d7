"""A diff shows what a terminal would obey, and believes only the user's own configuration."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claudebox.features.review.judge import Item
from claudebox.features.review.show import diff_lines, only_colours, users_program
from claudebox.view.review import LONGEST_DIFF, listing, summary
from claudebox.view.text import Style, width
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
    home = str(world.project.parent)
    return "\n".join(
        [summary("1", items, (), style), listing(items, style), *diff_lines(world.layer, items, style, home)]
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
    items = [Item(change) for change in world.changes()]
    times = path.stat()
    wait_for_the_clock()
    path.write_text("mild\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    text = "\n".join(diff_lines(world.layer, items, PLAIN, str(tmp_path)))
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


def test_program_of_the_repository_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world(tmp_path, {"a": "old\n", ".git/config": "[diff]\n\texternal = touch /tmp/ran\n"})
    world.write("a", "new\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    assert users_program("diff.external", str(tmp_path)) == ""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nprintf '\\033[31m%s\\033[2J\\n' \"$1\"\n")
    program.chmod(0o755)
    (tmp_path / ".gitconfig").write_text(f"[diff]\n\texternal = {program}\n")
    assert "\x1b[31ma\\x1b[2J" in text_of(world)


def test_program_of_the_user_hides_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing of a mode, gets only the beginning of a large file, and knows nothing of what this host runs."""
    large = "x\n" * LONGEST_DIFF
    world = make_world(tmp_path, {"tool": "same\n", "link": "text\n", "large": large + "old\n"})
    world.write("tool", "same\n", 0o755)
    world.write("large", large + "evil\n")
    (world.upper / "link").symlink_to("/etc/passwd")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\ndiff "$2" "$5"\n:\n')
    program.chmod(0o755)
    (tmp_path / ".gitconfig").write_text(f"[diff]\n\texternal = {program}\n")
    items = [Item(change, "a reason") for change in world.changes()]
    lines = list(diff_lines(world.layer, items, PLAIN, str(tmp_path)))
    assert "changed tool (mode 644 -> 755)" in lines
    assert "+-> /etc/passwd" in lines
    assert "changed large" in lines
    assert "  large: 2M" in lines
    assert lines.count("  this host: a reason") == 3


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\tb\r", "a    b\\r"),
    ],
)
def test_only_colours_pass(said: str, shown: str) -> None:
    assert only_colours(said) == shown
