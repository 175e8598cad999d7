"""The format of what is remembered: whole, or nothing."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudebox.host.tree import Tree
from claudebox.state.memory import Form, escape, note_with_directory, read, recall, unescape, write
from conftest import CHECKOUT, Account

FORM = Form("What was seen. Remove this file to look again.", largest=4096)
LINES = st.lists(st.text().map(escape).filter(lambda line: line != "end"))


@given(LINES)
def test_whole_is_read_as_it_was_written(lines: list[str]) -> None:
    assert read(write(FORM, lines), FORM) == tuple(lines)


@given(st.data(), LINES)
def test_part_is_never_taken_for_the_whole(data: st.DataObject, lines: list[str]) -> None:
    content = write(FORM, lines)
    part = content[: data.draw(st.integers(0, len(content) - 1))]
    assert read(part, FORM) == ()


@given(st.binary())
def test_anything_else_is_damaged(content: bytes) -> None:
    assert read(content, FORM) == ()


@given(st.text(alphabet=st.characters() | st.characters(categories=["Cs"])))
def test_every_text_is_one_line_and_comes_back(text: str) -> None:
    line = escape(text)
    assert line.isprintable()
    assert unescape(line) == text


@pytest.mark.parametrize("line", ["\\q", "\\", "\\x4", "\\x41", "\\u00zz", "\\N{DIGIT ONE}", "\n", "\x1b"])
def test_line_that_escape_does_not_write_is_none(line: str) -> None:
    assert unescape(line) is None


@pytest.mark.parametrize("line", ["one\ntwo", "end"])
def test_line_that_would_be_read_otherwise_is_not_written(line: str) -> None:
    with pytest.raises(ValueError, match="line break, or is its end"):
        write(FORM, [line])


def at(tmp_path: Path, content: bytes) -> tuple[str, ...]:
    (tmp_path / "memory").write_bytes(content)
    return recall(Tree(str(tmp_path)), "/memory", FORM, os.getuid())


def test_nothing_there(tmp_path: Path) -> None:
    assert recall(Tree(str(tmp_path)), "/memory", FORM, os.getuid()) == ()


def test_what_another_box_has_written_since_the_first_look_is_read(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    assert recall(tree, "/memory", FORM, os.getuid()) == ()
    (tmp_path / "memory").write_bytes(write(FORM, ["one"]))
    assert recall(tree, "/memory", FORM, os.getuid()) == ("one",)


def test_as_large_as_it_may_be(tmp_path: Path) -> None:
    rest = FORM.largest - len(write(FORM, [""]))
    assert at(tmp_path, write(FORM, ["x" * rest])) == ("x" * rest,)
    assert at(tmp_path, write(FORM, ["x" * (rest + 1)])) == ()


def test_other_format_is_damaged(tmp_path: Path) -> None:
    assert at(tmp_path, write(FORM.replace(number=2), ["one"])) == ()


def test_somebody_elses_is_damaged(tmp_path: Path) -> None:
    assert at(tmp_path, write(FORM, ["one"])) == ("one",)
    assert recall(Tree(str(tmp_path)), "/memory", FORM, os.getuid() + 1) == ()


@pytest.mark.parametrize("kind", ["symlink", "directory", "fifo"])
def test_what_is_no_plain_file_is_damaged(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "memory"
    if kind == "symlink":
        (tmp_path / "whole").write_bytes(write(FORM, ["one"]))
        path.symlink_to("whole")
    elif kind == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)
    assert recall(Tree(str(tmp_path)), "/memory", FORM, os.getuid()) == ()


def test_keeping_makes_the_directory_first() -> None:
    directory, file = note_with_directory("/home/alice/.claudebox/seen", FORM, ["one"])
    assert (directory.path, file.path) == ("/home/alice/.claudebox", "/home/alice/.claudebox/seen")
    assert file.content.decode() == f"{FORM.title} (format 1)\none\nend\n"


def test_what_cannot_be_looked_at_is_not_absent(user: Account) -> None:
    """A directory that nobody may enter does not mean that nothing is there."""
    kept = user.write(user.home / "kept/memory", write(FORM, ["a"]).decode()).parent
    kept.chmod(0)
    look = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from claudebox.host.tree import Tree\nprint(Tree().lstat(sys.argv[2]), Tree().lacks(sys.argv[2]))"
    )
    told = user.run("/usr/bin/python3", "-I", "-c", look, str(CHECKOUT / "src"), f"{kept}/memory")
    kept.chmod(0o700)
    assert told.stdout.strip() == "None False", told.stderr
    assert not Tree().lacks(str(kept / "memory"))
    assert Tree().lacks(str(kept / "nothing"))
