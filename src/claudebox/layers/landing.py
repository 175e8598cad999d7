"""Lands changes of a layer in the project: all that were chosen, or none of them.

First everything new is made in a directory beside (the stage). Then each thing changes places with what the project has
there, in one step of the kernel, so that no reader ever misses a file, and what was there is in the stage. Only when
the last one has landed, the old ones are removed.

A journal says how far it is. It is written whole, by rename, before the stage is filled, before the project is touched,
and when all is done. Whoever is ended in between, by a full disk, a missing permission or SIGKILL, leaves a journal
from which `recover` goes back to the beginning, or to the end if everything had landed. The layer itself is not touched
before the end.
"""

from __future__ import annotations

import os
import stat

from claudebox.layers import files
from claudebox.layers.changes import (
    ADDED,
    DELETED,
    DIRECTORY,
    LINK,
    MODE,
    Change,
    Seen,
    count_below,
    is_opaque,
    seen,
)
from claudebox.layers.store import Layer, note, open_project, replace_file
from claudebox.problem import Problem
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STAGING, LANDING = "staging", "landing"
DONE = ".done"  # the end of the journal's name when everything has landed
STAGE_IN_PROJECT = ".claudebox-landing"
KEPT_ATTRIBUTES = ("user.", "system.posix_acl_access")
OVERLAYS = "user.overlay."


class Operation(Record):
    """A change on its way, and what was made for it in the stage."""

    change: Change
    staged: Seen | None = None


def land(layer: Layer, chosen: list[Change], looked_at: int) -> Layer:
    """Land these changes, parents before what is in them. Raises a Problem if that fails: then nothing has landed.

    `looked_at` is when the list was made, in nanoseconds. Who calls this holds the lock of the layer.
    """
    layer = recover(layer)
    project = open_project(layer.project)
    here = ""
    try:
        stage = _make_stage(layer, project)
        operations = []
        maker = _Maker(layer, project, stage)
        for number, change in enumerate(chosen):
            here = change.path
            operations.append(maker.make(number, change))
        maker.close()
        _write_journal(layer, LANDING, stage.path, operations)
        mover = _Mover(project, stage.descriptor, looked_at)
        for number, operation in enumerate(operations):
            here = operation.change.path
            mover.move(number, operation)
        os.rename(layer.journal, layer.journal + DONE)
    except (OSError, Problem) as error:
        recover(layer)
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Problem(f"nothing has landed: {here or layer.project}: {why}", "the layer is as it was") from None
    except BaseException:
        recover(layer)
        raise
    finally:
        os.close(project)
    return recover(layer)


class Stage(Record):
    """A directory on the project's file system, in which everything is made before it lands."""

    path: str
    descriptor: int


def _make_stage(layer: Layer, project: int) -> Stage:
    """Make it in the state, where no agent can write, or in the project if that is on another file system."""
    state = os.open(layer.directory, files.DIRECTORY)
    try:
        is_near = files.mount_number(state) == files.mount_number(project)
    finally:
        os.close(state)
    path = f"{layer.directory}/stage" if is_near else f"{layer.project}/{STAGE_IN_PROJECT}-{os.urandom(6).hex()}"
    _write_journal(layer, STAGING, path, [])
    if is_near:
        os.mkdir(path, files.PRIVATE)
        return Stage(path, os.open(path, files.DIRECTORY))
    name = os.path.basename(path)
    os.mkdir(name, files.PRIVATE, dir_fd=project)
    return Stage(path, os.open(name, files.DIRECTORY, dir_fd=project))


class _Directories:
    """Opens the directories of one tree, and keeps the last one open: changes come in the order of a walk."""

    def __init__(self, root: int, *, is_layers: bool = False) -> None:
        self.root = root
        self.is_layers = is_layers
        self.path = ""
        self.descriptor = -1

    def open(self, path: str) -> int:
        if self.descriptor < 0 or path != self.path:
            self.close()
            self.descriptor = self._open_in_layer(path) if self.is_layers else files.open_below(self.root, path)
            self.path = path
        return self.descriptor

    def _open_in_layer(self, path: str) -> int:
        here = os.dup(self.root)
        for name in filter(None, path.split("/")):
            try:
                below, _ = files.open_hidden_directory(here, name)
            finally:
                os.close(here)
            here = below
        return here

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


