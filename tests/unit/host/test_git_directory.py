"""Whether a repository has refs of some kind is read from its files. What cannot be known counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from claudebox.host.git.directory import has_refs
from claudebox.host.tree import Tree

TIP = b"1234" * 10
REFS = "refs/claudebox"


@pytest.mark.parametrize(
    ("file", "content", "is_there"),
    [
        ("refs/claudebox/1/feature/x", TIP, True),
        ("refs/heads/claudebox/1", TIP, False),
        ("packed-refs", b"# pack-refs\n%s refs/claudebox/1/main\n" % TIP, True),
        ("packed-refs", b"%s refs/heads/refs/claudebox/1\n%s refs/heads/claudebox\n" % (TIP, TIP), False),
        ("reftable/tables.list", b"0x1-0x1.ref\n", True),
    ],
)
def test_refs_are_found_in_each_form(tmp_path: Path, file: str, content: bytes, is_there: bool) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_bytes(content)
    (tmp_path / "refs/claudebox/2/empty").mkdir(parents=True, exist_ok=True)
    assert has_refs(Tree(), str(tmp_path), REFS) == is_there


def test_symlink_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/file").write_bytes(TIP)
    (tmp_path / "refs").mkdir()
    (tmp_path / "refs/claudebox").symlink_to(tmp_path / "elsewhere")
    assert not has_refs(Tree(), str(tmp_path), REFS)
