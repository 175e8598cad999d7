"""Finds the project's files whose names are of interest, in one walk.

Every launch walks, over trees of any size that a hostile agent may have shaped. So the walk opens no file, follows no
symlink, skips directories whose content tools can make again, and stops at a limit.
"""

from __future__ import annotations

import os

from claudebox.host.tree import Tree
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = "file"
DIRECTORY = "directory"
LINK = "link"
OTHER = "other"  # a FIFO, a socket, a device
UNREAD = "unread"  # a directory that could not be listed
BEYOND = "beyond"  # the first directory that was left out, because there are too many or it is too deep

DEEPEST = 40
MOST_DIRECTORIES = 100_000
MOST_ENTRIES_SEARCHED = 2_000_000
COST_OF_A_DIRECTORY = 10

# Directories that are not entered, each with the reason. They are found themselves if their name is of interest.
SKIPPED = {
    ".git": "git's own: a feature that needs something in there knows where it is",
    ".hg": "Mercurial's own",
    ".svn": "Subversion's own",
    ".jj": "Jujutsu's own",
    "node_modules": "packages of npm",
    "bower_components": "packages of Bower",
    ".pnpm-store": "packages of pnpm",
    ".venv": "a virtual environment",
    "venv": "a virtual environment",
    "site-packages": "packages of pip",
    "__pycache__": "compiled Python",
    ".tox": "environments of tox",
    ".nox": "environments of nox",
    ".mypy_cache": "a cache",
    ".pytest_cache": "a cache",
    ".ruff_cache": "a cache",
    ".cache": "a cache",
    ".parcel-cache": "a cache",
    ".turbo": "a cache",
    ".gradle": "a cache of Gradle",
    ".direnv": "a cache of direnv",
    ".next": "built by Next.js",
    ".nuxt": "built by Nuxt",
    ".svelte-kit": "built by SvelteKit",
    "target": "built by Cargo or Maven",
    ".terraform": "providers of Terraform",
    ".bundle": "packages of Bundler",
    "Pods": "packages of CocoaPods",
    ".dart_tool": "packages of Dart",
    "_build": "built by Mix, Dune or Sphinx",
    ".stack-work": "built by Stack",
    "dist-newstyle": "built by Cabal",
    ".zig-cache": "a cache of Zig",
}


class Entry(Record):
    """Something in the project. A symlink is a LINK, wherever it leads."""

    path: str
    kind: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class NameFilter(Record):
    """Which names are of interest: whole names, prefixes and suffixes."""

    names: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    links: bool = False  # whether every symlink is of interest, whatever its name

    def __or__(self, other: NameFilter) -> NameFilter:
        """The filter for several features that share one walk. Each asks its own `wants` about what it gets."""
        return NameFilter(
            self.names | other.names,
            self.prefixes + other.prefixes,
            self.suffixes + other.suffixes,
            self.links or other.links,
        )

    def wants(self, name: str) -> bool:
        return name in self.names or name.startswith(self.prefixes) or name.endswith(self.suffixes)


def walk_project(tree: Tree, project: str, wanted: NameFilter) -> tuple[Entry, ...]:
    """Everything of interest, nearest to the project's root first, and the directories that could not be searched."""
    names, prefixes, suffixes, links = wanted.names, wanted.prefixes, wanted.suffixes, wanted.links
    found: list[Entry] = []
    level, seen = [project], 0
    for _ in range(DEEPEST):
        below: list[str] = []
        for directory in level:
            seen += 1
            if seen > MOST_DIRECTORIES:
                return (*found, Entry(directory, BEYOND))
            try:
                listing = os.scandir(tree.root + directory)
            except OSError:
                found.append(Entry(directory, UNREAD))
                continue
            with listing:
                # A walk spends most of its time in these lines.
                for entry in listing:
                    name = entry.name
                    if name in names or name.startswith(prefixes) or name.endswith(suffixes):
                        found.append(Entry(f"{directory}/{name}", _kind(entry)))
                    elif links and entry.is_symlink():
                        found.append(Entry(f"{directory}/{name}", LINK))
                    if entry.is_dir(follow_symlinks=False) and name not in SKIPPED:
                        below.append(f"{directory}/{name}")
        level = below
    return (*found, *(Entry(directory, BEYOND) for directory in level[:1]))


def list_directory(tree: Tree, directory: str, wanted: NameFilter) -> tuple[Entry, ...]:
    """What is of interest in one directory, without its subdirectories."""
    try:
        with os.scandir(tree.root + directory) as listing:
            return tuple(Entry(f"{directory}/{one.name}", _kind(one)) for one in listing if wanted.wants(one.name))
    except OSError:
        return ()


def find_links(
    tree: Tree, directory: str, depth: int, room: list[int], begin: tuple[str, ...] = ("",)
) -> Iterator[str]:
    """Find symlinks in a directory, and in those below it down to a depth.

    `room` says how many entries may be looked at, and counts down; to open a directory costs as much as some of them.
    No symlink is followed but the directory's own.
    """
    level = [directory]
    for _ in range(depth):
        below: list[str] = []
        for here in level:
            try:
                listing = os.scandir(tree.root + here) if room[0] > 0 else None
            except OSError:
                continue
            if listing is None:
                return
            room[0] -= COST_OF_A_DIRECTORY
            with listing:
                for entry in listing:
                    if not entry.name.startswith(begin):
                        continue
                    room[0] -= 1
                    if room[0] < 0:
                        return
                    if entry.is_symlink():
                        yield f"{here}/{entry.name}"
                    elif entry.is_dir(follow_symlinks=False):
                        below.append(f"{here}/{entry.name}")
        level = below


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return LINK
    if entry.is_dir(follow_symlinks=False):
        return DIRECTORY
    return FILE if entry.is_file(follow_symlinks=False) else OTHER


def find_inodes(tree: Tree, project: str, inodes: frozenset[int]) -> dict[str, int] | None:
    """Every path of these files, wherever they are in the project.

    None if that is not certain: the project is too large, or has a directory that can be listed later, but not now.
    """
    found: dict[str, int] = {}
    waiting, seen = [project], 0
    while waiting:
        directory = waiting.pop()
        try:
            listing = os.scandir(tree.root + directory)
        except OSError:
            if _may_be_opened(tree, directory):
                return None
            continue
        with listing:
            for entry in listing:
                seen += 1
                if entry.inode() in inodes and entry.is_file(follow_symlinks=False):
                    found[f"{directory}/{entry.name}"] = entry.inode()
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{directory}/{entry.name}")
        if seen > MOST_ENTRIES_SEARCHED:
            return None
    return found


def _may_be_opened(tree: Tree, directory: str) -> bool:
    """Whether the agent, as the owner, can make the directory readable again."""
    try:
        return os.lstat(tree.root + directory).st_uid == os.geteuid()
    except FileNotFoundError:
        return False
    except OSError:
        return True