class _Maker:
    """Makes in the stage what is to land."""

    def __init__(self, layer: Layer, project: int, stage: Stage) -> None:
        self.root = os.open(layer.upper, files.DIRECTORY)
        self.upper = _Directories(self.root, is_layers=True)
        self.lower = _Directories(project)
        self.stage = stage.descriptor

    def make(self, number: int, change: Change) -> Operation:
        if change.kind in (DELETED, MODE):
            return Operation(change)
        name = str(number)
        if change.what == DIRECTORY:
            os.mkdir(name, files.PRIVATE, dir_fd=self.stage)
        elif change.what == LINK:
            os.symlink(change.target, name, dir_fd=self.stage)
        else:
            self._copy(name, change)
        return Operation(change, seen(os.stat(name, dir_fd=self.stage, follow_symlinks=False)))

    def _copy(self, name: str, change: Change) -> None:
        parent, _, last = change.path.rpartition("/")
        source = files.open_hidden_file(self.upper.open(parent), last)
        try:
            target = os.open(name, files.NEW_FILE, 0o600, dir_fd=self.stage)
            try:
                files.copy_content(source, target)
                if change.old is not None and stat.S_ISREG(change.old.mode):
                    self._inherit(parent, last, target)
                os.fchmod(target, change.mode)
                status = os.fstat(source)
                os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
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
        os.close(self.root)


class _Mover:
    """Moves what was made into the project, and what was there into the stage."""

    def __init__(self, project: int, stage: int, looked_at: int) -> None:
        self.project = _Directories(project)
        self.stage = stage
        self.looked_at = looked_at

    def move(self, number: int, operation: Operation) -> None:
        change, name = operation.change, str(number)
        path, _, last = change.path.rpartition("/")
        parent = self.project.open(path)
        self._require_unchanged(parent, last, change)
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

    def _require_unchanged(self, parent: int, name: str, change: Change) -> None:
        found = files.lstat(parent, name)
        if change.old is None:
            if found is not None:
                raise _meanwhile()
        elif found is None or not change.old.is_same(found):
            raise _meanwhile()
        elif not stat.S_ISDIR(found.st_mode) and found.st_ctime_ns != change.old.changed:
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
        if staged is not None and not staged.is_same(os.stat(last, dir_fd=parent, follow_symlinks=False)):
            raise _meanwhile()

    def _set_mode(self, parent: int, name: str, mode: int) -> None:
        """Give a directory its mode, but let us write in it until everything has landed."""
        here = os.open(name, files.DIRECTORY, dir_fd=parent)
        try:
            os.fchmod(here, mode | files.PRIVATE)
        finally:
            os.close(here)


def _meanwhile() -> Problem:
    return Problem("it was changed on this host a moment ago")


def _write_journal(layer: Layer, phase: str, stage: str, operations: list[Operation]) -> None:
    import json

    rows = [[_as_row(one.change), _numbers(one.staged)] for one in operations]
    replace_file(layer.journal, json.dumps({"phase": phase, "stage": stage, "operations": rows}).encode())


def _as_row(change: Change) -> list[Any]:
    return [change.path, change.kind, change.what, change.mode, change.gone, _numbers(change.old)]


def _numbers(one: Seen | None) -> list[int] | None:
    return None if one is None else [one.device, one.inode, one.mode, one.size, one.modified, one.changed]


def _operation(row: list[Any]) -> Operation:
    (path, kind, what, mode, gone, old), staged = row
    change = Change(path, kind, what, mode, 0, Seen(*old) if old else None, gone)
    return Operation(change, Seen(*staged) if staged else None)


def recover(layer: Layer) -> Layer:
    """Bring a landing that somebody ended to its beginning, or to its end if all had landed. Nothing if there is none.

    Who calls this holds the lock of the layer.
    """
    import json

    is_done = os.path.lexists(layer.journal + DONE)
    try:
        with open(layer.journal + (DONE if is_done else ""), encoding="ascii") as file:
            said = json.load(file)
    except FileNotFoundError:
        return layer
    operations = [_operation(row) for row in said["operations"]]
    project = open_project(layer.project)
    try:
        if is_done:
            layer = _finish(layer, project, operations)
        elif said["phase"] == LANDING:
            layer = _go_back(layer, project, said["stage"], operations)
            _write_journal(layer, STAGING, said["stage"], [])
        _remove_stage(layer, project, said["stage"])
    finally:
        os.close(project)
    os.unlink(layer.journal + (DONE if is_done else ""))
    return layer


