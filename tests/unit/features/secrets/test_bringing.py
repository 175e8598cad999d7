"""The real file is replaced in one step, keeps what is its own, and nothing leads elsewhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from claudebox import files
from claudebox.features.secrets import bringing, locks
from claudebox.features.secrets.bringing import GONE, TEMPORARY, land, report
from claudebox.features.secrets.table import kind_of
from claudebox.merging import HELD_SECRET, STALE, TOO_LARGE, Merged
from claudebox.model import MASK, Mount, Origin
from claudebox.state import State
from hosts.machine import EVERYONE, TREES, Machine

pytestmark = pytest.mark.req("SEC-01")

REAL = b"PORT=3000\nDB_PASSWORD=hunter2\n"
GIVEN = b"PORT=3000\nDB_PASSWORD=jdpfayb2\n"
LEFT = GIVEN + b"NEW=1\n"


@pytest.fixture
def env(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "project" / ".env"
    path.parent.mkdir()
    path.write_bytes(REAL)
    path.chmod(0o640)
    return path


def identity(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino


def landed(path: Path, left: bytes = LEFT, known: tuple[int, int] | None = None) -> Merged:
    merged = land(str(path), known or identity(path), GIVEN, left)
    assert not [one for one in path.parent.iterdir() if one.name.startswith(TEMPORARY)], "nothing stays behind"
    return merged


@pytest.mark.attributes
def test_new_line_lands_and_mode_and_attributes_stay(env: Path) -> None:
    os.setxattr(env, "user.colour", b"blue")
    assert landed(env).landed == ("NEW",)
    assert env.read_bytes() == REAL + b"NEW=1\n"
    assert stat.S_IMODE(env.stat().st_mode) == 0o640
    assert os.getxattr(env, "user.colour") == b"blue"


def test_symlink_is_not_followed(env: Path, tmp_path: Path) -> None:
    known = identity(env)
    env.rename(tmp_path / "elsewhere")
    env.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        land(str(env), known, GIVEN, LEFT)
    assert (tmp_path / "elsewhere").read_bytes() == REAL


def test_directory_that_became_a_symlink_is_not_followed(env: Path, tmp_path: Path) -> None:
    known = identity(env)
    env.parent.rename(tmp_path / "other")
    env.parent.symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="directory"):
        land(str(env), known, GIVEN, LEFT)
    assert (tmp_path / "other/.env").read_bytes() == REAL


def test_fifo_does_not_block(env: Path) -> None:
    known = identity(env)
    env.unlink()
    os.mkfifo(env)
    with pytest.raises(OSError, match="no file any more"):
        land(str(env), known, GIVEN, LEFT)


def test_another_file_of_that_name_is_left_alone(env: Path) -> None:
    known = identity(env)
    env.rename(env.with_name("old"))
    env.write_bytes(REAL)
    assert landed(env, known=known) == Merged(trouble=GONE)
    assert env.read_bytes() == REAL


def test_file_with_a_second_name_is_left_alone(env: Path) -> None:
    env.with_name("second").hardlink_to(env)
    assert landed(env) == Merged(trouble=GONE)
    assert env.read_bytes() == REAL


def test_what_the_host_writes_at_the_last_moment_is_not_lost(env: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = files.rename
    times: list[tuple[int | str, ...]] = []

    def meanwhile(*words: int | str) -> None:
        if not times:
            env.write_bytes(REAL + b"MINE=1\n")
        times.append(words)
        rename(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "rename", meanwhile)
    assert landed(env) == Merged(trouble=STALE)
    assert env.read_bytes() == REAL + b"MINE=1\n"
    assert len(times) == 2


def test_file_that_an_editor_replaces_at_the_last_moment_is_not_lost(
    env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = files.rename
    times: list[tuple[int | str, ...]] = []

    def meanwhile(*words: int | str) -> None:
        if not times:
            env.with_name("new").write_bytes(b"OTHER=1\n")
            env.with_name("new").rename(env)
        times.append(words)
        rename(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "rename", meanwhile)
    assert landed(env) == Merged(trouble=STALE)
    assert env.read_bytes() == b"OTHER=1\n"


def test_file_that_is_being_made_is_masked_by_its_name() -> None:
    assert kind_of(f"/p/{TEMPORARY}0123456789ab") == kind_of("/p/.env")


def test_lock_of_a_box_keeps_others_from_replacing_the_file(tmp_path: Path) -> None:
    """In that box the mask would fall off, and the secrets be there."""
    box, other = (locks.open_lock(str(tmp_path / "lock")) for _ in range(2))
    locks.hold(box, (1, 2))
    assert not locks.take(other, (1, 2))
    assert locks.take(other, (1, 3))
    os.close(box)
    assert locks.take(other, (1, 2))
    os.close(other)


def test_all_that_happened_is_one_line() -> None:
    held = (("DB_PASSWORD", HELD_SECRET), ("X\x1b[2J", "refers to something else"))
    text = report("a\n.env", Merged(b"", ("PORT", "NEW"), held), "~/kept")
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert "landed PORT, NEW; not landed: DB_PASSWORD (holds a secret), X" in text
    assert text.endswith(". As the box left it: ~/kept\n")
    assert report(".env", Merged(trouble=TOO_LARGE), "") == "claudebox: .env: nothing landed: it is too large\n"


def test_huge_or_locked_decoy_is_no_trouble(env: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    state = State(str(tmp_path)).instance("/x")
    directory = Path(state.edited) / "1-a"
    directory.mkdir(parents=True)
    for number in range(2):
        (directory / str(number)).write_bytes(LEFT)
    with (directory / "0").open("r+b") as file:
        file.truncate(1 << 40)
    (directory / "1").chmod(0)
    mask = Mount(MASK, str(env), Origin.of_rule("secrets"), content=GIVEN, covers=str(env), identity=identity(env))
    mounts = tuple(mask.replace(is_editable=True, source=f"{directory}/{number}") for number in range(2))
    machine = Machine(tmp_path / "machine").plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    plan = machine.plan().replace(mounts=mounts, state=state, project=str(env.parent))
    bringing.bring_back(plan)
    said = capfd.readouterr().err
    assert "nothing landed: it is too large" in said
    assert ".env: landed NEW\n" in said
    assert not directory.exists()
    assert env.read_bytes() == REAL + b"NEW=1\n"
