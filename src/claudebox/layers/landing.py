"""Lands changes of a layer in the project: all that were chosen, or none of them.

First everything new is made in a directory beside (the stage). Then each thing changes places with what the project has
there, in one step of the kernel, so that no reader ever misses a file, and what was there is in the stage. A new
directory lands with all that is in it, if no box can reach the stage. Only when the last one has landed, the old ones
are removed.

Files are copied, never moved out of the layer: a process of another box may still have a descriptor of one that it was
given, and would write through it into what has landed.

A journal says how far it is. It is written whole, by rename, before the stage is filled, before the project is touched,
and when all is done. Whoever is ended in between, by a full disk, a missing permission or SIGKILL, leaves a journal
from which `recover` goes back to the beginning, or to the end if everything had landed. The layer itself is not touched
before the end.
"""

from __future__ import annotations

import os
import stat

from claudebox import files
from claudebox.errors import Problem
from claudebox.layers.changes import ADDED, DELETED, DIRECTORY, LINK, MODE, Baseline, Change, Seen, count_below, seen
from claudebox.layers.recovery import DONE, LANDING, STAGING, Journal, Operation, finish, recover, write_journal
from claudebox.layers.store import Layer
from claudebox.record import Record

STAGE_IN_PROJECT = ".claudebox-landing"
KEPT_ATTRIBUTES = ("user.", "system.posix_acl_access")
OVERLAYS = "user.overlay."
STALE = 116


def land(layer: Layer, chosen: list[Change], looked_at: int) -> Layer:
    """Land these changes, parents before what is in them. Raises a Problem if that fails: then nothing has landed.

    `looked_at` is when the list was made, in nanoseconds. Who calls this holds the lock of the layer.
    """
    layer = recover(layer)
    project = files.open_directory(layer.project)
    here = ""
    try:
        stage = _make_stage(layer, project)
        operations = []
        maker = _Maker(layer, project, stage)
        for number, change in enumerate(chosen):
            here = change.path
            operations.append(maker.make(number, change))
        maker.close()
        write_journal(layer, LANDING, stage.path, operations)
        mover = _Mover(project, stage.descriptor, looked_at, layer.baseline)
        for number, operation in enumerate(operations):
            here = operation.change.path
            if here not in maker.goes_with:
                mover.move(number, operation)
        os.rename(layer.journal, layer.journal + DONE)
    except OSError as error:
        recover(layer)
        raise Problem(
            f"nothing has landed: {here or layer.project}: {error.strerror}", "the layer is as it was: --review show"
        ) from None
    except BaseException:
        recover(layer)
        raise
    finally:
        os.close(project)
    journal = Journal(layer.journal + DONE, True, True, stage.path, tuple(operations))
    os.close(stage.descriptor)
    try:
        return finish(layer, journal, maker.landed | mover.landed, mover.around)
    except OSError as error:
        raise Problem(
            f"everything has landed, but the layer is not emptied yet: {error.strerror}",
            "see whether the disk is full: df -h ~\n      then: claudebox --review list",
        ) from None


class Stage(Record):
    """A directory on the project's file system, in which everything is made before it lands."""

    path: str
    descriptor: int
    is_private: bool  # whether no box can reach it


def _make_stage(layer: Layer, project: int) -> Stage:
    """Make it in the state, where no agent can write, or in the project if that is on another file system."""
    state = os.open(layer.directory, files.DIRECTORY)
    try:
        is_near = files.mount_number(state) == files.mount_number(project)
    finally:
        os.close(state)
    path = f"{layer.directory}/stage" if is_near else f"{layer.project}/{STAGE_IN_PROJECT}-{os.urandom(6).hex()}"
    write_journal(layer, STAGING, path, [])
    if is_near:
        os.mkdir(path, files.PRIVATE)
        return Stage(path, os.open(path, files.DIRECTORY), is_private=True)
    name = os.path.basename(path)
    os.mkdir(name, files.PRIVATE, dir_fd=project)
    return Stage(path, os.open(name, files.DIRECTORY, dir_fd=project), is_private=False)