def _remove_stage(layer: Layer, project: int, stage: str) -> None:
    parent, name = os.path.split(stage)
    if parent == layer.project:
        files.remove_tree(project, name)
        return
    here = os.open(parent, files.DIRECTORY)
    try:
        files.remove_tree(here, name)
    finally:
        os.close(here)


def _go_back(layer: Layer, project: int, stage_path: str, operations: list[Operation]) -> Layer:
    """Put everything back, the last one first."""
    is_near = os.path.dirname(stage_path) == layer.directory
    stage = os.open(stage_path if is_near else os.path.basename(stage_path), files.DIRECTORY, dir_fd=None if is_near else project)
    known = dict(layer.baseline.known)
    try:
        for number, operation in reversed(list(enumerate(operations))):
            path, _, last = operation.change.path.rpartition("/")
            try:
                parent = files.open_below(project, path)
            except FileNotFoundError:
                continue  # a directory that was to land, and has not
            try:
                _put_back(parent, last, stage, str(number), operation)
                found = files.lstat(parent, last)
            finally:
                os.close(parent)
            if found is not None:
                known[operation.change.path] = (found.st_ino, found.st_ctime_ns)
    except OSError as error:
        raise Problem(
            f"a landing was ended, and cannot be undone: {operation.change.path}: {error.strerror}",
            f"what was there before is in {stage_path}, by the numbers in {layer.journal}",
        ) from None
    finally:
        os.close(stage)
    # Otherwise what was moved back would look as if somebody had changed it.
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
            files.rename(stage, name, parent, last, files.NO_REPLACE)
        return
    staged = operation.staged
    assert staged is not None
    if _put_together(parent, last, stage, name, staged):
        return
    here = files.lstat(stage, name)
    if here is not None and here.st_ino == staged.inode:
        return  # it has not landed
    if change.old is None:
        if found is not None and found.st_ino == staged.inode:
            _take_back(parent, last, stage, name, change)
    elif here is None:
        return  # it was put back, and the landing that did that was ended, too
    elif found is None:
        files.rename(stage, name, parent, last, files.NO_REPLACE)
    else:
        files.rename(stage, name, parent, last, files.EXCHANGE)


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


def _finish(layer: Layer, project: int, operations: list[Operation]) -> Layer:
    """Everything has landed: remember what is on the host now, and take it out of the layer."""
    known = dict(layer.baseline.known)
    directories = _Directories(project)
    for operation in reversed(operations):
        path, _, last = operation.change.path.rpartition("/")
        try:
            parent = directories.open(path)
            if operation.change.kind in (ADDED, MODE) and operation.change.what == DIRECTORY:
                files.change_mode(parent, last, operation.change.mode)
            found = files.lstat(parent, last)
        except OSError:
            continue
        if found is not None:
            known[operation.change.path] = (found.st_ino, found.st_ctime_ns)
    directories.close()
    layer = layer.replace(baseline=layer.baseline.replace(known=known))
    note(layer)
    root = os.open(layer.upper, files.DIRECTORY)
    try:
        for operation in reversed(operations):
            _forget(root, operation.change)
    finally:
        os.close(root)
    return layer


def _forget(root: int, change: Change) -> None:
    """Take a change out of the layer, unless the directory around it covers the host's: then it has to stay."""
    *above, last = change.path.split("/")
    here = os.dup(root)
    try:
        for name in above:
            below, _ = files.open_hidden_directory(here, name)
            os.close(here)
            here = below
            if is_opaque(here):
                return
        if change.what != DIRECTORY or change.kind == DELETED:
            os.unlink(last, dir_fd=here)
        elif change.kind == ADDED:
            os.rmdir(last, dir_fd=here)
    except OSError:
        pass  # it is gone, or not empty: what stays is what the host has
    finally:
        os.close(here)
