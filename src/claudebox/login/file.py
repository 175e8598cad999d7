"""Reads a file with Claude's login, and replaces it without ever losing it or showing half of it."""

from __future__ import annotations

import os
import stat

from claudebox.login.form import dump, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST_FILE = 1 << 20
RESERVED = 8192  # bytes, more than new tokens need
PRIVATE = 0o600


def read(path: str) -> dict[str, Any] | None:
    """A JSON object. Anything else that a box may have put there is nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        content = os.read(descriptor, LARGEST_FILE + 1) if is_file else b""
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return parse(content) if len(content) <= LARGEST_FILE else None


def replace(path: str, credentials: dict[str, Any]) -> None:
    """Raises OSError, and leaves the file as it was then."""
    replacement = Replacement(path)
    try:
        replacement.put(credentials)
    finally:
        replacement.drop()


class Replacement:
    """A new file beside the old one, with room for what will be in it.

    A refresh token is good for one use. So whoever renews a login makes this before: a disk that turns out to be full
    afterwards would log the user out.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.temporary = f"{path}.{os.getpid()}.tmp"
        size = len(dump(read(path) or {})) + RESERVED
        try:
            os.unlink(self.temporary)
        except FileNotFoundError:
            pass
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = os.open(self.temporary, flags, PRIVATE)
        try:
            os.posix_fallocate(self.descriptor, 0, size)
        except OSError:
            self.drop()
            raise

    def put(self, credentials: dict[str, Any]) -> None:
        """In the place of the old one."""
        content = dump(credentials)
        written = 0
        while written < len(content):
            written += os.pwrite(self.descriptor, content[written:], written)
        os.ftruncate(self.descriptor, len(content))
        os.fsync(self.descriptor)
        _put_directory_aside(self.path)
        os.rename(self.temporary, self.path)

    def drop(self) -> None:
        if self.descriptor < 0:
            return
        os.close(self.descriptor)
        self.descriptor = -1
        try:
            os.unlink(self.temporary)
        except OSError:
            pass  # it is in its place


def _put_directory_aside(path: str) -> None:
    """A box may have made a directory where its login belongs, which no file can replace."""
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            os.rename(path, f"{path}.aside.{os.getpid()}")
    except OSError:
        pass
