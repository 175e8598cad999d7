"""Moves what a box has left out of the project, and puts back what was there before.

Nothing here follows a symlink: another box may be at work in the same place.
"""

from __future__ import annotations

import errno
import os
import stat

from claudebox import files
from claudebox.model import Trace


class Quarantine:
    """A new directory in the project's state, where no box sees it."""

    def __init__(self, place: str) -> None:
        files.make_private(place)
        number = 1
        while os.path.lexists(f"{place}/{number}"):
            number += 1
        self.directory = f"{place}/{number}"
        os.mkdir(self.directory, files.PRIVATE)

    def take(self, root: str, path: str, old: Trace | None) -> bool:
        """Move something from below a directory of the user. Returns whether what was there before is there again.

        Raises OSError if it cannot be moved.
        """
        with files.Parent(f"{root}/{path}") as (source, name):
            _make_writable(source)
            own, target = os.open(self.directory, files.DIRECTORY), -1
            try:
                # What was moved before may be a symlink, and lead anywhere.
                target = files.open_below(own, os.path.dirname(path), makes=True)
                _move(source, name, target)
            finally:
                for descriptor in filter(lambda one: one >= 0, (own, target)):
                    os.close(descriptor)
            if old is None or old.content is None:
                return False
            if stat.S_ISLNK(old.mode):
                os.symlink(old.content, os.fsencode(name), dir_fd=source)
            else:
                files.write_new(name, old.content, old.mode & files.PERMISSIONS, source)
            return True


def remove(path: str) -> None:
    """Remove a symlink or the like, of which nobody needs a copy. Raises OSError if that is not possible."""
    with files.Parent(path) as (directory, name):
        _make_writable(directory)
        os.unlink(name, dir_fd=directory)


def make_listable(directories: list[str]) -> bool:
    """Let the user list directories of theirs again. Returns whether that was possible."""
    try:
        for directory in directories:
            with files.Parent(directory) as (above, name):
                os.close(files.open_hidden_directory(above, name)[0])
    except OSError:
        return False
    return True


def _make_writable(directory: int) -> None:
    """An agent can keep things in a directory by taking away the right to write it."""
    mode = stat.S_IMODE(os.fstat(directory).st_mode)
    if mode & files.PRIVATE != files.PRIVATE:
        os.fchmod(directory, mode | files.PRIVATE)


def _move(directory: int, name: str, target: int) -> None:
    try:
        files.rename(directory, name, target, name, files.NO_REPLACE)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        files.copy_tree(directory, name, target)
        files.remove_tree(directory, name)
