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

import json
import os
import stat

from claudebox import files
from claudebox.errors import Problem
from claudebox.overlay.changes import (
    ADDED,
    DELETED,
    DIRECTORY,
    LINK,
    MODE,
    Baseline,
    Change,
    Seen,
    count_below,
    is_opaque,
    seen,
)
from claudebox.overlay.store import Layer, note
from claudebox.paths import is_inside
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STAGING, LANDING = "staging", "landing"
DONE = ".done"  # the end of the journal's name when everything has landed
BESIDE = ".before-landing"  # the end of the name of what was there, if the user has put something else there meanwhile
STAGE_IN_PROJECT = ".claudebox-landing"
KEPT_ATTRIBUTES = ("user.", "system.posix_acl_access")
OVERLAYS = "user.overlay."
STALE = 116

Known = dict[str, tuple[int, int]]  # inode and time of the last change, by path


class Operation(Record):
    """A change on its way, and what was made for it in the stage."""

    change: Change
    staged: Seen | None = None


class Journal(Record):
    """A landing that somebody began."""

    file: str
    is_done: bool
    has_landed_some: bool  # whether anything in the project may have been touched
    stage: str
    operations: tuple[Operation, ...]


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
    with files.Open(os.open(layer.directory, files.DIRECTORY)) as state:
        is_near = files.mount_number(state) == files.mount_number(project)
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
        self.landed: Known = {}  # inode and time of the last change of the files among those

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
        hidden = files.Open(files.open_hidden_file(self.upper.open(parent), last))
        with hidden as source, files.Open(os.open(name, files.NEW_FILE, 0o600, dir_fd=here)) as target:
            files.copy_content(source, target, change.size)
            status = os.fstat(source)
            if not change.is_still(status):
                raise OSError(STALE, "it was changed in the layer a moment ago")
            if change.old is not None and stat.S_ISREG(change.old.mode):
                self._inherit(parent, last, target)
            os.fchmod(target, change.mode)
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
            return seen(os.fstat(target))

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
        self.landed: Known = {}  # inode and time of the last change of each file

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
        if change.makes_room:
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
            if stat.S_ISDIR(old.st_mode) and self._count_old(name) != (change.gone, False):
                raise _meanwhile()
        if staged is not None:
            found = os.stat(last, dir_fd=parent, follow_symlinks=False)
            if not staged.is_same(found):
                raise _meanwhile()
            if change.what != DIRECTORY:
                self.landed[change.path] = found.st_ino, found.st_ctime_ns

    def _count_old(self, name: str) -> tuple[int, bool]:
        return count_below(self.stage, name, "", lambda _, status: status.st_ctime_ns >= self.looked_at)[:2]

    def _set_mode(self, parent: int, name: str, mode: int) -> None:
        """Give a directory its mode, but let us write in it until everything has landed."""
        with files.Open(os.open(name, files.DIRECTORY, dir_fd=parent)) as here:
            os.fchmod(here, mode | files.PRIVATE)


def _meanwhile() -> OSError:
    return OSError(STALE, "it was changed on this host a moment ago")


def write_journal(layer: Layer, phase: str, stage: str, operations: list[Operation]) -> None:
    rows = [[_as_row(one.change), _numbers(one.staged)] for one in operations]
    files.write_whole(layer.journal, json.dumps({"phase": phase, "stage": stage, "operations": rows}).encode())


def _as_row(change: Change) -> list[Any]:
    return [change.path, change.kind, change.what, change.mode, change.gone, _numbers(change.old)]


def _numbers(one: Seen | None) -> list[int] | None:
    return None if one is None else [one.device, one.inode, one.mode, one.size, one.modified, one.changed]


def _operation(row: list[Any]) -> Operation:
    (path, kind, what, mode, gone, old), staged = row
    change = Change(path, kind, what, mode, 0, Seen(*old) if old else None, gone)
    return Operation(change, Seen(*staged) if staged else None)


def read_journal(layer: Layer) -> Journal | None:
    is_done = os.path.lexists(layer.journal + DONE)
    file = layer.journal + (DONE if is_done else "")
    try:
        with open(file, encoding="ascii") as written:
            said = json.load(written)
    except FileNotFoundError:
        return None
    operations = tuple(_operation(row) for row in said["operations"])
    return Journal(file, is_done, said["phase"] == LANDING, said["stage"], operations)


