"""Reads which commit is checked out, without starting git."""

from __future__ import annotations

import posixpath

from claudebox.host.tree import Tree
from claudebox.record import Record

HEX = frozenset("0123456789abcdef")
LONGEST_PACKED = 1 << 24


class Head(Record):
    """A branch and its commit; "" for what is not known."""

    branch: str = ""
    commit: str = ""


def read_head(tree: Tree, git_dir: str) -> Head:
    text = _line(tree, f"{git_dir}/HEAD")
    branch = text.removeprefix("ref: ") if text.startswith("ref: refs/heads/") else ""
    if not branch:
        return Head("", _commit(text))
    above, name = posixpath.split(posixpath.dirname(git_dir))
    common = above if name == "worktrees" else git_dir
    if ".." in branch.split("/"):
        return Head()
    return Head(branch, _commit(_line(tree, f"{common}/{branch}")) or _packed(tree, common, branch))


def _line(tree: Tree, path: str) -> str:
    return (tree.read_plain(path, 1 << 12) or b"").decode(errors="surrogateescape").strip()


def _packed(tree: Tree, common: str, branch: str) -> str:
    content = tree.read_plain(f"{common}/packed-refs", LONGEST_PACKED) or b""
    ending = b" " + branch.encode(errors="surrogateescape")
    lines = (line for line in content.split(b"\n") if line.endswith(ending))
    return next((_commit(line.split(b" ")[0].decode(errors="replace")) for line in lines), "")


def _commit(text: str) -> str:
    return text if len(text) in (40, 64) and HEX.issuperset(text) else ""
