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
    from collections.abc import Iterator

ADDED, CHANGED, DELETED, MODE = "added", "changed", "deleted", "mode"
FILE, LINK, DIRECTORY = "file", "link", "directory"
OPAQUE = "user.overlay.opaque"
DEEPEST = 200  # each directory on the way takes two descriptors and three frames
MOST_COUNTED = 500_000  # entries below a directory that was deleted
MOST_COMPARED = 1 << 26  # bytes; a larger file counts as changed
MOST_TASTED = 5000  # files that are looked into for zero bytes
TASTE = 8000  # bytes, as git does it
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
    is_binary: bool = False
    holds_git: bool = False  # a directory that was deleted, with a repository in it
    target: str = ""  # of a symlink
    written: int = 0  # when the file of the layer was last changed, in nanoseconds; 0 if that cannot be told
    inode: int = 0  # of the file of the layer

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

    def is_other(self, status: os.stat_result) -> bool:
        """Whether this is not the directory over which the layer was made: somebody has put it in its place.

        Some file systems number their files anew when they are mounted. That touches nothing.
        """
        return self.project not in (0, status.st_ino) and self.is_touched("", status)

    def is_touched(self, path: str, status: os.stat_result) -> bool:
        if status.st_ctime_ns < self.since:
            return False
        return self.known.get(path) != (status.st_ino, status.st_ctime_ns)


def read_changes(upper: int, lower: int, baseline: Baseline, above: frozenset[str] = frozenset()) -> Changes:
    """What the layer has otherwise than the project. `above` are directories that only lead to what it covers."""
    reader = _Reader(lower, baseline, above)
    reader.compare(upper, lower, "", 0, is_hidden=False)
    return Changes(tuple(reader.changes), tuple(reader.never))


