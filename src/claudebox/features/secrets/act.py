"""Lays out the decoys of a box as files in the project's state, as long as the box lives.

bwrap could make them from memory, as in the command that `--dry-run` shows. But it unlinks such a file, the kernel then
calls its path "deleted", and Claude Code refuses to read a file whose real path it cannot tell.
"""

from __future__ import annotations

import os

from claudebox import files
from claudebox.model import MASK, Mount, Plan
from claudebox.problem import Problem
from claudebox.process.companion import Companion

LOCK = "lock"  # held by each box of the project: what lies beside it without one, a box that was killed has left


def beside(plan: Plan) -> tuple[Plan, Companion]:
    """Write each decoy into a file that the box sees read-only in the place of the real one."""
    assert plan.state is not None
    directory = f"{plan.state.masks}/{os.urandom(8).hex()}"
    try:
        files.make_private(plan.state.masks)
        os.close(os.open(plan.state.masks, files.DIRECTORY))  # which fails if it is a symlink
        held = _hold(plan.state.masks)
        os.mkdir(directory, files.PRIVATE)
        mounts = tuple(
            _laid_out(mount, f"{directory}/{number}") if mount.kind == MASK else mount
            for number, mount in enumerate(plan.mounts)
        )
    except OSError as error:
        hint = "see whose it is, and whether the disk is full: df -h ~"
        raise Problem(f"cannot write {plan.state.masks}: {error.strerror}", hint) from None
    return plan.replace(mounts=mounts), Companion(held, clean_up=lambda: _remove(directory))


def _hold(place: str) -> int:
    """Take the lock together with the other boxes of the project. Whoever is alone first removes what is left."""
    held = files.open_lock(f"{place}/{LOCK}")
    if files.take_lock(held):
        for name in os.listdir(place):
            if name != LOCK:
                _remove(f"{place}/{name}")
    files.take_lock(held, is_shared=True, waits=True)
    return held


def _laid_out(mask: Mount, path: str) -> Mount:
    files.write_new(path, mask.content, mask.mode)
    return mask.replace(source=path)


def _remove(path: str) -> None:
    try:
        files.remove_path(path)
    except OSError:
        pass  # the next box of the project tries again
