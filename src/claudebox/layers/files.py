"""Touches files by descriptors of their directories, so that no name on the way can be a symlink.

What a box has left is hostile: names, kinds, modes and depth are its choice. And another box may be at work in the same
project: whatever was looked at may be something else a moment later. So nothing here takes a path of several names,
nothing is followed, and nothing is opened that could block.
"""

from __future__ import annotations

import os
import stat

from claudebox.process.isolation import c_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PRIVATE = 0o700
PERMISSIONS = 0o777
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
NAME_ONLY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
PIECE = 1 << 20
SMALL = 1 << 16  # bytes: a file that is copied in one piece, holes or not

# renameat2
NO_REPLACE, EXCHANGE = 1, 2
INVALID, NO_SUCH_CALL, NO_SUCH_DATA, EXISTS, NOT_PERMITTED = 22, 38, 6, 17, 13


def open_below(root: int, path: str) -> int:
    """Open a directory, entering it name by name. It has to be on the same file system as the root."""
    here = os.dup(root)
    device = os.fstat(root).st_dev
    for name in filter(None, path.split("/")):
        try:
            below = os.open(name, DIRECTORY, dir_fd=here)
        finally:
            os.close(here)
        here = below
        if os.fstat(here).st_dev != device:
            os.close(here)
            raise OSError(INVALID, "another file system is mounted there")
    return here


