"""Masked files in a layer: the box sees decoys between the host's files and what it writes itself.

So it can replace, move and delete them like every other file. The decoys are kept with the layer, as they were given:
when something lands, what the box has changed in them is merged into the real file, and its secrets stay in place.
"""

from __future__ import annotations

import os
import stat

from claudebox import files
from claudebox.layers.changes import CHANGED, DELETED, FILE, Change, Changes, Never
from claudebox.layers.store import Layer
from claudebox.merging import LARGEST, TOO_LARGE, Merged, merge
from claudebox.paths import is_below
from claudebox.record import Record

REPLACED = "a file with secrets, replaced by something else"
HELD = "a file with secrets"
GOES_WITH_IT = "a file with secrets goes with it"
STALE = 116
MOST_NAMED = 6  # lines that do not land: what else is shown has to stay on the screen


class Decoy(Record):
    """A masked file as the box sees it."""

    path: str  # in the project
    content: bytes
    mode: int


class Edited(Record):
    """The changes of a layer, of which those to decoys are merged into the real files."""

    changes: Changes
    contents: dict[str, bytes]  # what lands there, instead of what is in the layer
    apart: dict[str, str]  # what lands only if it is chosen, and why


def place_of(layer: Layer) -> str:
    return f"{layer.directory}/decoys"


def lay_out(layer: Layer, decoys: list[Decoy]) -> None:
    """Write the decoys. What a box has changed already stays beside the decoy that it was made from."""
    root = place_of(layer)
    wanted = {decoy.path for decoy in decoys}
    for path in stored(layer):
        if path not in wanted and not os.path.lexists(f"{layer.upper}/{path}"):
            os.unlink(f"{root}/{path}")
            _remove_empty(root, path)
    os.makedirs(root, files.PRIVATE, exist_ok=True)
    # What the box sees of a directory has the mode of the uppermost one.
    os.chmod(root, _mode_of(layer.project))
    for decoy in decoys:
        target = f"{root}/{decoy.path}"
        if os.path.lexists(target) and os.path.lexists(f"{layer.upper}/{decoy.path}"):
            continue
        _make_parents(layer, decoy.path)
        if os.path.lexists(target):
            os.unlink(target)
        descriptor = os.open(target, files.NEW_FILE, 0o600)
        try:
            files.write_all(descriptor, decoy.content)
            os.fchmod(descriptor, decoy.mode)
        finally:
            os.close(descriptor)


def _make_parents(layer: Layer, path: str) -> None:
    names = path.split("/")[:-1]
    for depth in range(1, len(names) + 1):
        inner = "/".join(names[:depth])
        made = f"{place_of(layer)}/{inner}"
        os.makedirs(made, files.PRIVATE, exist_ok=True)
        os.chmod(made, _mode_of(f"{layer.project}/{inner}") | files.PRIVATE)


def _mode_of(directory: str) -> int:
    return stat.S_IMODE(os.lstat(directory).st_mode) & files.PERMISSIONS


def _remove_empty(root: str, path: str) -> None:
    while path := path.rpartition("/")[0]:
        try:
            os.rmdir(f"{root}/{path}")
        except OSError:
            return


def stored(layer: Layer) -> dict[str, bytes]:
    """The decoys of a layer as they were given, by their paths in the project. No box can write them there."""
    found: dict[str, bytes] = {}
    root = place_of(layer)
    waiting = [root]
    while waiting:
        directory = waiting.pop()
        try:
            names = sorted(os.listdir(directory))
        except OSError:
            continue
        for name in names:
            path = f"{directory}/{name}"
            if stat.S_ISDIR(os.lstat(path).st_mode):
                waiting.append(path)
            else:
                with open(path, "rb") as file:
                    found[path[len(root) + 1 :]] = file.read()
    return found


def merged(layer: Layer, changes: Changes) -> Edited:
    """The changes as they may land: nothing of a decoy, and no secret anywhere but where it was."""
    given = stored(layer)
    if not given:
        return Edited(changes, {}, {})
    work = _Work(layer, given)
    try:
        kept = [change for change in changes.changes if work.keeps(change)]
    finally:
        work.close()
    return Edited(Changes(tuple(kept), (*changes.never, *work.never)), work.contents, work.apart)


class _Work:
    def __init__(self, layer: Layer, given: dict[str, bytes]) -> None:
        self.given = given
        self.upper, self.project = os.open(layer.upper, files.DIRECTORY), files.open_directory(layer.project)
        self.contents: dict[str, bytes] = {}
        self.apart: dict[str, str] = {}
        self.never: list[Never] = []

    def close(self) -> None:
        os.close(self.upper)
        os.close(self.project)

    def keeps(self, change: Change) -> bool:
        """Whether this is a change that can land."""
        if change.path not in self.given:
            is_taken_away = change.kind == DELETED or (change.kind == CHANGED and change.gone)
            if is_taken_away and any(is_below(path, change.path) for path in self.given):
                self.apart[change.path] = GOES_WITH_IT
            return True
        if change.kind == DELETED:
            self.apart[change.path] = HELD
            return True
        if change.what != FILE or change.old is None or not stat.S_ISREG(change.old.mode):
            self.never.append(Never(change.path, REPLACED))
            return False
        try:
            result = self._merge(change)
        except OSError as error:
            result = Merged(trouble=error.strerror or TOO_LARGE)
        held = ", ".join(f"{key} {why}" for key, why in result.held[:MOST_NAMED])
        held += f" and {len(result.held) - MOST_NAMED} more" if len(result.held) > MOST_NAMED else ""
        if held or result.trouble:
            self.never.append(Never(change.path, f"{HELD}: {result.trouble or held}"))
        if result.content is not None:
            self.contents[change.path] = result.content
        return result.content is not None

    def _merge(self, change: Change) -> Merged:
        parent, _, name = change.path.rpartition("/")
        layers = files.Directories(self.upper, is_layers=True)
        try:
            descriptor = files.open_hidden_file(layers.open(parent), name)
            status = os.fstat(descriptor)
            left = _read(descriptor)
        finally:
            layers.close()
        # What is merged here lands, with the mode of the real file, and the diff reads the layer once more: of a file
        # whose changes cannot be told, or that is another one by now, the two could differ.
        if not change.written or not change.is_still(status):
            raise OSError(STALE, "it was changed in the layer a moment ago")
        here = files.open_below(self.project, parent)
        try:
            real = _read(os.open(name, files.READ, dir_fd=here))
        finally:
            os.close(here)
        return merge(real, self.given[change.path], left)


def _read(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        return file.read(LARGEST + 1)
