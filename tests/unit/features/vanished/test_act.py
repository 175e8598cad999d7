"""What is found in a home that a box leaves, without a box: bounds, and what takes how long."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from claudebox.features.vanished import act
from claudebox.features.vanished.act import ABOVE_NOISE, NOISE, find_written, gone_text, hold_home
from claudebox.model import FILE, RW, SYMLINK, Mount, Origin

pytestmark = pytest.mark.req("WORK-01")

HOME = "/home/alice"
BOX = Origin.of_rule("box")
MOUNTS = (
    Mount(RW, f"{HOME}/src/shop", BOX),
    Mount(SYMLINK, f"{HOME}/.local/bin/claude", BOX),
    Mount(FILE, f"{HOME}/.gitconfig", BOX, content=b"[user]\n"),
)


def found(home: Path) -> tuple[list[tuple[str, int]], bool]:
    descriptor = os.open(home, os.O_RDONLY)
    try:
        return find_written(descriptor, HOME, MOUNTS)
    finally:
        os.close(descriptor)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """As bwrap makes it."""
    for name in ("src/shop", ".local/bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / ".local/bin/claude").symlink_to("/opt/claude")
    (tmp_path / ".gitconfig").write_bytes(b"[user]\n")
    return tmp_path


def test_what_bwrap_has_made_is_not_lost(home: Path) -> None:
    (home / "src/shop/in-the-project").touch()
    assert found(home) == ([], True)


def test_each_noise_is_left_out_and_its_neighbour_is_not(home: Path) -> None:
    for name in NOISE:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).mkdir(exist_ok=True)
        (home / name / "file").touch()
    assert found(home) == ([], True)
    for above in ABOVE_NOISE:
        (home / above / "neighbour").touch()
    assert [name for name, _ in found(home)[0]] == sorted(f"{above}/neighbour" for above in ABOVE_NOISE)


def test_number_of_files_has_an_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(act, "MOST_LOOKED_AT", 50)
    (home / "many").mkdir()
    for number in range(100):
        (home / "many" / str(number)).touch()
    written, is_whole = found(home)
    assert not is_whole
    assert sum(files for _, files in written) < 50


def test_time_has_an_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(act, "LONGEST", -1.0)
    for number in range(600):
        (home / str(number)).touch()
    assert found(home)[1] is False


def test_few_files_take_less_than_a_millisecond(home: Path) -> None:
    def once() -> float:
        begin = time.thread_time()
        found(home)
        return time.thread_time() - begin

    assert min(once() for _ in range(20)) < 0.001


@pytest.mark.req("UX-01")
def test_text_is_short_and_escaped() -> None:
    names = [(f"{number}\x1b[2J" + "x" * 300, 2) for number in range(100)]
    text = gone_text(names, False)
    assert "\x1b" not in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert len(text.splitlines()) <= 4
    assert "and more than 97 more" in " ".join(text.split())
    assert gone_text([], True) == ""


def test_only_a_file_system_in_memory_is_held(tmp_path: Path) -> None:
    """`tmp_path` is on a disk, or at least not what the mounts of this process say of it."""
    (tmp_path / "root" / "home").mkdir(parents=True)
    (tmp_path / "mountinfo").write_text("1 0 0:1 / / rw - tmpfs tmpfs rw\n")
    assert hold_home("/home", str(tmp_path / "root")) == -1
    device = (tmp_path / "root" / "home").stat().st_dev
    for kind, is_held in (("tmpfs", True), ("ext4", False)):
        row = f"1 0 {os.major(device)}:{os.minor(device)} / /home rw - {kind} {kind} rw\n"
        (tmp_path / "mountinfo").write_text(row)
        held = hold_home("/home", str(tmp_path / "root"))
        assert (held >= 0) is is_held
        if held >= 0:
            os.close(held)
