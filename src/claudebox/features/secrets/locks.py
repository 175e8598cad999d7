"""Locks on the files that boxes mask, by their inodes, in one file for all boxes of a user."""

from __future__ import annotations

import fcntl
import os
import struct

from claudebox.state import Instance

SET_LOCK = 37  # F_OFD_SETLK: the lock belongs to whoever has the descriptor, also after a fork
SHARED, ALONE, NONE = 0, 1, 2
FORM = "@hhqqi"  # struct flock: kind, whence, start, length, process
LAST = (1 << 62) - 1


def open_lock(path: str) -> int:
    # A FIFO, to which nobody ever writes: whoever waits for something else beside it never takes it for readable.
    try:
        os.mkfifo(path, 0o600)
    except FileExistsError:
        pass
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)


def hold(descriptor: int, identity: tuple[int, int]) -> None:
    """Say that a box masks this file. If somebody replaces it at this moment, the box cannot start."""
    _lock(descriptor, identity, SHARED)


def take(descriptor: int, identity: tuple[int, int]) -> bool:
    """Take the file for oneself. False if a box masks it."""
    try:
        _lock(descriptor, identity, ALONE)
    except BlockingIOError:
        return False
    return True


def take_all(state: Instance, identities: list[tuple[int, int]]) -> int | None:
    """Take these files for oneself: a descriptor that holds them, -1 if there are none, None if a box masks one."""
    if not identities:
        return -1
    descriptor = open_lock(state.masks_lock())
    if all(take(descriptor, identity) for identity in identities):
        return descriptor
    os.close(descriptor)
    return None


def _lock(descriptor: int, identity: tuple[int, int], kind: int) -> None:
    device, inode = identity
    fcntl.fcntl(descriptor, SET_LOCK, struct.pack(FORM, kind, os.SEEK_SET, (inode ^ (device << 40)) & LAST, 1, 0))