class _Reader:
    """Goes through a layer once."""

    def __init__(self, lower: int, baseline: Baseline, above: frozenset[str]) -> None:
        self.baseline = baseline
        self.above = above
        status = os.fstat(lower)
        self.device = status.st_dev
        self.changes: list[Change] = []
        self.never: list[Never] = []
        self.tasted = 0
        # How many of the directories around are conflicts themselves.
        self.doubts = int(baseline.is_other(status))

    def compare(self, upper: int, lower: int | None, path: str, depth: int, *, is_hidden: bool) -> None:
        """Compare a directory of the layer with the host's. If it is hidden, nothing of the host's was visible."""
        names = sorted(os.listdir(upper))
        for name in names:
            where = f"{path}{name}"
            if name.lower() == DOT_GIT:
                self.never.append(Never(where, NEVER_GIT))
                continue
            try:
                self._compare_one(upper, lower, name, where, depth, is_hidden=is_hidden)
            except OSError as error:
                self.never.append(Never(where, f"{NEVER_READ}: {error.strerror}"))
        if is_hidden and lower is not None:
            self._delete_all_but(names, lower, path)

    def _compare_one(
        self, upper: int, lower: int | None, name: str, where: str, depth: int, *, is_hidden: bool
    ) -> None:
        status = os.stat(name, dir_fd=upper, follow_symlinks=False)
        old = files.lstat(lower, name) if lower is not None else None
        if _is_whiteout(status):
            if old is not None and lower is not None:
                self._delete(lower, name, where, old)
        elif stat.S_ISDIR(status.st_mode):
            self._compare_directory(upper, lower, name, where, depth, status, old, is_hidden=is_hidden)
        elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            self._compare_leaf(upper, lower, name, where, status, old)
        else:
            self.never.append(Never(where, NEVER_KIND))

    def _compare_directory(
        self,
        upper: int,
        lower: int | None,
        name: str,
        where: str,
        depth: int,
        status: os.stat_result,
        old: os.stat_result | None,
        *,
        is_hidden: bool,
    ) -> None:
        if depth >= DEEPEST:
            self.never.append(Never(where, NEVER_DEEP))
            return
        mode = stat.S_IMODE(status.st_mode) & files.PERMISSIONS
        inner, below = -1, None
        try:
            inner, original = files.open_hidden_directory(upper, name)
            if old is not None and stat.S_ISDIR(old.st_mode) and lower is not None:
                if old.st_dev != self.device:
                    self.never.append(Never(where, NEVER_MOUNT))
                    return
                if stat.S_IMODE(old.st_mode) & files.PERMISSIONS != mode and where not in self.above:
                    self.changes.append(self._change(where, MODE, DIRECTORY, mode, 0, old))
                below = os.open(name, files.DIRECTORY, dir_fd=lower)
            else:
                self.changes.append(self._change(where, ADDED, DIRECTORY, mode, 0, old))
            is_doubtful = self.changes[-1].is_conflict if below is None else self._is_put_there(where, old)
            self.doubts += is_doubtful
            self.compare(inner, below, f"{where}/", depth + 1, is_hidden=is_hidden or is_opaque(inner))
            self.doubts -= is_doubtful
            if original & files.PRIVATE != files.PRIVATE:
                os.fchmod(inner, original)
        finally:
            for descriptor in (inner, below):
                if descriptor is not None and descriptor >= 0:
                    os.close(descriptor)

    def _compare_leaf(
        self,
        upper: int,
        lower: int | None,
        name: str,
        where: str,
        status: os.stat_result,
        old: os.stat_result | None,
    ) -> None:
        is_link = stat.S_ISLNK(status.st_mode)
        mode = stat.S_IMODE(status.st_mode) & files.PERMISSIONS
        if old is not None and lower is not None and stat.S_IFMT(old.st_mode) == stat.S_IFMT(status.st_mode):
            is_equal = _same_link(upper, lower, name) if is_link else _same_content(upper, lower, name, status, old)
            if is_equal and (is_link or stat.S_IMODE(old.st_mode) & files.PERMISSIONS == mode):
                return
        is_conflict = self._is_conflict(where, old)
        gone, holds_git, is_binary, target = 0, False, False, ""
        if old is not None and lower is not None and stat.S_ISDIR(old.st_mode):
            gone, is_touched, holds_git = self._count(lower, name, where)
            is_conflict = is_conflict or is_touched
        if is_link:
            target = os.readlink(name, dir_fd=upper)
        else:
            is_binary = self._is_binary(upper, name, status)
        # To look into a file without permission is to change it. But then nobody on this host can read it either.
        written = status.st_ctime_ns if mode & stat.S_IRUSR or not os.geteuid() else 0
        # All fields in their order: this is the way of a record that takes least, and there may be 100,000 changes.
        kind, what = ADDED if old is None else CHANGED, LINK if is_link else FILE
        before = seen(old) if old is not None else None
        leaf = (
            where,
            kind,
            what,
            mode,
            status.st_size,
            before,
            gone,
            is_conflict,
            is_binary,
            holds_git,
            target,
            written,
            status.st_ino,
        )
        self.changes.append(Change(*leaf))

    def _change(self, where: str, kind: str, what: str, mode: int, size: int, old: os.stat_result | None) -> Change:
        before = seen(old) if old is not None else None
        return Change(where, kind, what, mode, size, before, is_conflict=self._is_conflict(where, old))

    def _is_conflict(self, where: str, old: os.stat_result | None) -> bool:
        return self.doubts > 0 or (old is not None and self.baseline.is_touched(where, old))

    def _is_put_there(self, where: str, old: os.stat_result | None) -> bool:
        """Whether the host has put another directory there: that changes the directory, and nothing in it.

        What is in it may be older than the layer, and seems untouched.
        """
        return old is not None and old.st_mtime_ns < self.baseline.since and self.baseline.is_touched(where, old)

    def _delete_all_but(self, names: list[str], lower: int, path: str) -> None:
        kept = set(names)
        for name in sorted(os.listdir(lower)):
            if name in kept:
                continue
            if name.lower() == DOT_GIT:
                self.never.append(Never(f"{path}{name}", NEVER_GIT))
                continue
            status = files.lstat(lower, name)
            if status is not None:
                self._delete(lower, name, f"{path}{name}", status)

    def _delete(self, lower: int, name: str, where: str, old: os.stat_result) -> None:
        is_directory, is_link = stat.S_ISDIR(old.st_mode), stat.S_ISLNK(old.st_mode)
        change = self._change(where, DELETED, DIRECTORY if is_directory else LINK if is_link else FILE, 0, 0, old)
        if is_directory:
            if old.st_dev != self.device:
                self.never.append(Never(where, NEVER_MOUNT))
                return
            gone, is_touched, holds_git = self._count(lower, name, where)
            is_conflict = change.is_conflict or is_touched
            change = change.replace(gone=gone, is_conflict=is_conflict, holds_git=holds_git)
        self.changes.append(change)

    def _count(self, lower: int, name: str, where: str) -> tuple[int, bool, bool]:
        """How many files a directory of the host has, whether one was touched since, and whether git has something."""
        gone, is_touched, holds_git = 0, False, False
        for path, status in walk_below(lower, name, where):
            gone += not stat.S_ISDIR(status.st_mode)
            is_touched = is_touched or self.baseline.is_touched(path, status)
            holds_git = holds_git or path.rpartition("/")[2].lower() == DOT_GIT
        return gone, is_touched, holds_git

    def _is_binary(self, upper: int, name: str, status: os.stat_result) -> bool:
        self.tasted += 1
        if not status.st_size or self.tasted > MOST_TASTED:
            return False
        descriptor = files.open_hidden_file(upper, name)
        try:
            return b"\0" in os.read(descriptor, TASTE)
        finally:
            os.close(descriptor)


def _is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def is_opaque(directory: int) -> bool:
    try:
        return os.getxattr(directory, OPAQUE) == b"y"
    except OSError:
        return False


def _same_link(upper: int, lower: int, name: str) -> bool:
    return os.readlink(name, dir_fd=upper) == os.readlink(name, dir_fd=lower)


def _same_content(upper: int, lower: int, name: str, status: os.stat_result, old: os.stat_result) -> bool:
    if status.st_size != old.st_size or status.st_size > MOST_COMPARED:
        return False
    one = files.open_hidden_file(upper, name)
    try:
        other = os.open(name, files.READ, dir_fd=lower)
    except OSError:
        os.close(one)
        return False
    try:
        while piece := os.read(one, files.PIECE):
            if os.read(other, len(piece)) != piece:
                return False
        return True
    finally:
        os.close(one)
        os.close(other)


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


def count_below(parent: int, name: str, since: int) -> tuple[int, bool]:
    """How many files are below a directory, and whether one of them was touched since."""
    gone, is_touched = 0, False
    for _, status in walk_below(parent, name, ""):
        gone += not stat.S_ISDIR(status.st_mode)
        is_touched = is_touched or status.st_ctime_ns >= since
    return gone, is_touched
