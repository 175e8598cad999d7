"""Reads a layer: the list of what a box has added, changed and deleted, compared with the host as it is now.

The kernel keeps in the upper directory whatever the box wrote; a device 0/0 (a whiteout) stands for something deleted,
and an attribute marks a directory that replaced the host's (it is opaque). A change of the host since the box began is
a conflict: it is seen by the time of the last change, which nobody can set.
"""

from __future__ import annotations

import os
import stat

from claudebox import files
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ADDED, CHANGED, DELETED, MODE = "added", "changed", "deleted", "mode"
FILE, LINK, DIRECTORY, NOTHING = "file", "link", "directory", ""
OPAQUE = "user.overlay.opaque"
DEEPEST = 200  # each directory on the way takes two descriptors and three frames
MOST_COUNTED = 500_000  # entries below a directory that was deleted
MOST_COMPARED = 1 << 26  # bytes; a larger file counts as changed
MOST_SHOWN = 1 << 20  # bytes of a file that somebody looks at
DOT_GIT = ".git"

NEVER_GIT = "git's own: only commits arrive"
NEVER_KIND = "neither a file, a directory nor a symlink"
NEVER_DEEP = "too deep"
NEVER_READ = "cannot be read"
NEVER_MOUNT = "another file system is mounted there"


class Seen(Record):
    """Something of the host, as it was when the list was made."""

    device: int
    inode: int
    mode: int
    size: int
    modified: int
    changed: int  # the time that nobody can set, in nanoseconds

    def is_same(self, status: os.stat_result) -> bool:
        """Whether it is still that. A rename changes the last of the times, so that one does not count."""
        found = (status.st_dev, status.st_ino, status.st_mode, status.st_mtime_ns)
        is_directory = stat.S_ISDIR(status.st_mode)
        return found[:3] == (self.device, self.inode, self.mode) and (
            is_directory or (found[3], status.st_size) == (self.modified, self.size)
        )


