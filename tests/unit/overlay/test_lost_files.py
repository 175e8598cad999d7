"""What is found in a home that a box leaves, without a box: the rule, and that the look has an end."""

import os
from pathlib import Path

import pytest

from claudebox.model import FILE, RW, SYMLINK, Mount, Origin
from claudebox.overlay import lost_files
from claudebox.overlay.lost_files import Look, gone_text, hold_home

pytestmark = pytest.mark.req("WORK-01")

HOME = "/home/alice"
BOX = Origin.of_rule("box")
MOUNTS = (
    Mount(RW, f"{HOME}/src/shop", BOX),
    Mount(SYMLINK, f"{HOME}/.local/bin/claude", BOX),
    Mount(FILE, f"{HOME}/.gitconfig", BOX, content=b"[user]\n"),
)


def look_at(home: Path) -> Look:
    descriptor = os.open(home, os.O_RDONLY)
    try:
        return Look(descriptor, HOME, MOUNTS)
    finally:
        os.close(descriptor)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """As bwrap makes it, and what nobody misses."""
    for name in ("src/shop", ".local/bin", "empty/in", ".cache/pip", ".config/configstore", "go/pkg"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("src/shop/made", ".cache/pip/x", ".config/configstore/x", ".local/x", "go/pkg/x", ".bash_history"):
        (tmp_path / name).touch()
    (tmp_path / ".local/bin/claude").symlink_to("/opt/claude")
    (tmp_path / ".gitconfig").write_bytes(b"[user]\n")
    return tmp_path


def test_project_and_what_tools_keep_do_not_count_and_their_neighbours_do(home: Path) -> None:
    assert look_at(home).written == []
    for name in (".zshrc", "go/bin", "src/.notes", "notes"):
        (home / name).touch()
    (home / ".gitconfig").write_bytes(b"[alias]\n")
    names = [name for name, _ in sorted(look_at(home).written)]
    assert names == [".gitconfig", ".zshrc", "go", "notes", "src/.notes"]


@pytest.mark.parametrize(("limit", "value"), [("MOST_LOOKED_AT", 50), ("LONGEST", -1.0)])
def test_number_and_time_have_an_end(home: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: float) -> None:
    monkeypatch.setattr(lost_files, limit, value)
    (home / "many").mkdir()
    for number in range(600):
        (home / "many" / str(number)).touch()
    look = look_at(home)
    assert look.left <= 0
    assert sum(files for _, files in look.written) < 300


@pytest.mark.req("UX-01")
def test_text_is_short_and_escaped() -> None:
    names = [(f"{number}\x1b[2J" + "x" * 300, 2) for number in range(100)]
    text = gone_text(names, True)
    assert "\x1b" not in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert len(text.splitlines()) <= 4
    assert "and 97 more" in " ".join(text.split())
    assert gone_text([], True) == ""


def test_only_a_file_system_in_memory_is_held(tmp_path: Path) -> None:
    """`tmp_path` is on a disk, or at least not what the mounts of this process say of it."""
    (tmp_path / "root" / "home").mkdir(parents=True)
    device = (tmp_path / "root" / "home").stat().st_dev
    here = f"{os.major(device)}:{os.minor(device)}"
    for number, kind, is_held in (("0:1", "tmpfs", False), (here, "tmpfs", True), (here, "ext4", False)):
        (tmp_path / "mountinfo").write_text(f"1 0 {number} / /home rw - {kind} {kind} rw\n")
        held = hold_home("/home", str(tmp_path / "root"))
        assert (held >= 0) is is_held
        if held >= 0:
            os.close(held)
