"""Notes in a journal how far a landing is, and brings one that somebody ended in order.

It goes back to its beginning, or to its end if everything had landed.
"""

from __future__ import annotations

import os
import stat

from claudebox import files
from claudebox.errors import Problem
from claudebox.layers.changes import ADDED, DELETED, DIRECTORY, MODE, Change, Seen, is_opaque
from claudebox.layers.store import Layer, note
from claudebox.paths import is_inside
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STAGING, LANDING = "staging", "landing"
DONE = ".done"  # the end of the journal's name when everything has landed
BESIDE = ".before-landing"  # the end of the name of what was there, if the user has put something else there meanwhile


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


def write_journal(layer: Layer, phase: str, stage: str, operations: list[Operation]) -> None:
    import json

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
    import json

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
    project = files.open_directory(layer.project)
    try:
        if journal.has_landed_some:
            layer = _go_back(layer, project, journal.stage, journal.operations)
            write_journal(layer, STAGING, journal.stage, [])
        _remove_stage(layer, project, journal.stage)
    finally:
        os.close(project)
    os.unlink(journal.file)
    return layer


def finish(layer: Layer, journal: Journal, landed: dict[str, tuple[int, int]], around: dict[str, int]) -> Layer:
    """Bring a landing to its end: everything has landed, and the layer need not have it any more.

    `landed` is what is known already of files: inode and time of the last change. `around` has the inodes of the
    directories in which something has landed, if nobody else had touched them.
    """
    project = files.open_directory(layer.project)
    try:
        layer = _remember(layer, project, journal.operations, landed, around)
        _empty(layer, journal.operations)
        _remove_stage(layer, project, journal.stage)
    finally:
        os.close(project)
    os.unlink(journal.file)
    return layer


def _remove_stage(layer: Layer, project: int, stage: str) -> None:
    parent, name = os.path.split(stage)
    if parent == layer.project:
        files.remove_tree(project, name, is_ours=True)  # the name is random
        return
    here = os.open(parent, files.DIRECTORY)
    try:
        files.remove_tree(here, name, is_ours=True)
    finally:
        os.close(here)


def _go_back(layer: Layer, project: int, stage_path: str, operations: tuple[Operation, ...]) -> Layer:
    """Put everything back, the last one first."""
    is_near = os.path.dirname(stage_path) == layer.directory
    if is_near:
        stage = os.open(stage_path, files.DIRECTORY)
    else:
        stage = os.open(os.path.basename(stage_path), files.DIRECTORY, dir_fd=project)
    known = dict(layer.baseline.known)
    made = [one.change.path for one in operations if one.change.kind == ADDED and one.change.what == DIRECTORY]
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
    here = os.open(name, files.DIRECTORY, dir_fd=parent)
    try:
        return not os.listdir(here)  # what has landed in it was put back before
    finally:
        os.close(here)


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
    layer: Layer,
    project: int,
    operations: tuple[Operation, ...],
    landed: dict[str, tuple[int, int]],
    around: dict[str, int],
) -> Layer:
    """Note what is on the host now, so that it is not taken for something that somebody else has changed."""
    known = layer.baseline.known | landed
    directories = files.Directories(project)
    for operation in reversed(operations):
        if operation.change.path in landed:
            continue
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
    for place, inode in around.items():
        path, _, last = place.rpartition("/")
        try:
            found = files.lstat(directories.open(path), last)
        except OSError:
            continue
        if found is not None and found.st_ino == inode:
            known[place] = (found.st_ino, found.st_ctime_ns)
    directories.close()
    layer = layer.replace(baseline=layer.baseline.replace(known=known))
    note(layer)
    return layer


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
