"""Finds out whether a repository has refs of some kind, without git: git obeys what a repository says."""

from __future__ import annotations

from claudebox.host.tree import Tree

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
