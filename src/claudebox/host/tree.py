"""Reads the host's files, and never writes them.

A Tree has a root, so that tests can give the features a made-up distribution. Every path, given or returned, is
absolute as seen from that root, and symlinks are followed inside it.
"""

from __future__ import annotations

import os
import stat
import sys

from claudebox.errors import Problem, quote

MOST_LINKS = 40
PIECE_BYTES = 4096
OTHERS_CAN_WRITE = 0o002  # in a mode
# A path may come from a file that an agent wrote: with a zero byte in it, or a character that no file name can have,
# Python raises a ValueError, and there is no such file.
UNREADABLE = (OSError, ValueError)
ABSENT = (FileNotFoundError, NotADirectoryError, ValueError)


class Tree:
    """Files below a root directory."""

    def __init__(self, root: str = "") -> None:
        self.root = root.rstrip("/")
        self._plain: set[str] = set()  # directories known not to be symlinks
        self._seen: dict[str, os.stat_result | None] = {}

    def lstat(self, path: str) -> os.stat_result | None:
        """The status of a path. Each path is looked up once, so that all features see the same."""
        if path not in self._seen:
            try:
                self._seen[path] = os.lstat(self.root + path)
            except UNREADABLE:
                self._seen[path] = None
        return self._seen[path]

    def lstat_anew(self, path: str) -> os.stat_result | None:
        """The status of a path as it is now, which counts from now on."""
        self._seen.pop(path, None)
        return self.lstat(path)

    def lacks(self, path: str) -> bool:
        """Whether nothing is there. Unlike `lstat`, this is false if it cannot be found out."""
        try:
            os.lstat(self.root + path)
        except UNREADABLE as error:
            return isinstance(error, ABSENT)
        return False

    def is_link(self, path: str) -> bool:
        status = self.lstat(path)
        return status is not None and stat.S_ISLNK(status.st_mode)

    def link_target(self, path: str) -> str:
        """What a symlink says; "" if it was removed meanwhile."""
        try:
            return os.readlink(self.root + path)
        except UNREADABLE:
            return ""

    def exists(self, path: str) -> bool:
        return self.resolve(path) is not None

    def is_plain_directory(self, path: str) -> bool:
        """Whether it is a directory, and not a symlink to one."""
        status = self.lstat(path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def is_dir(self, path: str) -> bool:
        status = self.status(path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def is_file(self, path: str) -> bool:
        status = self.status(path)
        return status is not None and stat.S_ISREG(status.st_mode)

    def is_executable(self, path: str) -> bool:
        status = self.status(path)
        return status is not None and stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o111)

    def is_writable(self, path: str) -> bool:
        """Whether this process can make something there."""
        return os.access(self.root + path, os.W_OK)

    def status(self, path: str) -> os.stat_result | None:
        """The status of the file itself, behind all symlinks."""
        real = self.resolve(path)
        return None if real is None else self.lstat(real)

    def resolve(self, path: str) -> str | None:
        """The real path, or None if it does not exist or its symlinks loop."""
        directory, _, name = path.rpartition("/")
        if directory in self._plain and name not in ("", ".", ".."):
            # This is the short way: most paths are in a directory that is known already.
            status = self.lstat(path)
            if status is None:
                return None
            if not stat.S_ISLNK(status.st_mode):
                return path
        real, _ = self.follow(path)
        return real

    def links(self, path: str) -> tuple[tuple[str, str], ...]:
        """The symlinks on the way to the real path, each with its target."""
        _, met = self.follow(path)
        return met

    def destination(self, path: str) -> str | None:
        """Like `resolve`, but what is missing on the way counts as the directory that somebody may make there."""
        return self.follow(path, beyond_missing=True)[0]

    def follow(self, path: str, *, beyond_missing: bool = False) -> tuple[str | None, tuple[tuple[str, str], ...]]:
        """The real path, as by `resolve`, and the symlinks on the way to it, as by `links`."""
        met: list[tuple[str, str]] = []
        waiting = [part for part in path.split("/") if part and part != "."][::-1]
        here = ""
        while waiting:
            part = waiting.pop()
            if part == "..":
                here = here.rpartition("/")[0]
                continue
            here = f"{here}/{part}"
            if here in self._plain:
                continue
            status = self.lstat(here)
            if status is None:
                if beyond_missing:
                    continue
                return None, tuple(met)
            if stat.S_ISLNK(status.st_mode):
                if len(met) == MOST_LINKS:
                    return None, tuple(met)
                target = self.link_target(here)
                met.append((here, target))
                waiting += [piece for piece in target.split("/") if piece and piece != "."][::-1]
                here = "" if target.startswith("/") else here.rpartition("/")[0]
            elif stat.S_ISDIR(status.st_mode):
                self._plain.add(here)
            elif waiting and not beyond_missing:
                return None, tuple(met)
        if beyond_missing:
            return here or "/", tuple(met)
        if path.endswith(("/", "/.")) and here and here not in self._plain:
            return None, tuple(met)  # the path asks for a directory, and this is none
        return here or "/", tuple(met)

    def read(self, path: str, limit: int = 1 << 20) -> bytes | None:
        """The first `limit` bytes of a regular file."""
        real = self.resolve(path)
        return None if real is None else self.read_plain(real, limit)

    def read_plain(self, path: str, limit: int = 1 << 20, inode: int = 0) -> bytes | None:
        """Like `read`, but never through a symlink: for what the agent may have put there.

        With an inode, only that file is read, at that very path, and none that has taken its place: an agent can put a
        symlink in the place of a directory above, and take it away before somebody looks.
        """
        try:
            return self._read(path, limit, inode)
        except UNREADABLE:
            return None

    def _read(self, path: str, limit: int, inode: int = 0) -> bytes | None:
        # Opening a FIFO must not block, and opening a device must not do anything.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(self.root + path, flags)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or inode not in (0, status.st_ino):
                return None
            if inode and os.readlink(f"/proc/self/fd/{descriptor}") != self.root + path:
                return None
            return os.read(descriptor, min(limit, status.st_size)) if status.st_size else _read_all(descriptor, limit)
        finally:
            os.close(descriptor)

    def content(self, path: str, limit: int = 1 << 20) -> bytes | None:
        """Like `read`, for what decides about a protection: None means that nothing is there, and nothing else.

        Raises a Problem if something is there and cannot be read. An agent in another box can take away the right to
        read, make a symlink that leads to itself, or hold a lease, for which a non-blocking open does not wait.
        """
        real = self.resolve(path)
        if real is None:
            self.check_lack(path)
            return None
        try:
            content = self._read(real, limit)
        except ABSENT:
            return None
        except OSError as error:
            raise self._unreadable(path, error) from None
        if content is None:
            raise Problem(f"{path} has to be a file, and is none", f"mv {quote(path)} {quote(path)}.aside")
        return content

    def names(self, path: str) -> list[str]:
        """Like `entries`, for what decides about a protection: raises a Problem if what is there cannot be searched."""
        try:
            names = os.listdir(self.root + path)
            os.lstat(f"{self.root}{path}/.")  # fails in a directory that can be listed, but not searched
        except ABSENT:
            return []
        except OSError as error:
            raise self._unreadable(path, error) from None
        return sorted(names)

    def check_lack(self, path: str) -> None:
        """Raise a Problem unless it is certain that nothing is there, behind all symlinks."""
        place = self.destination(path)
        if place is None:
            raise Problem(f"{path} is a symlink that leads in a circle", f"rm {quote(path)}")
        try:
            os.lstat(self.root + place)
        except ABSENT:
            return
        except OSError as error:
            raise self._unreadable(path, error) from None

    def _unreadable(self, path: str, error: OSError) -> Problem:
        """Why nothing is started, and the command that mends it."""
        if isinstance(error, BlockingIOError):
            message = f"{path} cannot be read: a program has a lease on it, perhaps in another box"
            return Problem(message, f"end that program; to find it: fuser -v {quote(path)}")
        if not isinstance(error, PermissionError):
            return Problem(f"{path} cannot be read: {error.strerror}", f"ls -ld {quote(path)}")
        closed = path
        while not self.exists(closed):  # a directory above keeps everybody out
            closed = closed.rpartition("/")[0]
        return Problem(f"{path} cannot be read, and decides what is protected", f"chmod u+rwX {quote(closed)}")

    def text(self, path: str) -> str | None:
        """A file as text; bytes that are not UTF-8 survive as surrogates."""
        content = self.read(path)
        return None if content is None else os.fsdecode(content)

    def entries(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self.root + path))
        except UNREADABLE:
            return []

    def has_capabilities(self, path: str) -> bool:
        """Whether the file gains privileges through file capabilities."""
        try:
            return bool(os.getxattr(self.root + path, "security.capability"))
        except UNREADABLE:
            return False


def _read_all(descriptor: int, limit: int) -> bytes:
    """Read a file whose size is 0, as all of /proc have it: they give their content in pieces."""
    content = b""
    while len(content) < limit and (piece := os.read(descriptor, PIECE_BYTES)):
        content += piece
    return content[:limit]


def sha256(data: bytes) -> str:
    """The digest in hexadecimal. `hashlib` would load all of OpenSSL, which takes longer than most of a launch."""
    try:
        if sys.version_info >= (3, 12):
            from _sha2 import sha256 as digest  # type: ignore[import-not-found]
        else:
            from _sha256 import sha256 as digest  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256 as digest
    return str(digest(data).hexdigest())
