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
from claudebox.errors import Problem, suppress
from claudebox.overlay.changes import (
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
from claudebox.overlay.store import Layer, note
from claudebox.paths import is_inside
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
    stage: str
    operations: tuple[Operation, ...]  # none as long as nothing in the project was touched


def land(layer: Layer, chosen: list[Change], looked_at: int) -> Layer:
    """Land these changes, parents before what is in them. Raises a Problem if that fails: then nothing has landed.

    `looked_at` is when the list was made, in nanoseconds. Who calls this holds the lock of the layer.
    """
    layer = recover(layer)
    project = files.open_directory(layer.project)
    here = ""
    try:
        landing = _Landing(layer, project, looked_at)
        operations = []
        for number, change in enumerate(chosen):
            here = change.path
            operations.append(landing.make(number, change))
        write_journal(layer, landing.place, operations)
        for number, operation in enumerate(operations):
            here = operation.change.path
            landing.move(number, operation)
        landing.close()
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
    return recover(layer, landing.around)


class _Landing:
    """Makes in the stage what is to land. Then moves it into the project, and what was there into the stage."""

    def __init__(self, layer: Layer, project: int, looked_at: int) -> None:
        self.baseline = layer.baseline
        self.looked_at = looked_at
        with files.Open(os.open(layer.directory, files.DIRECTORY)) as state:
            # The stage is in the state, where no box can reach it, or in the project if that is on another file system.
            self.is_private = files.mount_number(state) == files.mount_number(project)
        in_project = f"{layer.project}/{STAGE_IN_PROJECT}-{os.urandom(6).hex()}"
        self.place = f"{layer.directory}/stage" if self.is_private else in_project
        write_journal(layer, self.place, [])
        with files.Open(_around_stage(layer, project, self.place)) as here:
            name = os.path.basename(self.place)
            os.mkdir(name, files.PRIVATE, dir_fd=here)
            self.stage = files.Directories(os.open(name, files.DIRECTORY, dir_fd=here))
        self.upper = files.Directories(os.open(layer.upper, files.DIRECTORY), is_layers=True)
        self.lower, self.project = files.Directories(project), files.Directories(project)
        self.rooms: dict[str, str] = {}  # new directories of the project, and where in the stage they are
        self.around: dict[str, int] = {}  # inodes of directories that only this landing has touched; 0: others, too

    def close(self) -> None:
        for directories in (self.upper, self.stage, self.lower, self.project):
            directories.close()
        os.close(self.upper.root)
        os.close(self.stage.root)

    def make(self, number: int, change: Change) -> Operation:
        if change.kind in (DELETED, MODE):
            return Operation(change, None)
        parent, _, last = change.path.rpartition("/")
        room = self.rooms.get(parent, "")
        here, name = self.stage.open(room), last if room else str(number)
        if change.what == DIRECTORY:
            os.mkdir(name, files.PRIVATE, dir_fd=here)  # it gets its mode when everything has landed
            if self.is_private and change.old is None:
                self.rooms[change.path] = f"{room}/{name}" if room else name
        elif change.what == LINK:
            os.symlink(change.target, name, dir_fd=here)
        else:
            return Operation(change, self._copy(here, name, change))
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

    def move(self, number: int, operation: Operation) -> None:
        change, name, stage = operation.change, str(number), self.stage.root
        path, _, last = change.path.rpartition("/")
        if path in self.rooms:
            return  # it has landed with the directory around it
        parent = self.project.open(path)
        if path and path not in self.around:
            around = os.fstat(parent)
            self.around[path] = 0 if self.baseline.is_touched(path, around) else around.st_ino
        if change.old is not None:
            self._require_unchanged(parent, last, change.old)
        if change.kind == MODE:
            # Until everything has landed, let us write in it.
            with files.Open(os.open(last, files.DIRECTORY, dir_fd=parent)) as here:
                os.fchmod(here, change.mode | files.PRIVATE)
            return
        if change.kind == DELETED:
            files.rename(parent, last, stage, name, files.NO_REPLACE)
        elif change.old is None:
            files.rename(stage, name, parent, last, files.NO_REPLACE)
        else:
            files.rename(stage, name, parent, last, files.EXCHANGE)
        self._require_expected(parent, last, name, operation)

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
            old = os.stat(name, dir_fd=self.stage.root, follow_symlinks=False)
            if not change.old.is_same(old):
                raise _meanwhile()
            if stat.S_ISDIR(old.st_mode):
                found = count_below(self.stage.root, name, "", lambda _, one: one.st_ctime_ns >= self.looked_at)
                if found[:2] != (change.gone, False):
                    raise _meanwhile()
        if staged is not None and not staged.is_same(os.stat(last, dir_fd=parent, follow_symlinks=False)):
            raise _meanwhile()


def _meanwhile() -> OSError:
    return OSError(STALE, "it was changed on this host a moment ago")


def write_journal(layer: Layer, stage: str, operations: list[Operation]) -> None:
    rows = [[_as_row(one.change), _numbers(one.staged)] for one in operations]
    files.write_whole(layer.journal, json.dumps({"stage": stage, "operations": rows}).encode())


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
    return Journal(file, is_done, said["stage"], operations)


def recover(layer: Layer, around: dict[str, int] | None = None) -> Layer:
    """Bring a landing to its end if everything has landed, else to its beginning. Nothing if there is none.

    Who calls this holds the lock of the layer. `around` has the inodes of directories in which something has landed, if
    nobody else had touched them. Each step can be done twice: whoever comes back later tries again what failed.
    """
    try:
        journal = read_journal(layer)
        if journal is None:
            return layer
        with files.Open(files.open_directory(layer.project)) as project:
            if journal.is_done:
                layer = _remember(layer, project, journal.operations, around or {})
                _empty(layer, journal.operations)
            elif journal.operations:
                layer = _go_back(layer, project, journal)
                write_journal(layer, journal.stage, [])
            with files.Open(_around_stage(layer, project, journal.stage)) as here:
                # In the project, the name is random.
                files.remove_tree(here, os.path.basename(journal.stage), is_ours=True)
        os.unlink(journal.file)
    except OSError as error:
        what = f"a landing of review {layer.number} was ended, and cannot be brought in order"
        if os.path.lexists(layer.journal + DONE):
            what = "everything has landed, but the layer is not emptied yet"
        hint = "see whether the disk is full: df -h ~\n      then: claudebox --review list"
        raise Problem(f"{what}: {error.strerror}", hint) from None
    return layer


def _around_stage(layer: Layer, project: int, stage: str) -> int:
    """Open the directory that the stage is in."""
    parent = os.path.dirname(stage)
    return os.dup(project) if parent == layer.project else os.open(parent, files.DIRECTORY)


def _go_back(layer: Layer, project: int, journal: Journal) -> Layer:
    """Put everything back, the last one first."""
    with files.Open(_around_stage(layer, project, journal.stage)) as around:
        stage = os.open(os.path.basename(journal.stage), files.DIRECTORY, dir_fd=around)
    known = dict(layer.baseline.known)
    made = [one.change.path for one in journal.operations if one.change.makes_room]
    try:
        for number, operation in reversed(list(enumerate(journal.operations))):
            path, _, last = operation.change.path.rpartition("/")
            try:
                parent = files.open_below(project, path)
            except OSError:
                if any(is_inside(path, directory) for directory in made):
                    continue  # a directory that was to land, and has not
                raise
            with files.Open(parent):
                _put_back(parent, last, stage, str(number), operation)
                found = files.lstat(parent, last)
            old = operation.change.old
            if found is not None and old is not None and old.is_same(found):
                known[operation.change.path] = (found.st_ino, found.st_ctime_ns)
    except OSError as error:
        raise Problem(
            f"a landing was ended, and is not undone yet: {operation.change.path}: {error.strerror}",
            "put back what somebody has moved, and: claudebox --review list\n"
            f"      what was there before is in {journal.stage}, by the numbers in {layer.journal}",
        ) from None
    finally:
        os.close(stage)
    # Otherwise what was moved back would look as if somebody had changed it.
    return _note_known(layer, known)


def _note_known(layer: Layer, known: Known) -> Layer:
    layer = layer.replace(baseline=layer.baseline.replace(known=known))
    note(layer)
    return layer


def _put_back(parent: int, last: str, stage: int, number: str, operation: Operation) -> None:
    change, staged = operation.change, operation.staged
    found = files.lstat(parent, last)
    is_ours = found is not None and staged is not None and _is_still_ours(parent, last, found, staged)
    if change.kind == MODE:
        if found is not None and change.old is not None and found.st_ino == change.old.inode:
            files.change_mode(parent, last, stat.S_IMODE(change.old.mode))
    elif change.old is None:
        if is_ours and change.what == DIRECTORY:
            with suppress(OSError):  # somebody else has put something in there meanwhile
                os.rmdir(last, dir_fd=parent)
        elif is_ours:
            files.rename(parent, last, stage, number, files.NO_REPLACE)
    else:
        # What was there is in the stage, unless it has not landed, or was put back already. A file system that knows no
        # exchange of two names has it beside for a moment.
        for name in (number, f".{number}.aside"):
            here = files.lstat(stage, name)
            if here is None or (staged is not None and here.st_ino == staged.inode):
                continue
            if is_ours:
                files.rename(stage, name, parent, last, files.EXCHANGE)
            else:
                files.rename(stage, name, parent, last if found is None else f"{last}{BESIDE}", files.NO_REPLACE)
            return


def _is_still_ours(parent: int, name: str, found: os.stat_result, staged: Seen) -> bool:
    """Whether it is what has landed, as it landed. If not, somebody has worked on it since, and it stays."""
    if not stat.S_ISDIR(found.st_mode) or found.st_ino != staged.inode:
        return staged.is_same(found)
    with files.Open(os.open(name, files.DIRECTORY, dir_fd=parent)) as here:
        return not os.listdir(here)  # what has landed in it was put back before


def _remember(layer: Layer, project: int, operations: tuple[Operation, ...], around: dict[str, int]) -> Layer:
    """Note what is on the host now, so that it is not taken for something that somebody else has changed."""
    known = dict(layer.baseline.known)
    directories = files.Directories(project)
    landed = {one.change.path: one for one in reversed(operations)}
    for place in (*landed, *around):
        path, _, last = place.rpartition("/")
        operation = landed.get(place)
        try:
            parent = directories.open(path)
            if operation is not None and operation.change.what == DIRECTORY and operation.change.kind != DELETED:
                files.change_mode(parent, last, operation.change.mode)
            found = files.lstat(parent, last)
        except OSError:
            continue
        if found is not None and (_is_as_landed(found, operation) if operation else found.st_ino == around[place]):
            known[place] = (found.st_ino, found.st_ctime_ns)
    directories.close()
    return _note_known(layer, known)


def _is_as_landed(found: os.stat_result, operation: Operation) -> bool:
    """Whether nobody has changed it meanwhile: that may be days, if the landing was ended."""
    staged = operation.staged
    return staged is None or stat.S_ISDIR(found.st_mode) or staged.is_same(found)


def _empty(layer: Layer, operations: tuple[Operation, ...]) -> None:
    """Take what has landed out of the layer. In a directory that hides the host's it has to stay, too."""
    root = os.open(layer.upper, files.DIRECTORY)
    upper = files.Directories(root, is_layers=True)
    hiding = {"": False}

    def hides(path: str) -> bool:
        if path not in hiding:
            hiding[path] = hides(path.rpartition("/")[0]) or is_opaque(upper.open(path))
        return hiding[path]

    for change in (one.change for one in reversed(operations)):
        path, _, last = change.path.rpartition("/")
        try:
            if hides(path):
                continue
            if change.what != DIRECTORY or change.kind == DELETED:
                os.unlink(last, dir_fd=upper.open(path))
            elif change.kind == ADDED:
                os.rmdir(last, dir_fd=upper.open(path))
        except OSError:
            pass  # it is gone, or not empty: what stays is what the host has
    upper.close()
    os.close(root)
