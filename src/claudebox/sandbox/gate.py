"""Checks what bwrap has mounted, before the program starts.

An agent in another box, of the same project or of a directory above it, can rename files and make symlinks where this
box is being made: bwrap would mount what they lead to, or mount something there. So each source is opened here without
following a symlink and compared with what the plan saw; and when bwrap is done, each mount has to be where it belongs,
and has to be what was opened.

A layer has other inodes than the directory that it covers. Its mounts are told by the device of the layer, which only
the process that becomes bwrap could make, and by the path in it.

bwrap reads the system call filter last, when all mounts are made, and starts no program without it. The filter comes
through a pipe: when bwrap reads, it is time to look, and the rest is held back until everything is right.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem, suppress
from claudebox.model import ABSENT, COVER, HIDE, MASK, RO, TMPFS, UNSEEN, WRITABLE, Mount, Review
from claudebox.paths import is_below
from claudebox.process.isolation import layer_label
from claudebox.record import Record
from claudebox.sandbox.judge import READ, Judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from claudebox.sandbox.judge import Streams
    from claudebox.sandbox.law import Law

Identity = tuple[int, int]  # the device, and the number on it
READ_ONLY = (RO, ABSENT, HIDE, COVER, MASK)
MOUNTED = (*READ_ONLY, *WRITABLE, TMPFS)
SLOTS = 16  # in a pipe, one for each packet
FIRST = 1  # the number of the first process in a pid namespace


class Expected(Record):
    """A mount of the box that an agent could have interfered with."""

    path: str
    is_read_only: bool
    source: int  # a descriptor of the source; -1 if there is nothing to compare with
    in_layer: tuple[bytes, str] | None = None  # the label of the layer that the source is in, and its path in there
    covered: tuple[Identity, Identity] | None = None  # of a secret that is covered: its directory, and itself


def expect(mounts: tuple[Mount, ...], review: Review | None) -> tuple[Expected, ...]:
    """The mounts to check later. Raises a Problem if a source is no longer what the plan saw."""
    writable = [mount.path for mount in mounts if mount.kind in WRITABLE]
    return tuple(
        _expected(mount, review)
        for mount in mounts
        if mount.identity is not None
        or (mount.kind in MOUNTED and any(is_below(mount.path, place) for place in writable))
    )


def _expected(mount: Mount, review: Review | None) -> Expected:
    source, in_layer = -1, None
    covered = _find_covered(mount, review) if mount.covers else None
    if mount.identity is not None and not mount.covers:
        source = _open_unchanged(mount.source, mount.source)
        if mount.identity not in (UNSEEN, identity(source)):
            raise _changed(mount.source)
        if review is not None and (number := review.over(mount.source)) >= 0:
            in_layer = layer_label(number), mount.source[len(review.covered[number].path) :] or "/"
    return Expected(mount.path, mount.kind in READ_ONLY, source, in_layer, covered)


def _find_covered(mount: Mount, review: Review | None) -> tuple[Identity, Identity] | None:
    """The directory of a secret, and the secret itself, which has to be there still. In a layer both are others.

    No agent that finds it masked can move it out of its directory, but the directory can be moved.
    """
    assert mount.identity is not None
    directory, name = os.path.split(mount.covers)
    descriptor = _open_unchanged(directory, mount.covers)
    try:
        if _identity_in(descriptor, name) != mount.identity:
            raise _changed(mount.covers)
        in_layer = review is not None and review.over(mount.covers) >= 0
        return None if in_layer else (identity(descriptor), mount.identity)
    finally:
        os.close(descriptor)


def _open_unchanged(path: str, shown: str) -> int:
    try:
        return open_without_symlinks(path)
    except OSError:
        raise _changed(shown) from None


def _identity_in(directory: int, name: str) -> Identity | None:
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def identity(descriptor: int) -> Identity:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def open_without_symlinks(path: str, below: str = "/") -> int:
    """A descriptor (O_PATH) of a file, which may be a symlink. One on the way to it is an error."""
    here = os.open(below, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in path[1:].split("/"):
        try:
            there = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
        finally:
            os.close(here)
        here = there
    return here


class Gate:
    """The system call filter. bwrap gets the end of it when the mounts have been checked."""

    def __init__(
        self, content: bytes, expected: tuple[Expected, ...], law: Law | None, streams: Streams, relayed: Streams
    ) -> None:
        assert law is not None
        self.law, self.streams, self.relayed = law, streams, relayed
        self.content = content
        self.expected = expected
        # O_DIRECT makes packets: every write takes a slot, however small it is.
        self.for_bwrap, self.ours = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)
        os.set_inheritable(self.for_bwrap, True)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The descriptors that the parent of the box needs."""
        return (self.ours, *(each.source for each in self.expected if each.source >= 0))

    def fill(self) -> None:
        """Fill the pipe, so that nothing more can be written before bwrap reads."""
        with suppress(BrokenPipeError):  # it has ended already
            for number in range(SLOTS):
                os.write(self.ours, self.content[number : number + 1])

    def open(self, builder: int, look: Callable[[str], None]) -> bool:
        """Wait until bwrap has made the mounts, check them, have features `look` at the root, and let bwrap go on.

        Returns whether bwrap has the whole filter: if not, it has ended and said why, and no program has started.
        """
        try:
            # What bwrap has now is not a whole filter yet: if this process ends here, bwrap fails.
            os.write(self.ours, self.content[SLOTS : SLOTS + 1])
            first = first_process(builder)
            look(f"/proc/{first}/root")
            judge = Judge(self.law, builder, first, self.content, self.ours, self.streams, self.relayed)
            if wrong := self._find_wrong(judge):
                raise _changed(wrong)
            judge.require_lawful()
            # Opened anew, without O_DIRECT, the pipe takes bytes instead of packets, so that all the rest fits at once.
            rest = os.open(f"/proc/self/fd/{self.ours}", os.O_WRONLY | os.O_CLOEXEC)
            os.write(rest, self.content[SLOTS + 1 :])
            os.close(rest)
        except OSError:
            return False
        finally:
            for descriptor in self.descriptors:
                os.close(descriptor)
        return True

    def _find_wrong(self, judge: Judge) -> str:
        """The first path of the box that is not as expected; "" if all are."""
        return next((each.path for each in self.expected if not _is_right(each, judge)), "")


