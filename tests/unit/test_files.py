"""How claudebox touches files in directories where an agent is at work at the same time."""

import errno
import os
import select
import stat
from pathlib import Path

import pytest

from claudebox import files
from claudebox.errors import Problem
from claudebox.files import prepare
from claudebox.model import Preparation

pytestmark = pytest.mark.req("SAND-09")


def test_symlink_in_the_place_of_the_temporary_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    state = tmp_path / "claude"
    state.mkdir()
    write = os.write

    def exchange_meanwhile(descriptor: int, content: bytes) -> int:
        (temporary,) = state.iterdir()
        temporary.unlink()
        temporary.symlink_to(secret)
        return write(descriptor, content)

    monkeypatch.setattr(os, "write", exchange_meanwhile)
    prepare((Preparation(Preparation.FILE, str(state / "settings.json"), b"{}"),))
    assert secret.stat().st_nlink == 1
    assert (state / "settings.json").is_symlink()
    assert secret.read_text() == "of the host"


def memory(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in ("title (format 1)", *lines, "end")).encode()


def test_what_another_box_has_added_meanwhile_stays(tmp_path: Path) -> None:
    """Two worktrees of a repository share what is remembered, and their boxes may start at the same moment."""
    path = tmp_path / "masked"
    path.write_bytes(memory("a", "gone"))
    planned = [memory("a", "first"), memory("a", "second")]
    for content in planned:
        prepare((Preparation(Preparation.FILE, str(path), content, before=memory("a", "gone")),))
    assert path.read_bytes() == memory("a", "second", "first")


@pytest.mark.parametrize("there", [b"", b"junk", memory("a")[:-2], b"other\na\nend\n"])
def test_what_is_no_whole_memory_is_not_taken_into_one(tmp_path: Path, there: bytes) -> None:
    path = tmp_path / "masked"
    path.write_bytes(there)
    with pytest.raises(Problem, match="try again"):
        prepare((Preparation(Preparation.FILE, str(path), memory("b"), before=memory("a")),))
    assert path.read_bytes() == there


def test_storm_of_boxes_forgets_nothing(tmp_path: Path) -> None:
    path, number = tmp_path / "masked", 12
    children = []
    for child in range(number):
        if (pid := os.fork()) == 0:
            try:
                prepare((Preparation(Preparation.FILE, str(path), memory(f"of {child}"), before=memory()),))
            finally:
                os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    assert set(path.read_text().splitlines()) == {
        "title (format 1)",
        "end",
        *(f"of {child}" for child in range(number)),
    }


@pytest.mark.parametrize("call", ["write", "link"])
def test_full_disk_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    path = tmp_path / "masked"
    path.write_bytes(memory("a"))
    write = os.write

    def fail(*arguments: object, **_: object) -> int:
        if call == "write":
            write(arguments[0], memory("b")[:5])  # type: ignore[arg-type]
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, fail)
    if call == "link":
        monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(Problem, match="No space"):
        prepare((Preparation(Preparation.FILE, str(path), memory("b")),))
    assert path.read_bytes() == memory("a")
    assert [one.name for one in tmp_path.iterdir()] == ["masked"]


def test_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, content[:3]))
    files.write_whole(str(tmp_path / "note"), b"0123456789")
    assert (tmp_path / "note").read_bytes() == b"0123456789"


def test_directory_in_the_place_of_a_file_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / "note" / "in").mkdir(parents=True)
    files.write_whole(str(tmp_path / "note"), b"text")
    assert (tmp_path / "note").read_bytes() == b"text"
    (aside,) = (one for one in tmp_path.iterdir() if one.name.startswith("note.aside."))
    assert (aside / "in").is_dir()


@pytest.mark.parametrize("kind", ["symlink", "fifo"])
def test_nothing_is_written_through_what_an_agent_has_put_there(tmp_path: Path, kind: str) -> None:
    secret, path = tmp_path / "secret", tmp_path / "note"
    secret.write_text("of the host")
    path.symlink_to(secret) if kind == "symlink" else os.mkfifo(path)
    files.write_whole(str(path), b"text")
    assert (secret.read_text(), path.is_symlink(), path.read_bytes()) == ("of the host", False, b"text")


def test_directory_behind_a_symlink_is_not_opened_or_made(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "root" / "link").symlink_to("../outside")
    root = os.open(tmp_path / "root", files.DIRECTORY)
    with pytest.raises(NotADirectoryError):
        files.open_below(root, "link/new", makes=True)
    with pytest.raises(NotADirectoryError):
        files.open_directory(f"{tmp_path}/root/link")
    os.close(files.open_below(root, "a/b", makes=True))
    os.close(root)
    assert list((tmp_path / "outside").iterdir()) == []
    assert (tmp_path / "root" / "a" / "b").is_dir()


def test_new_directories_are_this_users_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        files.make_private(str(tmp_path / "a" / "b"))
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a", tmp_path / "a" / "b")} == {0o700}


def test_lock_is_held_by_one_and_is_never_readable(tmp_path: Path) -> None:
    """Whoever waits for the end of a box polls it, and would take a plain file for the end of somebody."""
    first, second = (files.open_lock(str(tmp_path / "lock")) for _ in range(2))
    assert (files.take_lock(first), files.take_lock(second)) == (True, False)
    poll = select.poll()
    poll.register(first, select.POLLIN)
    assert poll.poll(0) == []
    os.close(first)
    assert files.take_lock(second)
    os.close(second)


def test_copy_is_as_deep_as_descriptors_last(tmp_path: Path) -> None:
    deep, here = tmp_path / "deep", tmp_path / "deep"
    for _ in range(files.DEEPEST + 2):
        here /= "d"
    here.mkdir(parents=True)
    (tmp_path / "copy").mkdir()
    source, target = os.open(tmp_path, files.DIRECTORY), os.open(tmp_path / "copy", files.DIRECTORY)
    with pytest.raises(OSError, match="nested deeper"):
        files.copy_tree(source, deep.name, target)
    os.close(source)
    os.close(target)


def test_removal_takes_nothing_of_the_users_that_is_called_like_what_it_moves(tmp_path: Path) -> None:
    """An agent chooses the name: beside `env` there may be an `.env.1`, which it cannot remove itself."""
    (tmp_path / "env/deep/deeper").mkdir(parents=True)
    (tmp_path / ".env.1").write_text("TOKEN=x")
    (tmp_path / ".env.77").mkdir()
    here = os.open(tmp_path, files.DIRECTORY)
    files.remove_tree(here, "env")
    os.close(here)
    assert sorted(os.listdir(tmp_path)) == [".env.1", ".env.77"]
