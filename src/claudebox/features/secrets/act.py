"""Lets a box edit masked files: it gets decoys that it can write, and what it changes is brought back.

Every box holds a lock on each file that it masks or hides. Bringing something back replaces the file, and in another
box the mask would fall off: so it is done only if no other box has one there.
"""

from __future__ import annotations

import os

from claudebox.features.secrets import locks
from claudebox.features.table import load
from claudebox.model import FROM_HOST, HIDE, MASK, Mount, Plan
from claudebox.mounts import find_holder, is_layered
from claudebox.paths import move
from claudebox.problem import Problem
from claudebox.process.companion import Companion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PRIVATE_DIRECTORY, PRIVATE_FILE = 0o700, 0o600
RANDOM = 6  # bytes in the name of a directory
GIVEN = "-given-"  # in the name of a copy of what the box got, before the name of the file
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def beside(plan: Plan) -> tuple[Plan, Companion]:
    """Hold the masked files as long as the box lives, and lay out those that it may edit."""
    state = plan.state
    assert state is not None
    try:
        held = locks.open_lock(state.masks_lock())
        for identity in _covered(plan.mounts):
            locks.hold(held, identity)
        plan = plan.replace(mounts=_laid_out(plan.mounts, state.edited))
    except OSError as error:
        hint = "see whose it is, and whether the disk is full: df -h ~"
        raise Problem(f"cannot write below {state.all_projects()}: {error.strerror}", hint) from None
    return plan, Companion(held)


def _covered(mounts: tuple[Mount, ...]) -> list[tuple[int, int]]:
    """The files of the host that the box does not see, or not as they are."""
    shown = [mount for mount in mounts if mount.kind in FROM_HOST]
    found = [mount.identity for mount in mounts if mount.kind == MASK]
    for mount in mounts:
        holder = find_holder(mount.path, shown) if mount.kind == HIDE and not mount.is_dir else None
        if holder is not None:
            found.append(mount.identity or _identity(move(mount.path, holder.path, holder.source)))
    return [one for one in found if one is not None]


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _laid_out(mounts: tuple[Mount, ...], place: str) -> tuple[Mount, ...]:
    """Write each decoy that the box may edit into a file of its own. No two boxes share one."""
    direct = {mount.path for mount in mounts if mount.is_editable and not is_layered(mount.path, mounts)}
    if not direct:
        return mounts
    tell_of_left(place)
    directory = f"{place}/{os.getpid()}-{os.urandom(RANDOM).hex()}"
    os.makedirs(directory, PRIVATE_DIRECTORY)
    made = []
    for number, mount in enumerate(mounts):
        if mount.path in direct:
            mount = mount.replace(source=f"{directory}/{number}")
            _write(mount.source, mount.content, mount.mode | PRIVATE_FILE)
            _write(f"{directory}/{number}{GIVEN}{os.path.basename(mount.covers)[:100]}", mount.content, PRIVATE_FILE)
        made.append(mount)
    return tuple(made)


def _write(path: str, content: bytes, mode: int) -> None:
    descriptor = os.open(path, NEW_FILE, PRIVATE_FILE)
    try:
        os.write(descriptor, content)
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def tell_of_left(place: str) -> None:
    """Say which masked files were edited in boxes that nobody brought anything back from: they were ended by force."""
    try:
        left = [name for name in sorted(os.listdir(place)) if _is_left(place, name)]
    except OSError:
        return  # no box has edited anything yet
    for name in left:
        load("secrets.bringing", "keep_left")(f"{place}/{name}", GIVEN)


def _is_left(place: str, name: str) -> bool:
    """Whether it is the directory of a box whose claudebox is gone."""
    process, _, rest = name.partition("-")
    is_ours = process.isdecimal() and len(rest) == 2 * RANDOM and os.path.isdir(f"{place}/{name}")
    return is_ours and not os.path.exists(f"/proc/{process}")


def after(plan: Plan) -> Callable[[bool], None]:
    """Load what is needed later now: the agent might be at work on this very program."""
    bring_back = load("secrets.bringing", "bring_back")
    return lambda _: bring_back(plan)
