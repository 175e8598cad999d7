"""Finds the project's files whose names are of interest, in one walk; and notes files as they are at one moment.

Every launch walks, over trees of any size that a hostile agent may have shaped. So the walk opens no file, follows no
symlink, skips directories whose content tools can make again, and stops at a limit.
"""

from __future__ import annotations

import os
import stat
import time
from itertools import islice

from claudebox.host.tree import Tree, sha256
from claudebox.model import Trace
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    from claudebox.host.git.index import Loose

FILE, DIRECTORY, LINK = "file", "directory", "link"
OTHER = "other"  # a FIFO, a socket, a device
UNREAD = "unread"  # a directory that could not be listed, or is too deep
PRIVILEGED = "privileged"  # a file that is setuid or setgid
BEYOND = "beyond"  # the first directory that was left out, because there are too many

DEEPEST = 40
MOST_DIRECTORIES = 100_000
MOST_DIRECTORIES_AFTERWARDS = 300_000
MOST_AT_ONCE = 10_000  # entries of a directory, which may have millions
MOST_ENTRIES_SEARCHED = 2_000_000
COST_OF_A_DIRECTORY = 10
ROOM = "/" * 1000  # of the 4096 bytes of a path: what git finds in a directory that it has entered has to fit in, too
PRIVILEGES = stat.S_ISUID | stat.S_ISGID
TICK_NANOSECONDS = 10_000_000  # by this much the time of a file may be behind the clock

GIT = ".git"
WORKTREES = "/.claude/worktrees"  # each directory in one is a project of its own, whatever its name

# Directories that are not entered. They are found themselves if their name is of interest.
SKIPPED = frozenset(
    (
        *(GIT, ".hg", ".svn", ".jj"),  # a feature that needs something in there knows where it is
        *"node_modules bower_components .pnpm-store .venv venv site-packages".split(),  # packages
        *".bundle Pods .dart_tool .terraform".split(),
        *"__pycache__ .tox .nox .mypy_cache .pytest_cache .ruff_cache .cache .parcel-cache .turbo .gradle".split(),
        *".direnv .zig-cache".split(),
        *"target .next .nuxt .svelte-kit _build .stack-work dist-newstyle".split(),  # what tools have built
    )
)


class Entry(Record):
    """Something in the project. A symlink is a LINK, wherever it leads."""

    path: str
    kind: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class NameFilter(Record):
    """Which names are of interest, in capitals or not: whole names, prefixes, suffixes and words anywhere in a name.

    Every symlink is, too, and every name that begins with a dot.
    """

    names: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    directories: frozenset[str] = frozenset()  # `spelled`; all that is below one of such a name is of interest

    def __or__(self, other: NameFilter) -> NameFilter:
        """The filter for several features that share one walk. Each asks its own table about what it gets."""
        return NameFilter(
            self.names | other.names,
            self.prefixes + other.prefixes,
            self.suffixes + other.suffixes,
            self.words + other.words,
            self.directories | other.directories,
        )


HEAD_LENGTH = 3  # characters by which prefixes are looked up


def plain(names: str) -> str:
    """Names, each behind a slash, without what makes no difference to the sieve: capitals, `_` for `-`, a first dot."""
    return spelled(names).replace("/.", "/")


def spelled(name: str) -> str:
    return name.lower().replace("_", "-")


