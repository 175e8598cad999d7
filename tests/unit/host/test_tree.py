"""Symlinks are followed as the kernel follows them."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from claudebox.host.tree import MOST_LINKS, Tree

NAMES = ("a", "b", "c")
names = st.sampled_from(NAMES)
places = st.lists(names, min_size=1, max_size=3).map("/".join)
targets = st.lists(names | st.sampled_from(["..", "."]), min_size=1, max_size=4).map("/".join)
nodes = st.one_of(
    st.tuples(st.just("dir"), places, st.just("")),
    st.tuples(st.just("file"), places, st.just("")),
    st.tuples(st.just("link"), places, targets),
    st.tuples(st.just("absolute"), places, targets),
)


@pytest.fixture(scope="module")
def ground() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp()).resolve()
    yield path
    shutil.rmtree(path)


def grow(root: Path, plan: list[tuple[str, str, str]]) -> None:
    """Make what can be made; a name that is taken, or below a file, is left out."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for kind, place, target in plan:
        path = root / place
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "dir":
                path.mkdir()
            elif kind == "file":
                path.touch(exist_ok=False)
            else:
                path.symlink_to(f"{root}/{target}" if kind == "absolute" else target)
        except OSError:
            continue


def kernel_resolve(path: str) -> str | None:
    """The real path by the kernel's own walk."""
    try:
        descriptor = os.open(path, os.O_PATH)
    except OSError:
        return None
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


@settings(deadline=None, max_examples=150)
@given(st.lists(nodes, max_size=10), targets)
@example([("link", "a", "b"), ("link", "b", "a")], "a")
@example([("link", "a", "a/b")], "a")
@example([("file", "a", ""), ("link", "b", "a/..")], "b")
@example([("link", "a", "gone")], "a/..")
def test_resolve_agrees_with_the_kernel(ground: Path, plan: list[tuple[str, str, str]], path: str) -> None:
    root = ground / "tree"
    grow(root, plan)
    whole = f"{root}/{path}"
    expected = kernel_resolve(whole)
    assert Tree().resolve(whole) == expected
    if expected is not None:
        assert os.path.realpath(whole) == expected


@settings(deadline=None, max_examples=80)
@given(
    st.lists(nodes.filter(lambda node: node[0] != "absolute"), max_size=10), st.lists(names, min_size=1).map("/".join)
)
def test_a_root_is_the_end_of_the_world(ground: Path, plan: list[tuple[str, str, str]], path: str) -> None:
    root = ground / "rooted"
    grow(root, plan)
    resolved = Tree(str(root)).resolve(f"/{path}")
    if resolved is not None:
        assert os.path.realpath(f"{root}{resolved}") == f"{root}{resolved}".rstrip("/")


def test_absolute_symlink_starts_at_the_root_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hostname").touch()
    (tmp_path / "link").symlink_to("/../../etc/hostname")
    assert Tree(str(tmp_path)).resolve("/link") == "/etc/hostname"


@pytest.mark.parametrize("length", [MOST_LINKS - 1, MOST_LINKS, MOST_LINKS + 1])
def test_chain_may_be_as_long_as_the_kernel_allows(length: int, tmp_path: Path) -> None:
    base = tmp_path.resolve()
    (base / "0").touch()
    for number in range(length):
        (base / str(number + 1)).symlink_to(str(number))
    assert Tree().resolve(f"{base}/{length}") == kernel_resolve(f"{base}/{length}")


def test_links_are_listed_in_the_order_they_are_met(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/real").touch()
    (tmp_path / "etc").symlink_to("static")
    (tmp_path / "static").mkdir()
    (tmp_path / "static/resolv.conf").symlink_to("/run/real")
    assert Tree(str(tmp_path)).links("/etc/resolv.conf") == (("/etc", "static"), ("/static/resolv.conf", "/run/real"))


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "zero").symlink_to("/dev/zero")
    tree = Tree(str(tmp_path))
    assert [tree.read(path) for path in ("/fifo", "/directory", "/gone")] == [None] * 3
    assert tree.read("/file", limit=4) == b"0123"
    assert Tree().read("/dev/zero") is None
