"""How claudebox writes its state, in directories where an agent writes at the same time."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from claudebox.files import prepare
from claudebox.model import Preparation
from claudebox.problem import Problem

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