def lstat(parent: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def open_hidden_directory(parent: int, name: str) -> tuple[int, int]:
    """Open a directory of a layer even if its mode forbids it. Returns a descriptor, and the mode to give back."""
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    mode = stat.S_IMODE(status.st_mode)
    if mode & PRIVATE == PRIVATE:
        return os.open(name, DIRECTORY, dir_fd=parent), mode
    change_mode(parent, name, mode | PRIVATE)
    return os.open(name, DIRECTORY, dir_fd=parent), mode


def open_hidden_file(parent: int, name: str) -> int:
    """Open a regular file of a layer for reading, even if its mode forbids it."""
    try:
        descriptor = os.open(name, READ, dir_fd=parent)
    except PermissionError:
        mode = stat.S_IMODE(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        change_mode(parent, name, mode | stat.S_IRUSR)
        try:
            descriptor = os.open(name, READ, dir_fd=parent)
        finally:
            change_mode(parent, name, mode)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(INVALID, "not a regular file")
    return descriptor


def change_mode(parent: int, name: str, mode: int) -> None:
    """Change a mode, never through a symlink: the kernel has no call for that, but /proc has a way."""
    handle = os.open(name, NAME_ONLY, dir_fd=parent)
    try:
        if not stat.S_ISLNK(os.fstat(handle).st_mode):
            os.chmod(f"/proc/self/fd/{handle}", mode)
    finally:
        os.close(handle)


def rename(from_directory: int, from_name: str, to_directory: int, to_name: str, flags: int) -> None:
    """Rename, without replacing what is there, or by exchanging both. File systems that know neither get two steps."""
    call = _function("renameat2")
    if call is not None:
        words = os.fsencode(from_name) + b"\0", os.fsencode(to_name) + b"\0"
        if call(from_directory, words[0], to_directory, words[1], flags) == 0:
            return
    # The call has no errno here. The plain one tells what is wrong, if it is not the flags.
    _rename_plainly(from_directory, from_name, to_directory, to_name, flags)


_found: dict[str, Callable[..., int] | None] = {}


def _function(name: str) -> Callable[..., int] | None:
    """A function of the C library, looked for once: a landing calls it ten thousand times."""
    if name not in _found:
        _found[name] = c_function(name)
    return _found[name]


def _rename_plainly(from_directory: int, from_name: str, to_directory: int, to_name: str, flags: int) -> None:
    if flags == NO_REPLACE:
        if lstat(to_directory, to_name) is not None:
            raise FileExistsError(EXISTS, "something is there already")
        os.rename(from_name, to_name, src_dir_fd=from_directory, dst_dir_fd=to_directory)
        return
    aside = f".{from_name}.aside"
    os.rename(to_name, aside, src_dir_fd=to_directory, dst_dir_fd=from_directory)
    try:
        os.rename(from_name, to_name, src_dir_fd=from_directory, dst_dir_fd=to_directory)
    except OSError:
        os.rename(aside, to_name, src_dir_fd=from_directory, dst_dir_fd=to_directory)
        raise
    os.rename(aside, from_name, src_dir_fd=from_directory, dst_dir_fd=from_directory)


def copy_content(source: int, target: int, size: int) -> None:
    """Copy a file without filling its holes: a file of a terabyte may have no content at all."""
    if size <= SMALL and len(content := os.read(source, SMALL + 1)) == size:
        write_all(target, content)
        return
    for start, end in _pieces_with_data(source, size):
        os.lseek(source, start, os.SEEK_SET)
        os.lseek(target, start, os.SEEK_SET)
        while start < end:
            moved = _move_some(source, target, end - start)
            if moved == 0:
                break
            start += moved
    os.ftruncate(target, size)


def _pieces_with_data(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    position = 0
    while position < size:
        try:
            start = os.lseek(descriptor, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == NO_SUCH_DATA:
                return
            yield position, size  # this file system knows of no holes
            return
        position = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, position


def _move_some(source: int, target: int, amount: int) -> int:
    try:
        return os.copy_file_range(source, target, amount)
    except OSError as error:
        if error.errno not in (INVALID, NO_SUCH_CALL, 18, 95):  # EXDEV and EOPNOTSUPP: between file systems
            raise
    piece = os.read(source, min(amount, PIECE))
    write_all(target, piece)
    return len(piece)


def write_all(target: int, content: bytes) -> None:
    written = os.write(target, content)
    while written < len(content):
        written += os.write(target, memoryview(content)[written:])


class Directories:
    """Opens the directories of one tree, and keeps the last one open: changes come in the order of a walk."""

    def __init__(self, root: int, *, is_layers: bool = False) -> None:
        self.root = root
        self.is_layers = is_layers
        self.path = ""
        self.descriptor = -1

    def open(self, path: str) -> int:
        if self.descriptor < 0 or path != self.path:
            self.close()
            self.descriptor = self._open_in_layer(path) if self.is_layers else open_below(self.root, path)
            self.path = path
        return self.descriptor

    def _open_in_layer(self, path: str) -> int:
        here = os.dup(self.root)
        for name in filter(None, path.split("/")):
            try:
                below, _ = open_hidden_directory(here, name)
            finally:
                os.close(here)
            here = below
        return here

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


def remove_path(path: str) -> None:
    """Remove what has this path, if anything has, in a directory into which no box can put something else."""
    parent, name = os.path.split(path)
    if os.path.lexists(path):
        here = os.open(parent, DIRECTORY)
        try:
            remove_tree(here, name)
        finally:
            os.close(here)


def remove_tree(parent: int, name: str) -> None:
    """Remove a directory with all in it, whatever its modes and however deep it is.

    Directories are moved up before they are emptied: a box can nest them deeper than any stack or descriptor table. If
    somebody was ended while doing that, those lie beside it, or beside where it was, and go as well.
    """
    moved = f".{name}."
    waiting = [name, *(one for one in os.listdir(parent) if one.startswith(moved) and one[len(moved) :].isdecimal())]
    number = 0
    while waiting:
        current = waiting.pop()
        status = lstat(parent, current)
        if status is None:
            continue
        if not stat.S_ISDIR(status.st_mode):
            os.unlink(current, dir_fd=parent)
            continue
        change_mode(parent, current, PRIVATE)
        here = os.open(current, DIRECTORY, dir_fd=parent)
        try:
            for inner in os.listdir(here):
                if not stat.S_ISDIR(os.stat(inner, dir_fd=here, follow_symlinks=False).st_mode):
                    os.unlink(inner, dir_fd=here)
                    continue
                change_mode(here, inner, PRIVATE)
                number += 1
                while lstat(parent, f"{moved}{number}") is not None:
                    number += 1
                os.rename(inner, f"{moved}{number}", src_dir_fd=here, dst_dir_fd=parent)
                waiting.append(f"{moved}{number}")
        finally:
            os.close(here)
        os.rmdir(current, dir_fd=parent)


def mount_number(descriptor: int) -> str:
    """The number of the mount that a descriptor belongs to: between two of them nothing can be renamed."""
    with open(f"/proc/self/fdinfo/{descriptor}") as file:
        return next((line.split()[1] for line in file if line.startswith("mnt_id:")), "")
