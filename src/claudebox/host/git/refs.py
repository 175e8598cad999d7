"""Reads which commit is checked out, and whether there are refs of some kind, without git: git obeys a repository."""

from __future__ import annotations

import posixpath

from claudebox.host.tree import Tree
from claudebox.record import Record

HEX = frozenset("0123456789abcdef")
LONGEST_PACKED = 1 << 24
MOST_DIRECTORIES = 10_000
LARGEST = 1 << 26  # bytes of a file with refs; they are sorted, and ours come before branches and tags
LEFT = 4  # bytes of a name that are spelled out in a table, even right after `refs/claude/…`


def has_refs(tree: Tree, git_dir: str, prefix: str) -> bool:
    """Whether something is called `prefix/…`. In doubt it is: who asks can look."""
    packed = tree.read_plain(f"{git_dir}/packed-refs", LARGEST) or b""
    is_packed = f" {prefix}/".encode() in packed
    return is_packed or _is_loose(tree, f"{git_dir}/{prefix}") or _in_table(tree, git_dir, prefix)


def _is_loose(tree: Tree, directory: str) -> bool:
    """Whether there is a file in the directory, at any depth. Git leaves empty directories behind."""
    waiting = [directory] if tree.is_plain_directory(directory) else []
    for _ in range(MOST_DIRECTORIES):
        if not waiting:
            return False
        here = waiting.pop()
        below = [f"{here}/{name}" for name in tree.entries(here)]
        waiting += [path for path in below if tree.is_plain_directory(path)]
        if any(not tree.is_plain_directory(path) for path in below):
            return True
    return True


def _in_table(tree: Tree, git_dir: str, prefix: str) -> bool:
    """Whether a table of the newer format may have it. A name leaves out there what it shares with the one before."""
    end = f"{prefix}/"[-LEFT:].encode()
    left = LARGEST  # for all of them: an agent could leave more than anybody can wait for
    for name in tree.entries(f"{git_dir}/reftable"):
        content = tree.read_plain(f"{git_dir}/reftable/{name}", left) or b""
        left -= len(content)
        if end in content or not left:
            return True
    return False


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