def seen(status: os.stat_result) -> Seen:
    return Seen(status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class Change(Record):
    """One difference between the layer and the host."""

    path: str  # below the project
    kind: str
    what: str  # of the new one, or of what was deleted
    mode: int = 0  # the new permissions
    size: int = 0
    old: Seen | None = None  # what the host has there; None: nothing
    gone: int = 0  # how many files go with a directory that was deleted or replaced
    is_conflict: bool = False
    holds_git: bool = False  # a directory that was deleted, with a repository in it
    target: str = ""  # of a symlink
    written: int = 0  # when the file of the layer was last changed, in nanoseconds; 0 if that cannot be told
    inode: int = 0  # of the file of the layer
    reason: str = ""  # why this host would run or obey it, so that it does not land by itself

    @property
    def is_safe(self) -> bool:
        """Whether it lands without being named: nothing on this host runs it, and nobody else has changed it."""
        return not self.reason and not self.is_conflict

    @property
    def makes_room(self) -> bool:
        """Whether it is a directory that lands for what is in it."""
        return self.what == DIRECTORY and self.kind == ADDED

    def is_still(self, status: os.stat_result) -> bool:
        """Whether this file of the layer is what was looked at.

        A box that has ended may have given a descriptor to another one, through a socket: then that one still writes,
        and renames. A file of another directory that takes the place of this one may be as old and as large.
        """
        found = (status.st_ino, status.st_size)
        return found == (self.inode, self.size) and self.written in (0, status.st_ctime_ns)


class Never(Record):
    """Something in a layer that never lands, and why."""

    path: str
    reason: str


class Changes(Record):
    """What a layer holds."""

    changes: tuple[Change, ...]
    never: tuple[Never, ...]


class Baseline(Record):
    """When the first box of a layer began, and what claudebox itself has changed on the host since."""

    since: int  # nanoseconds
    known: dict[str, tuple[int, int]]  # inode and time of the last change, by path
    project: int = 0  # the inode of the project's directory; 0 if that was not noted
    generation: int = 0  # of that inode; 0 if it is not known

    def is_other(self, status: os.stat_result, generation: int) -> bool:
        """Whether this is not the directory over which the layer was made: somebody has put it in its place.

        Some file systems number their files anew when they are mounted. That touches nothing.
        """
        pair = self.generation, generation
        is_another = self.project not in (0, status.st_ino) or (0 not in pair and pair[0] != pair[1])
        return is_another and self.is_touched("", status)

    def is_touched(self, path: str, status: os.stat_result) -> bool:
        if status.st_ctime_ns < self.since:
            return False
        return self.known.get(path) != (status.st_ino, status.st_ctime_ns)


def read_changes(upper: int, lower: int, baseline: Baseline, above: frozenset[str] = frozenset()) -> Changes:
    """What the layer has otherwise than the project. `above` are directories that only lead to what it covers."""
    reader = _Reader(lower, baseline, above)
    reader.compare(upper, lower, "", 0, is_hidden=False)
    return Changes(tuple(reader.changes), tuple(reader.never))


class _Pair(Record):
    """Something of the layer, and what the host has at the same path."""

    upper: int
    lower: int | None
    name: str
    path: str
    new: os.stat_result
    old: os.stat_result | None


class _Reader:
    """Goes through a layer once."""

    def __init__(self, lower: int, baseline: Baseline, above: frozenset[str]) -> None:
        self.baseline = baseline
        self.above = above
        status = os.fstat(lower)
        self.device = status.st_dev
        self.changes: list[Change] = []
        self.never: list[Never] = []
        # How many of the directories around are conflicts themselves.
        self.doubts = int(baseline.is_other(status, files.generation(lower)))

    def compare(self, upper: int, lower: int | None, above: str, depth: int, *, is_hidden: bool) -> None:
        """Compare a directory of the layer with the host's. If it is hidden, nothing of the host's was visible."""
        names = sorted(os.listdir(upper))
        for name in names:
            path = f"{above}{name}"
            try:
                if self._may_land(name, path):
                    new = os.stat(name, dir_fd=upper, follow_symlinks=False)
                    old = files.lstat(lower, name) if lower is not None else None
                    self._compare(_Pair(upper, lower, name, path, new, old), depth, is_hidden=is_hidden)
            except OSError as error:
                self.never.append(Never(path, f"{NEVER_READ}: {error.strerror}"))
        if is_hidden and lower is not None:
            for name in sorted(set(os.listdir(lower)).difference(names)):
                status = files.lstat(lower, name)
                if self._may_land(name, f"{above}{name}") and status is not None:
                    self._delete(lower, name, f"{above}{name}", status)

    def _may_land(self, name: str, path: str) -> bool:
        if name.lower() == DOT_GIT:
            self.never.append(Never(path, NEVER_GIT))
        return name.lower() != DOT_GIT

    def _is_mounted(self, path: str, status: os.stat_result) -> bool:
        if status.st_dev != self.device:
            self.never.append(Never(path, NEVER_MOUNT))
        return status.st_dev != self.device

    def _compare(self, pair: _Pair, depth: int, *, is_hidden: bool) -> None:
        mode = pair.new.st_mode
        if stat.S_ISCHR(mode) and pair.new.st_rdev == 0:  # a whiteout
            if pair.old is not None and pair.lower is not None:
                self._delete(pair.lower, pair.name, pair.path, pair.old)
        elif stat.S_ISDIR(mode) and depth < DEEPEST:
            self._compare_directory(pair, depth, is_hidden=is_hidden)
        elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            self._compare_leaf(pair)
        else:
            self.never.append(Never(pair.path, NEVER_DEEP if stat.S_ISDIR(mode) else NEVER_KIND))

    def _compare_directory(self, pair: _Pair, depth: int, *, is_hidden: bool) -> None:
        path, old, mode = pair.path, pair.old, permissions(pair.new)
        inner, original = files.open_hidden_directory(pair.upper, pair.name)
        below = None
        try:
            if old is not None and stat.S_ISDIR(old.st_mode):
                if self._is_mounted(path, old):
                    return
                if permissions(old) != mode and path not in self.above:
                    self._note(path, MODE, DIRECTORY, mode, old)
                below = os.open(pair.name, files.DIRECTORY, dir_fd=pair.lower)
                is_doubtful = self._is_put_there(path, old)
            else:
                self._note(path, ADDED, DIRECTORY, mode, old)
                is_doubtful = self.changes[-1].is_conflict
            self.doubts += is_doubtful
            self.compare(inner, below, f"{path}/", depth + 1, is_hidden=is_hidden or is_opaque(inner))
            self.doubts -= is_doubtful
            if original & files.PRIVATE != files.PRIVATE:
                os.fchmod(inner, original)
        finally:
            os.close(inner)
            if below is not None:
                os.close(below)

    def _compare_leaf(self, pair: _Pair) -> None:
        path, new, old, lower = pair.path, pair.new, pair.old, pair.lower
        is_link, mode = stat.S_ISLNK(new.st_mode), permissions(new)
        gone, holds_git, is_conflict = 0, False, self._is_conflict(path, old)
        if old is not None and lower is not None:
            is_alike = stat.S_IFMT(old.st_mode) == stat.S_IFMT(new.st_mode)
            if is_alike and _is_equal(pair, old) and (is_link or permissions(old) == mode):
                return
            if stat.S_ISDIR(old.st_mode):
                gone, is_touched, holds_git = count_below(lower, pair.name, path, self.baseline.is_touched)
                is_conflict = is_conflict or is_touched
        target = os.readlink(pair.name, dir_fd=pair.upper) if is_link else ""
        # To look into a file without permission is to change it. But then nobody on this host can read it either.
        written = new.st_ctime_ns if mode & stat.S_IRUSR or not os.geteuid() else 0
        kind, what = ADDED if old is None else CHANGED, LINK if is_link else FILE
        before = seen(old) if old is not None else None
        # All fields in their order: this is the way of a record that takes least, and there may be 100,000 changes.
        last = (gone, is_conflict, holds_git, target, written, new.st_ino, "")
        self.changes.append(Change(path, kind, what, mode, new.st_size, before, *last))

    def _note(self, path: str, kind: str, what: str, mode: int, old: os.stat_result | None) -> None:
        before = seen(old) if old is not None else None
        self.changes.append(Change(path, kind, what, mode, 0, before, is_conflict=self._is_conflict(path, old)))

    def _is_conflict(self, path: str, old: os.stat_result | None) -> bool:
        return self.doubts > 0 or (old is not None and self.baseline.is_touched(path, old))

    def _is_put_there(self, path: str, old: os.stat_result) -> bool:
        """Whether the host has put another directory there: that changes the directory, and nothing in it.

        What is in it may be older than the layer, and seems untouched.
        """
        return old.st_mtime_ns < self.baseline.since and self.baseline.is_touched(path, old)

    def _delete(self, lower: int, name: str, path: str, old: os.stat_result) -> None:
        if not stat.S_ISDIR(old.st_mode):
            self._note(path, DELETED, LINK if stat.S_ISLNK(old.st_mode) else FILE, 0, old)
        elif not self._is_mounted(path, old):
            gone, is_touched, holds_git = count_below(lower, name, path, self.baseline.is_touched)
            is_conflict = self._is_conflict(path, old) or is_touched
            found = Change(path, DELETED, DIRECTORY, 0, 0, seen(old), gone, is_conflict, holds_git)
            self.changes.append(found)


def permissions(status: os.stat_result) -> int:
    return stat.S_IMODE(status.st_mode) & files.PERMISSIONS


def is_opaque(directory: int) -> bool:
    try:
        return os.getxattr(directory, OPAQUE) == b"y"
    except OSError:
        return False


def _is_equal(pair: _Pair, old: os.stat_result) -> bool:
    name, upper, lower = pair.name, pair.upper, pair.lower
    if stat.S_ISLNK(old.st_mode):
        return os.readlink(name, dir_fd=upper) == os.readlink(name, dir_fd=lower)
    if pair.new.st_size != old.st_size or old.st_size > MOST_COMPARED:
        return False
    with open(files.open_hidden_file(upper, name), "rb", buffering=0) as one:
        try:
            descriptor = os.open(name, files.READ, dir_fd=lower)
        except OSError:
            return False
        with open(descriptor, "rb", buffering=0) as other:
            while piece := one.read(files.PIECE):
                if other.read(len(piece)) != piece:
                    return False
            return True


def walk_below(parent: int, name: str, where: str) -> Iterator[tuple[str, os.stat_result]]:
    """Everything below a directory of the host. What cannot be listed counts as touched by nobody."""
    descriptors = [os.open(name, files.DIRECTORY, dir_fd=parent)]
    levels = [(where, iter(os.listdir(descriptors[0])))]
    counted = 0
    try:
        while levels:
            path, names = levels[-1]
            inner = next(names, None)
            if inner is None:
                levels.pop()
                os.close(descriptors.pop())
                continue
            status = files.lstat(descriptors[-1], inner)
            counted += 1
            if status is None or counted > MOST_COUNTED:
                continue
            yield f"{path}/{inner}", status
            if stat.S_ISDIR(status.st_mode) and len(levels) < DEEPEST:
                try:
                    descriptors.append(os.open(inner, files.DIRECTORY, dir_fd=descriptors[-1]))
                except OSError:
                    continue
                levels.append((f"{path}/{inner}", iter(os.listdir(descriptors[-1]))))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def count_below(
    parent: int, name: str, where: str, is_touched: Callable[[str, os.stat_result], bool]
) -> tuple[int, bool, bool]:
    """How many files a directory of the host has, whether one was touched since, and whether git has something."""
    gone, was_touched, holds_git = 0, False, False
    for path, status in walk_below(parent, name, where):
        gone += not stat.S_ISDIR(status.st_mode)
        was_touched = was_touched or is_touched(path, status)
        holds_git = holds_git or path.rpartition("/")[2].lower() == DOT_GIT
    return gone, was_touched, holds_git


def read_in_project(root: int, path: str) -> bytes | None:
    """The beginning of a file; None if it is none, or cannot be read."""
    above, _, name = path.rpartition("/")
    try:
        with files.Open(files.open_below(root, above)) as parent:
            return _content(parent, name)
    except OSError:
        return None


def read_in_layer(root: int, change: Change) -> bytes | None:
    """The same for a file of the layer, also if the modes of the directories around it forbid it.

    It has to be what would land: a descriptor of it may live in another box.
    """
    *parents, name = change.path.split("/")
    opened = [(os.dup(root), files.PRIVATE)]
    try:
        for parent in parents:
            opened.append(files.open_hidden_directory(opened[-1][0], parent))
        content = _content(opened[-1][0], name)
        status = os.stat(name, dir_fd=opened[-1][0], follow_symlinks=False)
        return content if change.is_still(status) else None
    except OSError:
        return None
    finally:
        for descriptor, mode in reversed(opened):
            if mode & files.PRIVATE != files.PRIVATE:
                os.fchmod(descriptor, mode)
            os.close(descriptor)


def _content(parent: int, name: str) -> bytes:
    with open(files.open_hidden_file(parent, name), "rb") as file:
        return file.read(MOST_SHOWN + 1)


def kind_seen(root: str, upper: str, path: str) -> str:
    """What the box sees at this path through a layer: a DIRECTORY, a FILE, or NOTHING that could be mounted on.

    Symlinks are nothing, on the way and at the end.
    """
    try:
        with files.Open(os.open(upper, files.DIRECTORY)) as above, files.Open(os.open(root, files.DIRECTORY)) as below:
            return _kind_below(above, below, path.split("/"))
    except OSError:
        return NOTHING


def _kind_below(above: int, below: int, names: list[str]) -> str:
    """The same for names below a directory of the layer and one of the host. -1 is a directory that is not there."""
    name, *rest = names
    ours = files.lstat(above, name) if above >= 0 else None
    hosts = files.lstat(below, name) if below >= 0 else None
    found = ours or hosts
    mode = found.st_mode if found is not None else 0
    if not stat.S_ISDIR(mode):
        return FILE if stat.S_ISREG(mode) and not rest else NOTHING
    if not rest:
        return DIRECTORY
    upper, lower = -1, -1
    try:
        if ours is not None:
            upper, _ = files.open_hidden_directory(above, name)
        if hosts is not None and stat.S_ISDIR(hosts.st_mode) and (ours is None or not is_opaque(upper)):
            lower = os.open(name, files.DIRECTORY, dir_fd=below)
        return _kind_below(upper, lower, rest)
    finally:
        for descriptor in (upper, lower):
            if descriptor >= 0:
                os.close(descriptor)
