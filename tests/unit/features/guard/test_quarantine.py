"""What is moved away lands in the quarantine and nowhere else, whatever another box does meanwhile."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from claudebox import files
from claudebox.features.guard.quarantine import Old, Quarantine

pytestmark = pytest.mark.req("INST-02")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("project", "home", "state"):
        (tmp_path / name).mkdir()
    (tmp_path / "home" / ".bashrc").write_text("mine")
    return tmp_path / "project"


@pytest.fixture(params=["same file system", "another one"])
def place(request: pytest.FixtureRequest, project: Path, monkeypatch: pytest.MonkeyPatch) -> Quarantine:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "another file system")

    if request.param == "another one":
        monkeypatch.setattr(files, "rename", refuse)
    return Quarantine(str(project.parent / "state"))


def test_symlink_that_was_moved_first_leads_nothing_out(project: Path, place: Quarantine) -> None:
    (project / "a").symlink_to("../home")
    place.take(str(project), "a", None)
    (project / "a").mkdir()
    (project / "a" / ".bashrc").write_text("planted")
    with pytest.raises(NotADirectoryError):
        place.take(str(project), "a/.bashrc", None)
    assert (project.parent / "home" / ".bashrc").read_text() == "mine"
    assert os.readlink(f"{place.directory}/a") == "../home"


def test_nothing_is_moved_onto_something(project: Path, place: Quarantine) -> None:
    for text in ("first", "second"):
        (project / "x").write_text(text)
        with pytest.raises(FileExistsError) if text == "second" else pytest.MonkeyPatch.context():
            place.take(str(project), "x", None)
    assert Path(place.directory, "x").read_text() == "first"
    assert (project / "x").read_text() == "second"


def test_directory_with_everything_in_it(project: Path, place: Quarantine) -> None:
    (project / "d/e").mkdir(parents=True)
    (project / "d/e/file").write_text("text")
    (project / "d/e/file").chmod(0o755)
    (project / "d/link").symlink_to("/etc")
    os.mkfifo(project / "d/fifo")
    place.take(str(project), "d", None)
    assert not (project / "d").exists()
    assert Path(place.directory, "d/e/file").read_text() == "text"
    assert os.readlink(f"{place.directory}/d/link") == "/etc"


def test_symlink_comes_back_as_one(project: Path, place: Quarantine) -> None:
    (project / "x").symlink_to("/etc/passwd")
    place.take(str(project), "x", Old(b"inner", stat.S_IFLNK | 0o777))
    assert os.readlink(project / "x") == "inner"


def test_file_comes_back_as_it_was(project: Path, place: Quarantine) -> None:
    (project / "x").write_text("planted")
    place.take(str(project), "x", Old(b"old", stat.S_IFREG | 0o640))
    assert (project / "x").read_text() == "old"
    assert stat.S_IMODE((project / "x").stat().st_mode) == 0o640
