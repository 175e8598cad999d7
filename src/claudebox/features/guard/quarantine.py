"""Moves what a box has left out of the project, and puts back what was there before.

Nothing here follows a symlink: another box may be at work in the same place.
"""

from __future__ import annotations

import os

from claudebox.record import Record

PRIVATE = 0o700
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
UNREADABLE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_EXISTS, CROSS_DEVICE = 17, 18


class Old(Record):
    """A file as it was before the box."""

    content: bytes
    mode: int


class Quarantine:
    """A new directory in the project's state, where no box sees it."""

    def __init__(self, place: str) -> None:
        number = 1
        while os.path.lexists(f"{place}/{number}"):
            number += 1
        self.directory = f"{place}/{number}"
        os.makedirs(self.directory, mode=PRIVATE)

    def take(self, root: str, name: str, old: Old | None) -> None:
        """Move something from below a directory of the user. Raises OSError if it cannot be moved."""
        parent, _, last = name.rpartition("/")
        source = _open_below(root, parent)
        # What was moved before may be a symlink, and lead anywhere.
        target = _open_below(self.directory, parent, makes=True)
        try:
            if last in os.listdir(target):
                raise FileExistsError(FILE_EXISTS, "something of this name was moved already")
            _make_writable(source)
            _move(source, last, target)
            if old is not None:
                _put_back(source, last, old)
        finally:
            os.close(source)
            os.close(target)


def remove(path: str) -> None:
    """Remove something of which nobody needs a copy. Raises OSError if that is not possible."""
    parent, _, last = path.rpartition("/")
    directory = _open_below("/", parent)
    try:
        _make_writable(directory)
        _remove(directory, last)
    finally:
        os.close(directory)


def make_listable(path: str) -> None:
    """Let the user list a directory of theirs again. Raises OSError if that is not possible."""
    parent, _, last = path.rpartition("/")
    above = _open_below("/", parent)
    try:
        directory = os.open(last, UNREADABLE, dir_fd=above)
    finally:
        os.close(above)
    try:
        # A descriptor of what cannot be read takes no change of its mode, but its name in /proc does.
        os.chmod(f"/proc/self/fd/{directory}", os.fstat(directory).st_mode & 0o777 | PRIVATE)
    finally:
        os.close(directory)


def _make_writable(directory: int) -> None:
    """An agent can keep things in a directory by taking away the right to write it."""
    mode = os.fstat(directory).st_mode & 0o7777
    if mode & PRIVATE != PRIVATE:
        os.fchmod(directory, mode | PRIVATE)


def _open_below(root: str, path: str, *, makes: bool = False) -> int:
    """Open a directory, entering it name by name, so that none of them is a symlink."""
    here = os.open(root, DIRECTORY)
    for name in filter(None, path.split("/")):
        try:
            if makes and name not in os.listdir(here):
                os.mkdir(name, PRIVATE, dir_fd=here)
            below = os.open(name, DIRECTORY, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


def _move(directory: int, name: str, target: int) -> None:
    try:
        os.rename(name, name, src_dir_fd=directory, dst_dir_fd=target)
    except OSError as error:
        if error.errno != CROSS_DEVICE:
            raise
        _copy(directory, name, target)
        _remove(directory, name)


def _copy(directory: int, name: str, target: int) -> None:
    """Copy to another file system, which a rename cannot reach."""
    import stat

    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(name, dir_fd=directory), name, dir_fd=target)
    elif stat.S_ISDIR(status.st_mode):
        os.mkdir(name, PRIVATE, dir_fd=target)
        inner, copied = os.open(name, DIRECTORY, dir_fd=directory), os.open(name, DIRECTORY, dir_fd=target)
        for one in os.listdir(inner):
            _copy(inner, one, copied)
        os.close(inner)
        os.close(copied)
    elif stat.S_ISREG(status.st_mode):
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        with open(source, "rb") as read, open(os.open(name, NEW_FILE, PRIVATE, dir_fd=target), "wb") as written:
            while piece := read.read(1 << 20):
                written.write(piece)
            os.fchmod(written.fileno(), stat.S_IMODE(status.st_mode) & 0o777)


def _remove(directory: int, name: str) -> None:
    import shutil
    import stat

    if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
        shutil.rmtree(name, dir_fd=directory)
    else:
        os.unlink(name, dir_fd=directory)


def _put_back(directory: int, name: str, old: Old) -> None:
    import stat

    if stat.S_ISLNK(old.mode):
        os.symlink(old.content, os.fsencode(name), dir_fd=directory)
        return
    descriptor = os.open(name, NEW_FILE, old.mode & 0o777, dir_fd=directory)
    with open(descriptor, "wb") as file:
        file.write(old.content)
        os.fchmod(descriptor, old.mode & 0o777)
