"""Whether a repository has refs of some kind is read from its files. What cannot be known counts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claudebox.host.git.refs import LARGEST, has_refs
from claudebox.host.tree import Tree

REFS = "refs/claudebox"


@pytest.mark.parametrize(
    ("file", "content", "is_there"),
    [
        ("refs/claudebox/1/feature/x", b"", True),
        ("refs/heads/claudebox/1", b"", False),
        ("packed-refs", b"# pack-refs\n1234 refs/claudebox/1/main\n", True),
        ("packed-refs", b"1234 refs/heads/refs/claudebox/1\n1234 refs/heads/claudebox\n", False),
        ("reftable/1.ref", b"REFT\0\0refs/claude/x\0\x0b\x1fbox/1/main", True),
        ("reftable/1.ref", b"REFT\0\0refs/heads/main", False),
    ],
)
def test_refs_are_found_in_each_form(tmp_path: Path, file: str, content: bytes, is_there: bool) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_bytes(content)
    (tmp_path / "refs/claudebox/2/empty").mkdir(parents=True, exist_ok=True)
    assert has_refs(Tree(), str(tmp_path), REFS) == is_there


def test_more_tables_than_can_be_read_in_a_moment_count(tmp_path: Path) -> None:
    """An agent can leave any number of them, and nobody could remove claudebox before all of them were read."""
    (tmp_path / "reftable").mkdir()
    for number in range(3):
        (tmp_path / f"reftable/{number}.ref").touch()
        os.truncate(tmp_path / f"reftable/{number}.ref", LARGEST // 2)
    assert has_refs(Tree(), str(tmp_path), REFS)


def test_symlink_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/file").touch()
    (tmp_path / "refs").mkdir()
    (tmp_path / "refs/claudebox").symlink_to(tmp_path / "elsewhere")
    assert not has_refs(Tree(), str(tmp_path), REFS)