class _Sieve:
    """A filter, arranged so that most names are seen to be of no interest by two or three look-ups in sets.

    It lets more pass than the filter says, since names that differ only in their spelling are one to it.
    """

    def __init__(self, wanted: NameFilter) -> None:
        self.wanted = wanted
        self.names = frozenset(plain(f"/{name}")[1:] for name in wanted.names)
        self.prefixes = tuple(plain(f"/{prefix}")[1:] for prefix in wanted.prefixes)
        self.heads = frozenset(prefix[:HEAD_LENGTH] for prefix in self.prefixes)
        self.endings: dict[str, tuple[str, ...]] = {}  # by what comes behind the last dot
        for suffix in map(plain, wanted.suffixes):
            ending = suffix.rpartition(".")[2]
            self.endings[ending] = (*self.endings.get(ending, ()), suffix)
        assert all(len(prefix) >= HEAD_LENGTH for prefix in self.prefixes), "a shorter one cannot be looked up"
        assert all("." in suffix for suffix in wanted.suffixes), "only an ending can be looked up"

    def find(
        self, directory: str, listing: list[os.DirEntry[str]], names: list[str], others: list[os.DirEntry[str]]
    ) -> list[Entry]:
        """What is of interest in a directory. `others` is what is no plain file."""
        all_names = "/" + "/".join(names)  # a name has no slash in it
        joined = plain(all_names)
        lower = joined[1:].split("/")
        chosen: set[os.DirEntry[str]] = set()
        # A walk spends most of its time in these lines: so first, whether there is anything at all.
        if (
            not self.names.isdisjoint(lower)
            or not self.heads.isdisjoint([name[:HEAD_LENGTH] for name in lower])
            or not self.endings.keys().isdisjoint([name.rpartition(".")[2] for name in lower])
        ):
            chosen.update(entry for entry, name in zip(listing, lower, strict=True) if self._is_wanted(name))
        words = [word for word in self.wanted.words if word in joined]
        if words:
            pairs = zip(listing, lower, strict=True)
            chosen.update(entry for entry, name in pairs if any(word in name for word in words))
        if "/." in all_names:
            chosen.update([entry for entry in listing if entry.name[0] == "."])
        chosen.update(entry for entry in others if entry.is_symlink())
        return [Entry(f"{directory}/{one.name}", _kind(one)) for one in listing if one in chosen] if chosen else []

    def _is_wanted(self, name: str) -> bool:
        if name in self.names or (name[:HEAD_LENGTH] in self.heads and name.startswith(self.prefixes)):
            return True
        suffixes = self.endings.get(name.rpartition(".")[2])
        return suffixes is not None and f".{name}".endswith(suffixes)


def walk_project(
    tree: Tree,
    project: str,
    wanted: NameFilter,
    loose: Loose | None = None,
    hidden: frozenset[str] = frozenset(),
    entered: list[str] | None = None,
) -> tuple[Entry, ...]:
    """Everything of interest, nearest to the project's root first, and the directories that could not be searched.

    `loose` collects the files that git does not track, and `entered` the directories that were searched. Hidden ones
    are not entered. A directory that a symlink leads to is entered even if it lies in a skipped one.
    """
    sieve = _Sieve(wanted)
    found: list[Entry] = []
    level = [project]
    entered = [] if entered is None else entered
    linked: set[str] = set()
    for _ in range(DEEPEST):
        below: list[str] = []
        for directory in level:
            if len(entered) == MOST_DIRECTORIES:
                return (*found, Entry(directory, BEYOND))
            entered.append(directory)
            try:
                scan = os.scandir(tree.root + directory + ROOM)
            except OSError:
                found.append(Entry(directory, UNREAD))
                continue
            is_whole = not wanted.directories.isdisjoint(spelled(directory[len(project) :]).split("/"))
            with scan:
                while listing := list(islice(scan, MOST_AT_ONCE)):
                    names = [entry.name for entry in listing]
                    others = [entry for entry in listing if not entry.is_file(follow_symlinks=False)]
                    all_of_it = [Entry(f"{directory}/{one.name}", _kind(one)) for one in listing] if is_whole else []
                    here = all_of_it or sieve.find(directory, listing, names, others)
                    found += here
                    if loose is not None:
                        loose.look(directory, listing, names)
                    inner = [one.name for one in others if one.is_dir(follow_symlinks=False)]
                    skipped = (GIT,) if directory.endswith(WORKTREES) else SKIPPED
                    below += [f"{directory}/{name}" for name in inner if name not in skipped]
                    behind = {_behind(tree, project, one.path) for one in here if one.kind == LINK} - linked
                    linked |= behind
                    below += filter(None, sorted(behind))
        level = [path for path in below if path not in hidden]
    return (*found, *(Entry(directory, UNREAD) for directory in level))


