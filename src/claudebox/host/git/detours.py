"""Finds what lies in a directory of git and makes git write elsewhere.

Git makes files and directories there, and nothing else but a socket. It follows a symlink when it writes the message
of a commit, a log, the index or what was fetched: whoever has put one there chooses which file of the user is written.
So the rule is: no symlink anywhere, no FIFO and no device; and these are let be:

- what git only reads, which people do link to files of their own: hooks, the configuration, lists of patterns. The
  guard looks at them;
- a HEAD that names a branch: git replaces it, and writes where the branch is;
- what leads to the same part of another directory of git in the same project, as `git-new-workdir`, git-annex and the
  `repo` tool make it: git writes there what it would write here. It is looked at like a part of this one.
"""

from __future__ import annotations

import os
import stat

from claudebox.host.tree import Tree
from claudebox.host.walk import BEYOND, LINK, OTHER, UNREAD, Entry
from claudebox.paths import is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_DIRECTORIES = 50_000
MOST_FOUND = 1000
ONLY_READ = ("config", "description", "info/exclude", "info/attributes")
HOOKS = "hooks"
# Git gives the files in the other directories of these fresh names, and renames them: it writes through none of them.
# There may be thousands.
OBJECTS = ("objects", "lfs/objects", "annex/objects")
WRITTEN_IN_OBJECTS = ("info", "pack")
WITH_OTHERS = ("modules/", "worktrees/")  # parts that have directories of git in them
HEAD = "HEAD"


def find_detours(tree: Tree, git_dirs: Iterable[str], roots: Iterable[str]) -> list[Entry]:
    """Everything in these directories through which git would write elsewhere, up to a limit.

    `roots` is where agents can write. A directory that cannot be listed, and one too many, are found themselves.
    """
    search = _Search(tree, tuple(roots))
    for git_dir in git_dirs:
        search.enter(git_dir, "")
        while search.waiting and len(search.found) < MOST_FOUND:
            search.look(*search.waiting.pop())
    return sorted(search.found, key=lambda entry: entry.path)


class _Search:
    def __init__(self, tree: Tree, roots: tuple[str, ...]) -> None:
        self.tree = tree
        self.roots = roots
        self.found: list[Entry] = []
        self.waiting: list[tuple[str, str]] = []
        self.seen: set[str] = set()

    def enter(self, directory: str, part: str) -> None:
        """Look at a directory later. `part` is its name in the directory of git that it belongs to."""
        if directory in self.seen or not any(is_inside(directory, root) for root in self.roots):
            return
        self.seen.add(directory)
        if len(self.seen) == MOST_DIRECTORIES:
            self.found.append(Entry(directory, BEYOND))
        if len(self.seen) < MOST_DIRECTORIES:
            self.waiting.append((directory, part))

    def look(self, directory: str, part: str) -> None:
        try:
            with os.scandir(self.tree.root + directory) as listing:
                entries = list(listing)
        except PermissionError:
            # Git needs no list to write a file whose name it knows.
            if _is_ours(self.tree, directory):
                self.found.append(Entry(directory, UNREAD))
            return
        except OSError:
            return
        if part.startswith(WITH_OTHERS) and any(entry.name == HEAD for entry in entries):
            part = ""  # a directory of git in itself
        for entry in entries:
            name = f"{part}/{entry.name}" if part else entry.name
            if name == HOOKS or (part in OBJECTS and entry.name not in WRITTEN_IN_OBJECTS and not entry.is_symlink()):
                continue
            path = f"{directory}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                self.enter(path, name)
            elif entry.is_symlink():
                self._follow(path, name)
            elif not entry.is_file(follow_symlinks=False) and not _is_socket(entry):
                self.found.append(Entry(path, OTHER))

    def _follow(self, path: str, name: str) -> None:
        real = self.tree.resolve(path)
        is_same_part = (
            real is not None and real.endswith(f"/{name}") and any(is_inside(real, one) for one in self.roots)
        )
        if real is not None and is_same_part:
            self.enter(real, name) if self.tree.is_plain_directory(real) else None
        elif name not in ONLY_READ and not (name == HEAD and _names_branch(self.tree.link_target(path))):
            self.found.append(Entry(path, LINK))


def _names_branch(target: str) -> bool:
    """Whether git takes the symlink for the name of a branch: it makes such a HEAD if `core.preferSymlinkRefs` asks."""
    return target.startswith("refs/") and ".." not in target


def _is_ours(tree: Tree, directory: str) -> bool:
    status = tree.lstat(directory)
    return status is not None and status.st_uid == os.geteuid()


def _is_socket(entry: os.DirEntry[str]) -> bool:
    try:
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return True  # it is gone
