"""Copies a tree to another file system as it is: modes, times, attributes, hard links, holes and what layers need.

Its shape is the choice of an agent. Nothing is followed, and what cannot be copied is an error rather than left out,
except sockets, which are nothing without their program.
"""

from __future__ import annotations

import os
import stat

from claudebox import files

DEEPEST = 200  # directories, each with two descriptors
TOO_DEEP = 40
WHITEOUT = 0  # the device by which a layer says that something is deleted


class Copying:
    """One copy, into a name that is free. It remembers files that have several names."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.links: dict[tuple[int, int], str] = {}

    def copy(self, source: int, name: str, target: int, path: str, depth: int = 0) -> None:
        """Copy `name` in the directory `source`. `path` is that of the copy, below where the copying began."""
        status = os.stat(name, dir_fd=source, follow_symlinks=False)
        new, kind = path.rpartition("/")[2], stat.S_IFMT(status.st_mode)
        if depth > DEEPEST:
            raise OSError(TOO_DEEP, f"directories are nested deeper than {DEEPEST}", name)
        if kind == stat.S_IFDIR:
            self._copy_directory(source, name, target, path, depth)
        elif kind == stat.S_IFREG:
            self._copy_file(source, name, target, path, status)
        elif kind == stat.S_IFLNK:
            os.symlink(os.readlink(name, dir_fd=source), new, dir_fd=target)
        elif kind == stat.S_IFIFO:
            os.mkfifo(new, stat.S_IMODE(status.st_mode), dir_fd=target)
        elif kind == stat.S_IFCHR and status.st_rdev == WHITEOUT:
            os.mknod(new, status.st_mode, WHITEOUT, dir_fd=target)
        elif kind != stat.S_IFSOCK:
            raise OSError(files.INVALID, "neither a file nor a directory", name)
        if kind in (stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO):
            os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns), dir_fd=target, follow_symlinks=False)
        if os.geteuid() == 0 and kind != stat.S_IFSOCK:
            os.chown(new, status.st_uid, status.st_gid, dir_fd=target, follow_symlinks=False)

    def _copy_directory(self, source: int, name: str, target: int, path: str, depth: int) -> None:
        new = path.rpartition("/")[2]
        here, mode = _open(source, name)
        try:
            os.mkdir(new, files.PRIVATE, dir_fd=target)
            there = os.open(new, files.DIRECTORY, dir_fd=target)
            try:
                for inner in os.listdir(here):
                    self.copy(here, inner, there, f"{path}/{inner}", depth + 1)
                _copy_attributes(here, there)
                os.fchmod(there, mode)
            finally:
                os.close(there)
        finally:
            if stat.S_IMODE(os.fstat(here).st_mode) != mode:
                os.fchmod(here, mode)
            os.close(here)

    def _copy_file(self, source: int, name: str, target: int, path: str, status: os.stat_result) -> None:
        new, identity = path.rpartition("/")[2], (status.st_dev, status.st_ino)
        if identity in self.links:
            os.link(self.links[identity], new, src_dir_fd=self.target, dst_dir_fd=target, follow_symlinks=False)
            return
        if status.st_nlink > 1:
            self.links[identity] = path
        here = files.open_hidden_file(source, name)
        try:
            there = os.open(new, files.NEW_FILE, files.PRIVATE, dir_fd=target)
            try:
                files.copy_content(here, there, status.st_size)
                _copy_attributes(here, there)
                os.fchmod(there, stat.S_IMODE(status.st_mode))
                os.utime(there, ns=(status.st_atime_ns, status.st_mtime_ns))
            finally:
                os.close(there)
        finally:
            os.close(here)


def _open(parent: int, name: str) -> tuple[int, int]:
    """Open a directory, and tell its mode, which changes only if nobody could read it otherwise."""
    try:
        here = os.open(name, files.DIRECTORY, dir_fd=parent)
    except PermissionError:
        return files.open_hidden_directory(parent, name)
    return here, stat.S_IMODE(os.fstat(here).st_mode)


def _copy_attributes(here: int, there: int) -> None:
    """Those of users: by some of them a layer says what it hides."""
    try:
        names = [name for name in os.listxattr(here) if name.startswith("user.")]
    except OSError:
        return  # this file system has none
    for name in names:
        os.setxattr(there, name, os.getxattr(here, name))