def recover(layer: Layer) -> Layer:
    """Bring a landing that somebody ended to its beginning, or to its end if all had landed. Nothing if there is none.

    Who calls this holds the lock of the layer.
    """
    try:
        return _recover(layer)
    except OSError as error:
        # It is tried again whenever somebody comes back: each step can be done twice.
        raise Problem(
            f"a landing of review {layer.number} was ended, and cannot be brought in order: {error.strerror}",
            "see whether the disk is full: df -h ~\n      then: claudebox --review list",
        ) from None


def _recover(layer: Layer) -> Layer:
    journal = read_journal(layer)
    if journal is None:
        return layer
    if journal.is_done:
        return finish(layer, journal, {}, {})
    with files.Open(files.open_directory(layer.project)) as project:
        if journal.has_landed_some:
            layer = _go_back(layer, project, journal.stage, journal.operations)
            write_journal(layer, STAGING, journal.stage, [])
        _remove_stage(layer, project, journal.stage)
    os.unlink(journal.file)
    return layer


def finish(layer: Layer, journal: Journal, landed: Known, around: dict[str, int]) -> Layer:
    """Bring a landing to its end: everything has landed, and the layer need not have it any more.

    `landed` is what is known already of files: inode and time of the last change. `around` has the inodes of the
    directories in which something has landed, if nobody else had touched them.
    """
    with files.Open(files.open_directory(layer.project)) as project:
        layer = _remember(layer, project, journal.operations, landed, around)
        _empty(layer, journal.operations)
        _remove_stage(layer, project, journal.stage)
    os.unlink(journal.file)
    return layer


def _around_stage(layer: Layer, project: int, stage: str) -> int:
    """Open the directory that the stage is in."""
    parent = os.path.dirname(stage)
    return os.dup(project) if parent == layer.project else os.open(parent, files.DIRECTORY)


def _remove_stage(layer: Layer, project: int, stage: str) -> None:
    with files.Open(_around_stage(layer, project, stage)) as here:
        files.remove_tree(here, os.path.basename(stage), is_ours=True)  # in the project, the name is random


def _go_back(layer: Layer, project: int, stage_path: str, operations: tuple[Operation, ...]) -> Layer:
    """Put everything back, the last one first."""
    around = _around_stage(layer, project, stage_path)
    stage = os.open(os.path.basename(stage_path), files.DIRECTORY, dir_fd=around)
    os.close(around)
    known = dict(layer.baseline.known)
    made = [one.change.path for one in operations if one.change.makes_room]
    try:
        for number, operation in reversed(list(enumerate(operations))):
            path, _, last = operation.change.path.rpartition("/")
            try:
                parent = files.open_below(project, path)
            except OSError:
                if any(is_inside(path, directory) for directory in made):
                    continue  # a directory that was to land, and has not
                raise
            try:
                _put_back(parent, last, stage, str(number), operation)
                found = files.lstat(parent, last)
            finally:
                os.close(parent)
            old = operation.change.old
            if found is not None and old is not None and old.is_same(found):
                known[operation.change.path] = (found.st_ino, found.st_ctime_ns)
    except OSError as error:
        raise Problem(
            f"a landing was ended, and is not undone yet: {operation.change.path}: {error.strerror}",
            "put back what somebody has moved, and: claudebox --review list\n"
            f"      what was there before is in {stage_path}, by the numbers in {layer.journal}",
        ) from None
    finally:
        os.close(stage)
    # Otherwise what was moved back would look as if somebody had changed it.
    return _note_known(layer, known)


def _note_known(layer: Layer, known: Known) -> Layer:
    layer = layer.replace(baseline=layer.baseline.replace(known=known))
    note(layer)
    return layer


def _put_back(parent: int, last: str, stage: int, name: str, operation: Operation) -> None:
    change = operation.change
    found = files.lstat(parent, last)
    if change.kind == MODE:
        if found is not None and change.old is not None and found.st_ino == change.old.inode:
            files.change_mode(parent, last, stat.S_IMODE(change.old.mode))
        return
    here = files.lstat(stage, name)
    if change.kind == DELETED:
        if here is not None:
            files.rename(stage, name, parent, last if found is None else f"{last}{BESIDE}", files.NO_REPLACE)
        return
    staged = operation.staged
    assert staged is not None
    if _put_together(parent, last, stage, name, staged):
        return
    here = files.lstat(stage, name)
    if here is not None and here.st_ino == staged.inode:
        return  # it has not landed
    if change.old is None:
        if found is not None and _is_still_ours(parent, last, found, staged):
            _take_back(parent, last, stage, name, change)
    elif here is None:
        return  # it was put back, and the landing that did that was ended, too
    elif found is None:
        files.rename(stage, name, parent, last, files.NO_REPLACE)
    elif _is_still_ours(parent, last, found, staged):
        files.rename(stage, name, parent, last, files.EXCHANGE)
    else:
        files.rename(stage, name, parent, f"{last}{BESIDE}", files.NO_REPLACE)