def _behind(tree: Tree, project: str, link: str) -> str:
    """The directory in a skipped one to which a symlink leads; "" if there is none."""
    target = (tree.resolve(link) if link.rpartition("/")[2] not in SKIPPED else None) or ""
    names = target[len(project) + 1 :].split("/") if target.startswith(f"{project}/") else []
    is_skipped = GIT not in names and not SKIPPED.isdisjoint(names)
    return target if is_skipped and tree.is_plain_directory(target) else ""


def search_rest(tree: Tree, project: str, since: int, closed: frozenset[str], *, modes: bool) -> list[Entry]:
    """Search the directories that the walk skips, when the box has ended and nobody waits for a start.

    There it finds repositories, and symlinks that are younger than `since`. In all of the project it finds directories
    that were locked since, and with `modes` files that are privileged. Those that are closed are not entered.
    """
    found: list[Entry] = []
    waiting, seen = [(project, False)], 0
    while waiting:
        directory, is_skipped = waiting.pop()
        seen += 1
        if seen > MOST_DIRECTORIES_AFTERWARDS:
            return [*found, Entry(directory, BEYOND)]
        try:
            listing = os.scandir(f"{tree.root}{directory}{ROOM}.")  # the dot needs the right to enter
        except OSError:
            found += [Entry(directory, UNREAD)] if _mode_since(tree, directory, since) else []
            continue
        with listing:
            for entry in listing:
                name, path = entry.name, f"{directory}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting += [(path, is_skipped or name in SKIPPED)] if name != GIT and path not in closed else []
                elif modes and entry.is_file(follow_symlinks=False) and _mode_since(tree, path, since) & PRIVILEGES:
                    found.append(Entry(path, PRIVILEGED))
                if is_skipped and name in (GIT, "HEAD"):
                    found.append(Entry(path, _kind(entry)))
                elif is_skipped and entry.is_symlink() and _mode_since(tree, path, since):
                    found.append(Entry(path, LINK))
    return found


def _mode_since(tree: Tree, path: str, since: int) -> int:
    """The mode of what was made, changed or moved here since; 0 if nothing was. A box cannot forge this time."""
    status = tree.lstat(path)
    return status.st_mode if status is not None and status.st_ctime_ns >= since else 0


def list_directory(tree: Tree, directory: str, wanted: NameFilter) -> list[Entry]:
    """What is of interest in one directory, without its subdirectories."""
    try:
        with os.scandir(tree.root + directory) as scan:
            listing = list(scan)
    except OSError:
        return []
    return _Sieve(wanted).find(directory, listing, [entry.name for entry in listing], [])


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
            if room[0] <= 0:
                return
            try:
                with os.scandir(tree.root + here) as scan:
                    listing = list(islice((one for one in scan if one.name.startswith(begin)), room[0]))
            except OSError:
                continue
            room[0] -= COST_OF_A_DIRECTORY + len(listing)
            for entry in listing:
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


def find_inodes(
    tree: Tree, project: str, inodes: frozenset[int], names: int = 0, closed: frozenset[str] = frozenset()
) -> dict[str, int] | None:
    """Every path of these files, wherever they are in the project but in directories that are closed to the box.

    None if that is not certain: the project is too large, or has a directory that can be listed later, but not now; or
    they have fewer than this many names, and an agent in another box may have moved one to where the search had been.
    """
    found: dict[str, int] = {}
    waiting, seen = [project], 0
    visited, began = [], time.time_ns() - TICK_NANOSECONDS
    while waiting:
        directory = waiting.pop()
        if directory in closed:
            continue
        visited.append(directory)
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
    is_stirred = len(found) < names and any(_has_changed(tree, directory, began) for directory in visited)
    return None if is_stirred else found


