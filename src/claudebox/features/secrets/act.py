"""Lays out the decoys of a box as files in the project's state, as long as the box lives.

bwrap could make them from memory, as in the command that `--dry-run` shows. But it unlinks such a file, the kernel then
calls its path "deleted", and Claude Code refuses to read a file whose real path it cannot tell.
"""

from __future__ import annotations

import os

from claudebox.layers import files
from claudebox.model import MASK, Mount, Plan
from claudebox.problem import Problem
from claudebox.process.lifetime import Companion

LOCK = "lock"  # held by each box of the project: what lies beside it without one, a box that was killed has left


def beside(plan: Plan) -> tuple[Plan, Companion]:
    """Write each decoy into a file that the box sees read-only in the place of the real one."""
    assert plan.state is not None
    directory = f"{plan.state.masks}/{os.urandom(8).hex()}"
    try:
        os.makedirs(plan.state.masks, files.PRIVATE, exist_ok=True)
        held = _hold(plan.state.masks)
        os.mkdir(directory, files.PRIVATE)
        mounts = tuple(
            _laid_out(mount, f"{directory}/{number}") if mount.kind == MASK else mount
            for number, mount in enumerate(plan.mounts)
        )
    except OSError as error:
        hint = "see whose it is, and whether the disk is full: df -h ~"
        raise Problem(f"cannot write {plan.state.masks}: {error.strerror}", hint) from None
    return plan.replace(mounts=mounts), Companion(
        life=held, require_ready=lambda _: None, why_ended=lambda: None, clear=lambda: _remove(directory)
    )


def _hold(place: str) -> int:
    """Take the lock together with the other boxes of the project. Whoever is alone first removes what is left."""
    import fcntl

    try:
        # A FIFO to which nobody ever writes: to those who wait for the end of the box, it never becomes readable.
        os.mkfifo(f"{place}/{LOCK}", 0o600)
    except FileExistsError:
        pass
    held = os.open(f"{place}/{LOCK}", os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass
    else:
        for name in os.listdir(place):
            if name != LOCK:
                _remove(f"{place}/{name}")
    fcntl.flock(held, fcntl.LOCK_SH)
    return held


def _laid_out(mask: Mount, path: str) -> Mount:
    descriptor = os.open(path, files.NEW_FILE, 0o600)
    try:
        files.write_all(descriptor, mask.content)
        os.fchmod(descriptor, mask.mode)
    finally:
        os.close(descriptor)
    return mask.replace(source=path)


def _remove(path: str) -> None:
    try:
        files.remove_path(path)
    except OSError:
        pass  # the next box of the project tries again