def _is_right(each: Expected, judge: Judge) -> bool:
    row = judge.box.holder(each.path)
    if row.path != each.path or (each.is_read_only and row.access != READ):
        return False
    if each.source < 0 and each.covered is None:
        return True
    if each.in_layer is not None:
        layer = judge.layers.get(row.device)
        return layer is not None and (layer.source, row.root) == each.in_layer
    directory, name = os.path.split(each.path)
    try:
        descriptor = open_without_symlinks(each.path if each.covered is None else directory, f"{judge.process}/root")
    except OSError:
        return False
    try:
        if each.covered is not None:
            where, secret = each.covered
            return identity(descriptor) == where and _identity_in(descriptor, name) not in (None, secret)
        return identity(descriptor) == identity(each.source)
    finally:
        os.close(descriptor)


def first_process(builder: int) -> int:
    """The first process of the namespace that bwrap has made, by its number on the host."""
    for pid, inner in children_of(builder).items():
        if inner == FIRST:
            return pid
    raise ProcessLookupError


def program_of(builder: int) -> int:
    """The program of the box; 0 if it has not started. bwrap starts it first, so its number in the box is the lowest.

    It is two pid namespaces away: a child of the first process in the namespace that bwrap made.
    """
    try:
        inside = children_of(first_process(builder))
    except OSError:
        return 0
    return min(inside, key=inside.__getitem__, default=0)


def children_of(parent: int) -> dict[int, int]:
    """The children of a process that has one thread, each with its number in its own namespace."""
    try:
        with open(f"/proc/{parent}/task/{parent}/children") as file:
            candidates = file.read().split()
    except FileNotFoundError:
        candidates = list(filter(str.isdigit, os.listdir("/proc")))  # this kernel does not keep the list
    found = {}
    for pid in candidates:
        try:
            with open(f"/proc/{pid}/status", "rb") as file:
                fields = dict(line.split(b":", 1) for line in file)
        except OSError:
            continue  # it has ended meanwhile
        if int(fields[b"PPid"]) == parent:
            found[int(pid)] = int(fields[b"NSpid"].split()[-1])
    return found


def _changed(path: str) -> Problem:
    return Problem(
        f"{path} is not what it was when claudebox looked at it",
        "start it again; if that does not help, end the other box that works there",
    )
