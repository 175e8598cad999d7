"""Moves what a box has left out of the project, and puts back what was there before.

Nothing here follows a symlink: another box may be at work in the same place.
"""

from __future__ import annotations

import os
import stat

from claudebox import files
from claudebox.record import Record


class Old(Record):
    """A file as it was before the box."""

    content: bytes
    mode: int


class Quarantine:
    """A new directory in the project's state, where no box sees it."""

    def __init__(self, place: str) -> None:
        files.make_private(place)
        number = 1
        while os.path.lexists(f"{place}/{number}"):
            number += 1
        self.directory = f"{place}/{number}"
        os.mkdir(self.directory, files.PRIVATE)

    def take(self, root: str, name: str, old: Old | None) -> None:
        """Move something from below a directory of the user. Raises OSError if it cannot be moved."""
        parent, _, last = name.rpartition("/")
        source = _open_writable(f"{root}/{parent}")
        own, target = os.open(self.directory, files.DIRECTORY), -1
        try:
            # What was moved before may be a symlink, and lead anywhere.
            target = files.open_below(own, parent, makes=True)
            _move(source, last, target)
            if old is not None:
                _put_back(source, last, old)
        finally:
            for descriptor in (source, own, target):
                os.close(descriptor) if descriptor >= 0 else None


def remove(path: str) -> None:
    """Remove a symlink or the like, of which nobody needs a copy. Raises OSError if that is not possible."""
    parent, _, last = path.rpartition("/")
    directory = _open_writable(parent)
    try:
        os.unlink(last, dir_fd=directory)
    finally:
        os.close(directory)


def make_listable(path: str) -> None:
    """Let the user list a directory of theirs again. Raises OSError if that is not possible."""
    parent, _, last = path.rpartition("/")
    above = files.open_directory(parent)
    try:
        os.close(files.open_hidden_directory(above, last)[0])
    finally:
        os.close(above)


def _open_writable(path: str) -> int:
    """Open a directory. An agent can keep things in it by taking away the right to write it."""
    directory = files.open_directory(path)
    mode = stat.S_IMODE(os.fstat(directory).st_mode)
    if mode & files.PRIVATE != files.PRIVATE:
        os.fchmod(directory, mode | files.PRIVATE)
    return directory


def _move(directory: int, name: str, target: int) -> None:
    try:
        files.rename(directory, name, target, name, files.NO_REPLACE)
    except OSError as error:
        if error.errno != files.OTHER_DEVICE:
            raise
        files.copy_tree(directory, name, target)
        files.remove_tree(directory, name)


def _put_back(directory: int, name: str, old: Old) -> None:
    if stat.S_ISLNK(old.mode):
        os.symlink(old.content, os.fsencode(name), dir_fd=directory)
    else:
        files.write_new(name, old.content, old.mode & files.PERMISSIONS, directory)