def _has_changed(tree: Tree, directory: str, since: int) -> bool:
    status = tree.lstat_anew(directory)
    return status is None or status.st_ctime_ns >= since


def _may_be_opened(tree: Tree, directory: str) -> bool:
    """Whether the agent, as the owner, can make the directory readable again."""
    status = tree.lstat_anew(directory)
    return not tree.lacks(directory) if status is None else status.st_uid == os.geteuid()


SMALL_FILE_BYTES = 1 << 16
MOST_BYTES = 1 << 20
MOST_FILES_OF_A_PLACE = 2000  # and directories; of more, one trace stands for all
MOST_ENTRIES_OF_A_PLACE = 20_000
DEEPEST_NOTED = 30
NOT_RUN = ".sample"  # the suffix of the example hooks, which git does not run

REST = 0  # the mode of the trace that stands for many files


class Fingerprint:
    """The files of some places at one moment, to compare them with another moment.

    Left out are worktrees, the samples in `hooks`, and SKIPPED directories but those in a place that counts as a whole.

    Every launch does this, so it reads little: the content of small files, to show and undo a difference, and the
    status of all others. A box cannot forge the time at which the kernel changed a file's status last (ctime).
    Every place has room of its own: nothing that is left in one place keeps another from being looked at.
    """

    def __init__(self, tree: Tree, is_whole: Callable[[str], bool], hooks: Container[str]) -> None:
        self.tree, self.is_whole, self.hooks = tree, is_whole, hooks
        self.files: dict[str, Trace] = {}
        self._room = MOST_BYTES
        self._seen = 0  # of one place
        self._rest: dict[str, tuple[int, ...]] = {}
        self._skipped = SKIPPED

    def take(self, places: Iterable[str]) -> dict[str, Trace]:
        for place in sorted(places, key=self.tree.is_plain_directory):  # so that files have their content before those
            self._seen, self._rest = 0, {}
            is_whole = self.tree.is_plain_directory(place) and self.is_whole(place)
            self._skipped = frozenset() if is_whole else SKIPPED
            self._take(place, 0)
            for first in list(self._rest)[:1]:
                # The key of `hash` would be this process's own.
                digest = sha256(ascii(sorted(self._rest.items())).encode())
                self.files[first] = Trace((REST, int(digest, 16)), None, REST)
        return self.files

    def _take(self, path: str, depth: int) -> None:
        if self._seen > MOST_ENTRIES_OF_A_PLACE or path in self.files:
            return  # before anything is looked up: there may be a million files
        status = self.tree.lstat(path)
        if status is None:
            return
        self._seen += 1
        is_directory = stat.S_ISDIR(status.st_mode)
        if self._seen > MOST_ENTRIES_OF_A_PLACE or (is_directory and depth == DEEPEST_NOTED):
            self._rest[path] = tuple(os.urandom(8))  # equal to nothing: nobody looks further
        elif is_directory:
            for name in self.tree.entries(path) if not path.endswith(WORKTREES) else ():
                if name not in self._skipped and not (name.endswith(NOT_RUN) and path in self.hooks):
                    self._take(f"{path}/{name}", depth + 1)
        else:
            identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if self._seen > MOST_FILES_OF_A_PLACE:
                self._rest[path] = identity
            else:
                self.files[path] = Trace(identity, self._content(path, status), status.st_mode, status.st_nlink)

    def _content(self, path: str, status: os.stat_result) -> bytes | None:
        if stat.S_ISLNK(status.st_mode):
            return os.fsencode(self.tree.link_target(path))
        if not stat.S_ISREG(status.st_mode) or status.st_size > min(SMALL_FILE_BYTES, self._room):
            return None
        self._room -= status.st_size
        return self.tree.read_plain(path, SMALL_FILE_BYTES)