class _Maker:
    """Makes in the stage what is to land."""

    def __init__(self, layer: Layer, project: int, stage: Stage) -> None:
        self.root = os.open(layer.upper, files.DIRECTORY)
        self.upper = files.Directories(self.root, is_layers=True)
        self.lower = files.Directories(project)
        self.stage = files.Directories(stage.descriptor)
        self.is_private = stage.is_private
        self.rooms: dict[str, str] = {}  # new directories of the project, and where in the stage they are
        self.goes_with: set[str] = set()  # what lands with the directory around it
        self.landed: dict[str, tuple[int, int]] = {}  # inode and time of the last change of the files among those

    def make(self, number: int, change: Change) -> Operation:
        if change.kind in (DELETED, MODE):
            return Operation(change, None)
        parent, _, last = change.path.rpartition("/")
        room = self.rooms.get(parent) if parent else None
        if room is not None:
            self.goes_with.add(change.path)
        here, name = (self.stage.open(""), str(number)) if room is None else (self.stage.open(room), last)
        if change.what == DIRECTORY:
            os.mkdir(name, files.PRIVATE, dir_fd=here)
            if room is not None:
                os.chmod(name, change.mode | files.PRIVATE, dir_fd=here)
            if self.is_private and change.old is None:
                self.rooms[change.path] = str(number) if room is None else f"{room}/{last}"
        elif change.what == LINK:
            os.symlink(change.target, name, dir_fd=here)
        else:
            staged = self._copy(here, name, change)
            if room is not None:
                self.landed[change.path] = staged.inode, staged.changed
            return Operation(change, staged)
        return Operation(change, seen(os.stat(name, dir_fd=here, follow_symlinks=False)))

    def _copy(self, here: int, name: str, change: Change) -> Seen:
        parent, _, last = change.path.rpartition("/")
        source = files.open_hidden_file(self.upper.open(parent), last)
        try:
            target = os.open(name, files.NEW_FILE, 0o600, dir_fd=here)
            try:
                files.copy_content(source, target, change.size)
                status = os.fstat(source)
                if not change.is_still(status):
                    raise OSError(STALE, "it was changed in the layer a moment ago")
                if change.old is not None and stat.S_ISREG(change.old.mode):
                    self._inherit(parent, last, target)
                os.fchmod(target, change.mode)
                os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
                return seen(os.fstat(target))
            finally:
                os.close(target)
        finally:
            os.close(source)

    def _inherit(self, parent: str, name: str, target: int) -> None:
        """Give the new file the owner and the attributes of the old one, as far as that is possible."""
        old = os.open(name, files.NAME_ONLY, dir_fd=self.lower.open(parent))
        try:
            status, ours = os.fstat(old), os.fstat(target)
            if (status.st_uid, status.st_gid) != (ours.st_uid, ours.st_gid):
                os.chown(target, status.st_uid, status.st_gid)
            path = f"/proc/self/fd/{old}"
            for attribute in os.listxattr(path):
                if attribute.startswith(KEPT_ATTRIBUTES) and not attribute.startswith(OVERLAYS):
                    os.setxattr(target, attribute, os.getxattr(path, attribute))
        except OSError:
            pass  # somebody else's file, or a file system without attributes
        finally:
            os.close(old)

    def close(self) -> None:
        self.upper.close()
        self.lower.close()
        self.stage.close()
        os.close(self.root)


class _Mover:
    """Moves what was made into the project, and what was there into the stage."""

    def __init__(self, project: int, stage: int, looked_at: int, baseline: Baseline) -> None:
        self.project = files.Directories(project)
        self.stage = stage
        self.looked_at = looked_at
        self.baseline = baseline
        self.around: dict[str, int] = {}  # inodes of directories that only this landing has touched; 0: others, too
        self.landed: dict[str, tuple[int, int]] = {}  # inode and time of the last change of each file

    def move(self, number: int, operation: Operation) -> None:
        change, name = operation.change, str(number)
        path, _, last = change.path.rpartition("/")
        parent = self.project.open(path)
        if path and path not in self.around:
            around = os.fstat(parent)
            self.around[path] = 0 if self.baseline.is_touched(path, around) else around.st_ino
        if change.old is not None:
            self._require_unchanged(parent, last, change.old)
        if change.kind == MODE:
            self._set_mode(parent, last, change.mode)
            return
        if change.kind == DELETED:
            files.rename(parent, last, self.stage, name, files.NO_REPLACE)
        elif change.old is None:
            files.rename(self.stage, name, parent, last, files.NO_REPLACE)
        else:
            files.rename(self.stage, name, parent, last, files.EXCHANGE)
        self._require_expected(parent, last, name, operation)
        if change.what == DIRECTORY and change.kind == ADDED:
            self._set_mode(parent, last, change.mode)

    def _require_unchanged(self, parent: int, name: str, old: Seen) -> None:
        found = files.lstat(parent, name)
        if found is None or not old.is_same(found):
            raise _meanwhile()
        if not stat.S_ISDIR(found.st_mode) and found.st_ctime_ns != old.changed:
            raise _meanwhile()

    def _require_expected(self, parent: int, last: str, name: str, operation: Operation) -> None:
        """Look at what was moved: between the look and the move, somebody may have put something else there."""
        change, staged = operation.change, operation.staged
        if change.old is not None:
            old = os.stat(name, dir_fd=self.stage, follow_symlinks=False)
            if not change.old.is_same(old):
                raise _meanwhile()
            if stat.S_ISDIR(old.st_mode) and count_below(self.stage, name, self.looked_at) != (change.gone, False):
                raise _meanwhile()
        if staged is not None:
            found = os.stat(last, dir_fd=parent, follow_symlinks=False)
            if not staged.is_same(found):
                raise _meanwhile()
            if change.what != DIRECTORY:
                self.landed[change.path] = found.st_ino, found.st_ctime_ns

    def _set_mode(self, parent: int, name: str, mode: int) -> None:
        """Give a directory its mode, but let us write in it until everything has landed."""
        here = os.open(name, files.DIRECTORY, dir_fd=parent)
        try:
            os.fchmod(here, mode | files.PRIVATE)
        finally:
            os.close(here)


def _meanwhile() -> OSError:
    return OSError(STALE, "it was changed on this host a moment ago")
