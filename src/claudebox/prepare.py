"""Writes the state of a project before its box starts.

The agent can write in a part of it, so nothing here follows a symlink there: names are relative to an open directory,
and files are replaced by rename.
"""

from __future__ import annotations

import os
import stat

from claudebox.model import Preparation
from claudebox.problem import Problem, quote

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600


def prepare(preparations: tuple[Preparation, ...]) -> None:
    for preparation in preparations:
        try:
            _prepare(preparation)
        except OSError as error:
            directory = quote(os.path.dirname(preparation.path))
            raise Problem(
                f"cannot write {preparation.path}: {error.strerror}",
                f"see whose it is, and whether the disk is full:\n      ls -ld {directory}\n      df -h {directory}",
            ) from None


def _prepare(preparation: Preparation) -> None:
    directory, name = os.path.split(preparation.path)
    if preparation.kind == Preparation.DIRECTORY:
        _make_parents(directory)
    parent = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if preparation.kind == Preparation.USED:
            os.utime(name, dir_fd=parent, follow_symlinks=False)
        elif preparation.kind == Preparation.FILE:
            _write(parent, name, _with_others(parent, preparation))
        elif preparation.kind == Preparation.LINK:
            _link(parent, name, preparation.content)
        else:
            _ensure(parent, name, is_directory=preparation.kind == Preparation.DIRECTORY)
    finally:
        os.close(parent)


def _make_parents(directory: str) -> None:
    """Make directories like `os.makedirs`, which would leave all but the last open to other users."""
    if not os.path.isdir(directory):
        _make_parents(os.path.dirname(directory))
        try:
            os.mkdir(directory, PRIVATE_DIRECTORY)
        except FileExistsError:
            pass  # another box is starting


def _ensure(parent: int, name: str, *, is_directory: bool) -> None:
    """Make a directory or a file of that name. Anything of another kind, such as a symlink, is moved out of the way."""
    try:
        mode = os.lstat(name, dir_fd=parent).st_mode
    except FileNotFoundError:
        pass
    else:
        if (stat.S_ISDIR if is_directory else stat.S_ISREG)(mode):
            if is_directory and mode & PRIVATE_DIRECTORY != PRIVATE_DIRECTORY:
                _open_up(parent, name)
            return
        os.rename(name, f"{name}.aside.{os.getpid()}", src_dir_fd=parent, dst_dir_fd=parent)
    try:
        if is_directory:
            os.mkdir(name, PRIVATE_DIRECTORY, dir_fd=parent)
        else:
            os.close(_create(parent, name))
    except FileExistsError:
        pass  # another box of this project is starting


def _open_up(parent: int, name: str) -> None:
    """Give a directory the mode back that an agent took from it, or no box of its project would start again."""
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{handle}", PRIVATE_DIRECTORY)
    finally:
        os.close(handle)


def _link(parent: int, name: str, target: bytes) -> None:
    try:
        os.symlink(target, os.fsencode(name), dir_fd=parent)
    except FileExistsError:
        pass


def _create(parent: int, name: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, flags, PRIVATE_FILE, dir_fd=parent)


def _write(parent: int, name: str, content: bytes) -> None:
    if _has(parent, name, content):
        return
    temporary = f".{name}.{os.getpid()}"
    descriptor = _create(parent, temporary)
    try:
        try:
            written = os.write(descriptor, content)
            if written != len(content):
                raise OSError(0, "the disk is full")
        finally:
            os.close(descriptor)
        _put_in_place(parent, temporary, name, content)
    except OSError:
        os.unlink(temporary, dir_fd=parent)
        raise


def _put_in_place(parent: int, temporary: str, name: str, content: bytes) -> None:
    """Give the file its name, unless another box wrote the same at this moment: that file may be mounted already.

    An agent may have put a symlink in the place of the temporary file: the symlink gets the name, not what it leads to.
    """
    try:
        os.link(temporary, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    except OSError:  # something is there, or the file system has no links
        if not _has(parent, name, content):
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            return
    os.unlink(temporary, dir_fd=parent)


def _with_others(parent: int, preparation: Preparation) -> bytes:
    """The content, with the lines that another box of the project has added since this one was planned.

    The lock is held until the directory is closed, that is until the file is written.
    """
    before, content = preparation.before, preparation.content
    if before is None:
        return content
    import fcntl

    fcntl.flock(parent, fcntl.LOCK_EX)
    there = _read(parent, os.path.basename(preparation.path))
    if there in (None, before, content):
        return content
    first, *lines = content.split(b"\n")
    others = (there or b"").split(b"\n")
    if others[0] != first or others[-2:] != lines[-2:]:
        raise OSError(0, "another box has left something else there; try again")
    known = {*before.split(b"\n"), *lines}
    return b"\n".join([first, *lines[:-2], *(line for line in others[1:] if line not in known), *lines[-2:]])


def _read(parent: int, name: str) -> bytes | None:
    """A plain file as a whole; None if there is none."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(descriptor)
        return os.read(descriptor, status.st_size) if stat.S_ISREG(status.st_mode) else b""
    finally:
        os.close(descriptor)


def _has(parent: int, name: str, content: bytes) -> bool:
    """Whether the file has this content already: most launches change nothing."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return False
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return is_file and os.read(descriptor, len(content) + 1) == content
    finally:
        os.close(descriptor)
