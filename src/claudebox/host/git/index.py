"""What git has of a file, read from its index without starting git.

The agent can write an index. So its word for a path is believed only if it names this very content: that git has, or
the agent has known already.
"""

from __future__ import annotations

import posixpath

from claudebox.host.digest import git_blob
from claudebox.host.tree import Tree
from claudebox.paths import is_inside

LARGEST = 1 << 26
NAME_LENGTH = 0xFFF  # of the flags of an entry
BLOB, FLAGS = 20, 2


class Indexes:
    """The indexes of the repositories of a project, each read once."""

    def __init__(self, tree: Tree, project: str, git_dir: str) -> None:
        self.tree = tree
        self.project = project
        self.git_dirs = {project: git_dir}
        self.content: dict[str, bytes] = {}

    def repository(self, path: str) -> str:
        """The checkout that a file belongs to, "" if it is in none."""
        directory = posixpath.dirname(path)
        while is_inside(directory, self.project):
            if self._git_dir(directory):
                return directory
            directory = posixpath.dirname(directory)
        return ""

    def has(self, path: str, content: bytes) -> bool:
        """Whether git has exactly this content of this file."""
        return bool(blob := self.blob(path)) and blob == git_blob(content)

    def blob(self, path: str) -> bytes:
        """What the index has under this path; nothing if that is not plain."""
        checkout = self.repository(path)
        if not checkout:
            return b""
        if checkout not in self.content:
            self.content[checkout] = self.tree.read_plain(f"{self._git_dir(checkout)}/index", LARGEST) or b""
        return _blob(self.content[checkout], path[len(checkout) + 1 :].encode(errors="surrogateescape"))

    def _git_dir(self, directory: str) -> str:
        if directory not in self.git_dirs:
            self.git_dirs[directory] = self._find_git_dir(f"{directory}/.git")
        return self.git_dirs[directory]

    def _find_git_dir(self, dot_git: str) -> str:
        if self.tree.is_plain_directory(dot_git):
            return dot_git
        # A submodule's is with the project's own. Elsewhere, git in the box would not find it either.
        said = (self.tree.read_plain(dot_git, 1 << 12) or b"").decode(errors="surrogateescape")
        named = posixpath.normpath(posixpath.join(posixpath.dirname(dot_git), said.removeprefix("gitdir:").strip()))
        is_here = said.startswith("gitdir:") and is_inside(named, self.project) and self.tree.resolve(named) == named
        return named if is_here else ""


def _blob(index: bytes, name: bytes) -> bytes:
    """Of the first entry with this name, and of no other: a made-up index could have one for each of many guesses."""
    if not index.startswith((b"DIRC\0\0\0\2", b"DIRC\0\0\0\3")):
        return b""
    place = index.find(name + b"\0")
    while place >= 0:
        flags = int.from_bytes(index[place - FLAGS : place], "big")
        if flags & NAME_LENGTH == min(len(name), NAME_LENGTH):
            return index[place - FLAGS - BLOB : place - FLAGS]
        place = index.find(name + b"\0", place + 1)
    return b""
