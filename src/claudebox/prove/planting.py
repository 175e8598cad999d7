"""System calls that plant a canary where Python has no function for it."""

from __future__ import annotations

import ctypes
import os

ADD_KEY = {"x86_64": 248, "aarch64": 217}
KEYCTL = {"x86_64": 250, "aarch64": 219}
USER_KEYRING = -4
REVOKE = 3
SET_PERMISSIONS = 5
EVERYTHING_FOR_THE_USER = 0x3F3F0000
CREATE_PRIVATELY = 0o1600
REMOVE = 0
SEGMENT_SIZE = 4096


def add_key(name: str, canary: str) -> int:
    """The number of a key in the user's keyring, or something negative."""
    text = canary.encode()
    number = ADD_KEY.get(os.uname().machine, -1)
    key = int(_library().syscall(number, b"user", name.encode(), text, len(text), USER_KEYRING))
    _library().syscall(KEYCTL.get(os.uname().machine, -1), SET_PERMISSIONS, key, EVERYTHING_FOR_THE_USER)
    return key


def forget_key(key: int) -> None:
    _library().syscall(KEYCTL[os.uname().machine], REVOKE, key)


def make_segment(key: int, canary: str) -> int:
    """Shared memory by the name of System V, which knows no directories."""
    library = _library()
    segment = int(library.shmget(key, SEGMENT_SIZE, CREATE_PRIVATELY))
    if segment >= 0:
        library.shmat.restype = ctypes.c_void_p
        address = library.shmat(segment, None, 0)
        text = canary.encode()
        ctypes.memmove(address, text, len(text))
        library.shmdt(ctypes.c_void_p(address))
    return segment


def remove_segment(segment: int) -> None:
    _library().shmctl(segment, REMOVE, None)


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
