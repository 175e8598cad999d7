"""Lays the host's caches under the project's own, for `--cache host`.

This is done by the process that becomes bwrap, in a mount namespace of its own: an overlay shows the host's files, and
keeps what the box writes in the state of the project. One box of a project at a time can do so, since the kernel
allows a directory of changes to be used once.
"""

from __future__ import annotations

import os

from claudebox.features.caches.decide import PLACE
from claudebox.layers.files import DIRECTORY, open_below
from claudebox.model import Plan, Step
from claudebox.problem import Problem
from claudebox.process.companion import Companion
from claudebox.process.isolation import c_function
from claudebox.state import CACHE_LOCK
from claudebox.terminal import say

PRIVATE = 0o700


def beside(plan: Plan) -> tuple[Plan, Companion]:
    """Hold the place for changes as long as the box lives. If another box has it, this one does without the host's."""
    import fcntl

    assert plan.cache is not None
    here = os.open(plan.cache.layers, DIRECTORY)
    held = os.open(CACHE_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=here)
    os.close(here)
    companion = Companion(held)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        say("claudebox: another box of this project has this host's caches: this one has the project's own alone\n")
        return without_host(plan), companion
    return plan, companion


def without_host(plan: Plan) -> Plan:
    assert plan.cache is not None
    own = plan.cache.directory
    return plan.replace(
        mounts=tuple(mount.replace(source=own) if mount.path == PLACE else mount for mount in plan.mounts),
        steps=tuple(step for step in plan.steps if step != Step(Step.MOUNT, "caches")),
    )


def mount(plan: Plan) -> None:
    cache = plan.cache
    assert cache is not None
    above, layers = os.open(cache.over_host, DIRECTORY), os.open(cache.layers, DIRECTORY)
    for lower, inner in cache.lower:
        name = inner.replace("/", "+")
        try:
            target = open_below(above, inner)
            sides = [_directory(layers, f"{name}.{side}") for side in ("upper", "work")]
            _lay(os.open(lower, DIRECTORY), target, *sides)
        except OSError as error:
            raise Problem(
                f"{lower} cannot lie under the project's cache: {error.strerror}",
                "it needs Linux 5.11, and the project's cache on ext4, btrfs, xfs or tmpfs\n"
                "      without this host's caches: --cache project",
            ) from None


def _directory(parent: int, name: str) -> int:
    try:
        os.mkdir(name, PRIVATE, dir_fd=parent)
    except FileExistsError:
        pass
    return os.open(name, DIRECTORY, dir_fd=parent)


def _lay(lower: int, target: int, upper: int, work: int) -> None:
    """Mount an overlay. Its directories are named by descriptors: no path can be replaced, or be misread."""
    names = {"lowerdir": lower, "upperdir": upper, "workdir": work}
    options = ",".join([*(f"{key}=/proc/self/fd/{value}" for key, value in names.items()), "userxattr"])
    call = c_function("mount")
    words = (b"claudebox-cache", f"/proc/self/fd/{target}".encode(), b"overlay", 0, options.encode())
    if call is None or call(*words) != 0:
        raise OSError(0, "the kernel refuses the overlay")