def _is_still_ours(parent: int, name: str, found: os.stat_result, staged: Seen) -> bool:
    """Whether it is what has landed, as it landed. If not, somebody has worked on it since, and it stays."""
    if not stat.S_ISDIR(found.st_mode) or found.st_ino != staged.inode:
        return staged.is_same(found)
    with files.Open(os.open(name, files.DIRECTORY, dir_fd=parent)) as here:
        return not os.listdir(here)  # what has landed in it was put back before


def _put_together(parent: int, last: str, stage: int, name: str, staged: Seen) -> bool:
    """Mend an exchange in several steps (on a file system that knows no other), between which claudebox was ended.

    Returns whether nothing more is to be done.
    """
    aside = f".{name}.aside"
    found, here = files.lstat(stage, aside), files.lstat(stage, name)
    if found is None:
        return False
    if found.st_ino == staged.inode:  # it was ended while it put things back
        if here is not None:
            files.rename(stage, name, parent, last, files.NO_REPLACE)
        return True
    if here is not None:
        files.rename(stage, aside, parent, last, files.NO_REPLACE)
        return True
    os.rename(aside, name, src_dir_fd=stage, dst_dir_fd=stage)
    return False


def _take_back(parent: int, last: str, stage: int, name: str, change: Change) -> None:
    if change.what == DIRECTORY:
        try:
            os.rmdir(last, dir_fd=parent)
        except OSError:
            pass  # somebody else has put something in there meanwhile
        return
    files.rename(parent, last, stage, name, files.NO_REPLACE)


def _remember(
    layer: Layer, project: int, operations: tuple[Operation, ...], landed: Known, around: dict[str, int]
) -> Layer:
    """Note what is on the host now, so that it is not taken for something that somebody else has changed."""
    known = layer.baseline.known | landed
    directories = files.Directories(project)
    noted = {one.change.path: one.change for one in reversed(operations) if one.change.path not in landed}
    for place in (*noted, *around):
        path, _, last = place.rpartition("/")
        try:
            parent = directories.open(path)
            if place in noted and noted[place].kind in (ADDED, MODE) and noted[place].what == DIRECTORY:
                files.change_mode(parent, last, noted[place].mode)
            found = files.lstat(parent, last)
        except OSError:
            continue
        if found is not None and (place in noted or found.st_ino == around[place]):
            known[place] = (found.st_ino, found.st_ctime_ns)
    directories.close()
    return _note_known(layer, known)


def _empty(layer: Layer, operations: tuple[Operation, ...]) -> None:
    """Take what has landed out of the layer."""
    root = os.open(layer.upper, files.DIRECTORY)
    upper = files.Directories(root, is_layers=True)
    covering: dict[str, bool] = {"": False}
    for operation in reversed(operations):
        path, _, last = operation.change.path.rpartition("/")
        try:
            if path not in covering:
                covering[path] = _is_covering(root, path)
            if not covering[path]:
                _forget(upper.open(path), last, operation.change)
        except OSError:
            pass  # it is gone, or not empty: what stays is what the host has
    upper.close()
    os.close(root)


def _is_covering(root: int, path: str) -> bool:
    """Whether a directory around it hides the host's: then what has landed has to stay in the layer, too."""
    here = os.dup(root)
    try:
        for name in path.split("/"):
            below, _ = files.open_hidden_directory(here, name)
            os.close(here)
            here = below
            if is_opaque(here):
                return True
        return False
    finally:
        os.close(here)


def _forget(parent: int, name: str, change: Change) -> None:
    """Take a change out of the layer."""
    if change.what != DIRECTORY or change.kind == DELETED:
        os.unlink(name, dir_fd=parent)
    elif change.kind == ADDED:
        os.rmdir(name, dir_fd=parent)
