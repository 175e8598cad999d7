"""Searches a directory of git for what git itself did not write there: the list of what it writes is the rule.

Git makes files and directories while one works, and a socket. It follows a symlink when it writes the message of a
commit, a log or the index: whoever has put one there chooses which file of the user is written. And other programs
obey files that they find beside git's own (`lazygit.yml`), or git does (`commondir`, `info/grafts`). So:

- no symlink anywhere, no FIFO and no device. Let be are what git only reads, which people link to files of their own;
  a HEAD that names a branch; and what leads to the same part of another directory of git in the same project, as
  `git-new-workdir`, git-annex and the `repo` tool make it. That is looked at like a part of this one;
- no index with names that git never makes, if it has changed since somebody looked;
- nothing else but git's own names, where git or others look for names they know: at the top, in `info`, in
  `objects/info`, `branches`, `remotes`. Hooks and configurations are the guard's business.
"""

from __future__ import annotations

import os
import posixpath
import stat

from claudebox.host.git.index import LARGEST_INDEX_BYTES, is_forged
from claudebox.host.tree import Tree
from claudebox.host.walk import BEYOND, LINK, OTHER, UNREAD, Entry
from claudebox.paths import is_inside, normalize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_DIRECTORIES = 50_000
MOST_FOUND = 1000
STRANGE = "strange"  # the kind of what is not git's own
FORGED = "forged"  # the kind of an index that git did not make
INDEXES = ("index", "sharedindex.")
ONLY_READ = ("config", "description", "info/exclude", "info/attributes")
HOOKS = "hooks"
# Git gives the files in the other directories of these fresh names, and renames them: it writes through none of them.
# There may be thousands.
OBJECTS = ("objects", "lfs/objects", "annex/objects")
WRITTEN_IN_OBJECTS = ("info", "pack")
HEAD = "HEAD"
ALTERNATES = "objects/info/alternates"
OPERATIONS = ("rebase-merge", "rebase-apply", "sequencer")  # what git notes of a rebase, or many picks, in progress
RERERE = "rr-cache"  # conflicts that git resolves by itself if it is there: it is the user's own, or nobody's
LINKED = ("commondir", "gitdir", "locked")  # in the directory of a linked worktree

GITS_OWN = {
    "": frozenset(
        "HEAD index config hooks objects refs logs info packed-refs shallow description branches remotes worktrees "
        "modules lfs reftable annex svn lost-found rebase-merge rebase-apply sequencer AUTO_MERGE MERGE_MODE "
        "MERGE_RR EDIT_DESCRIPTION ADD_EDIT.patch addp-hunk-edit.diff gc.log gc.pid fsmonitor--daemon "
        "fsmonitor--daemon.ipc".split()
    ),
    "info": frozenset("exclude sparse-checkout refs".split()),
    "objects/info": frozenset("packs commit-graph commit-graphs".split()),
    # Where git once kept addresses, which it still obeys. `git init` makes one of them, empty.
    "branches": frozenset(),
    "remotes": frozenset(),
}
OWN_BEGINNINGS = ("BISECT_", "sharedindex.", "index.", "next-index-", "tmp_")
OWN_ENDS = ("_HEAD", "_MSG", "_EDITMSG", ".lock")


def find_detours(tree: Tree, git_dirs: Iterable[str], roots: Iterable[str], since: int) -> list[Entry]:
    """Everything in these directories that git did not write, up to a limit for each.

    `roots` is where agents can write. A directory that cannot be listed, and one too many, are found themselves. An
    index is read if it has changed `since`, in nanoseconds.
    """
    git_dirs = dict.fromkeys(git_dirs)
    search = _Search(tree, tuple(roots), frozenset(git_dirs), since)
    for git_dir in git_dirs:  # each has room of its own: nothing in one keeps another from being looked at
        search.enter(git_dir, "")
        most = len(search.found) + MOST_FOUND
        while search.waiting and len(search.found) < most:
            search.look(*search.waiting.pop())
        if len(search.found) >= most:
            search.found.append(Entry(git_dir, BEYOND))
            search.waiting.clear()
    return sorted(search.found, key=lambda entry: entry.path)


class _Search:
    def __init__(self, tree: Tree, roots: tuple[str, ...], git_dirs: frozenset[str], since: int) -> None:
        self.tree = tree
        self.roots = roots
        self.git_dirs = git_dirs
        self.since = since
        self.found: list[Entry] = []
        self.waiting: list[tuple[str, str]] = []
        self.seen: set[str] = set()

    def enter(self, directory: str, part: str) -> None:
        """Look at a directory later. `part` is its name in the directory of git that it belongs to."""
        if directory in self.seen or not self._is_inside(directory) or (part and directory in self.git_dirs):
            return  # a directory of git in another one, of a worktree, is looked at by itself
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
        for entry in entries:
            name = f"{part}/{entry.name}" if part else entry.name
            if name == HOOKS or (part in OBJECTS and entry.name not in WRITTEN_IN_OBJECTS and not entry.is_symlink()):
                continue
            path = f"{directory}/{entry.name}"
            if entry.is_symlink():
                self._follow(path, name)
            elif part in GITS_OWN and path not in self.seen and path not in self.git_dirs and not self._is_gits(path, part):
                self.found.append(Entry(path, STRANGE))
            elif entry.is_dir(follow_symlinks=False):
                self.enter(path, name)
            elif not entry.is_file(follow_symlinks=False) and not _is_socket(entry):
                self.found.append(Entry(path, OTHER))
            elif not part and entry.name.startswith(INDEXES) and self._is_forged(path):
                self.found.append(Entry(path, FORGED))

    def _is_forged(self, path: str) -> bool:
        status = self.tree.lstat(path)
        is_young = status is not None and status.st_ctime_ns >= self.since
        return is_young and is_forged(self.tree.read_plain(path, LARGEST_INDEX_BYTES) or b"")

    def _is_gits(self, path: str, part: str) -> bool:
        directory, name = posixpath.split(path)
        if name in (own := GITS_OWN[part]) or (own and (name.startswith(OWN_BEGINNINGS) or name.endswith(OWN_ENDS))):
            return True
        if path.endswith(f"/{ALTERNATES}"):
            return self._stays(path)
        above = posixpath.dirname(directory)
        if posixpath.basename(above) != "worktrees" or name not in LINKED:
            return False
        # `git worktree repair` writes where `gitdir` says: there has to be a checkout that says the same.
        named = normalize(posixpath.join(directory, (self.tree.text(path) or "").rstrip("\n")))
        is_usual = self._is_inside(named) or directory in (self.tree.text(named) or "")
        return {"commondir": named == posixpath.dirname(above), "gitdir": is_usual}.get(name, True)

    def _stays(self, alternates: str) -> bool:
        """Whether all objects that it lends are in the project, as after `git clone --shared`."""
        base = posixpath.dirname(posixpath.dirname(alternates))
        lines = (self.tree.text(alternates) or "").splitlines()
        return all(self._is_inside(normalize(posixpath.join(base, line.strip('"')))) for line in lines)

    def _follow(self, path: str, name: str) -> None:
        real = self.tree.resolve(path)
        if real is not None and real.endswith(f"/{name}") and self._is_inside(real):
            self.enter(real, name) if self.tree.is_plain_directory(real) else None
        elif name not in ONLY_READ and not (name == HEAD and _names_branch(self.tree.link_target(path))):
            self.found.append(Entry(path, LINK))

    def _is_inside(self, path: str) -> bool:
        return any(is_inside(path, root) for root in self.roots)


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
