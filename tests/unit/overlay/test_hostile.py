"""Layers of every shape are read and landed without an exception, and only the project is written."""

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudebox.errors import Problem
from claudebox.overlay import store
from claudebox.overlay.changes import DEEPEST, DIRECTORY, FILE, NOTHING, OPAQUE, kind_seen
from unit.overlay.world import make_world, picture

pytestmark = [pytest.mark.req("LAND-01"), pytest.mark.attributes]

NAMES = st.sampled_from(["a", "b", "sub", ".git", "HEAD", "new\nline", "\udcff", "-x", ".envrc", "link"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
KINDS = st.sampled_from(["file", "whiteout", "opaque", "link out", "link in", "fifo", "socket", "closed", "directory"])
SHAPES = st.lists(st.tuples(PATHS, KINDS), max_size=12)
HOST = st.dictionaries(PATHS, st.sampled_from(["file", "link out"]), max_size=6)


def make(path: Path, kind: str, outside: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        with path.open("x") as file:  # a FIFO that is there would wait for a reader
            file.write("new\n")
    elif kind == "whiteout":
        os.mknod(path, stat.S_IFCHR, 0)
    elif kind in ("opaque", "directory", "closed"):
        path.mkdir()
        if kind == "opaque":
            os.setxattr(path, OPAQUE, b"y")
        path.chmod(0 if kind == "closed" else 0o755)
    elif kind in ("link out", "link in"):
        path.symlink_to(outside if kind == "link out" else "a")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(f"/proc/self/fd/{os.open(path.parent, os.O_PATH)}/{path.name}")


def try_to_make(root: Path, shapes: list[tuple[str, str]], outside: Path) -> None:
    for name, kind in shapes:
        path = root / name
        parents = [path, *path.parents][: 1 + name.count("/") + 1]
        if any(one.is_symlink() for one in parents):
            continue  # the kernel would not follow it into another directory of the layer
        try:
            make(path, kind, outside)
        except (OSError, ValueError):
            continue


@settings(max_examples=150, deadline=None)
@given(host=HOST, shapes=SHAPES, late=HOST)
def test_any_layer_lands_or_is_refused(
    host: dict[str, str], shapes: list[tuple[str, str]], late: dict[str, str]
) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        directory = Path(name)
        outside = directory / "outside"
        outside.mkdir()
        (outside / "precious").write_text("precious\n")
        (directory / "project").mkdir()
        try_to_make(directory / "project", list(host.items()), outside)
        world = make_world(directory, {})
        try_to_make(world.upper, shapes, outside)
        world.changes()
        try_to_make(world.project, list(late.items()), outside)
        before = picture(world.project)
        try:
            world.land()
        except Problem:
            assert picture(world.project) == before
        else:
            assert world.again().changes() == []
        assert picture(outside) == {"precious": (stat.S_IFREG | 0o644, "precious\n")}
        git = {path for path in picture(world.project) if ".git" in path.split("/")}
        assert git <= before.keys()
        world = world.again()
        store.discard(world.layer)
        assert os.listdir(world.place) == ["last"]


def test_directory_that_is_too_deep_never_lands(tmp_path: Path) -> None:
    world = make_world(tmp_path, {})
    here = os.open(world.upper, os.O_RDONLY)
    for _ in range(DEEPEST + 20):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    changes = world.layer.read()
    assert [one.reason for one in changes.never] == ["too deep"]
    assert len(changes.changes) == DEEPEST
    world.land()
    store.discard(world.layer)
    assert os.listdir(world.place) == ["last"]


# What can be mounted on in a layer: nothing that a symlink, a whiteout or a replaced directory hides.


def test_what_a_box_sees(tmp_path: Path) -> None:
    world = make_world(tmp_path, dict.fromkeys(("a/f", "b/f", "c/f", "d/f", "e/f", "g/f", "h"), "x\n"))
    world.whiteout("b")
    world.opaque("c")
    os.symlink("/tmp", world.upper / "d")
    world.write("e/f")
    world.whiteout("g/f")
    (world.upper / "h").mkdir()
    seen = {
        name: kind_seen(str(world.project), world.layer.upper, name)
        for name in ("a", "a/f", "b/f", "c/f", "d/f", "e/f", "g/f", "h", "nothing/x")
    }
    assert seen == {
        "a": DIRECTORY,
        "a/f": FILE,
        "b/f": NOTHING,
        "c/f": NOTHING,
        "d/f": NOTHING,
        "e/f": FILE,
        "g/f": NOTHING,
        "h": DIRECTORY,
        "nothing/x": NOTHING,
    }
