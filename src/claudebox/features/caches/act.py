"""Lays the host's caches under the project's own, for `--cache host`.

This is done by the process that becomes bwrap, in a mount namespace of its own: an overlay shows the host's files, and
keeps what the box writes in the state of the project. One box of a project at a time can do so, since the kernel
allows a directory of changes to be used once.
"""

from __future__ import annotations

import os

from claudebox import files
from claudebox.errors import Problem
from claudebox.features.caches import Cache
from claudebox.features.caches.decide import PLACE
from claudebox.files import c_call
from claudebox.model import Launch
from claudebox.output.terminal import say
from claudebox.process.companion import Companion
from claudebox.record import Record
from claudebox.state import CACHE_LOCK


class Over(Record):
    """Whether this box has the host's caches."""

    is_ours: bool


def beside(launch: Launch) -> Companion:
    """Hold the place for changes as long as the box lives. If another box has it, this one does without the host's."""
    cache = launch.get(Cache)
    held = files.open_lock(f"{cache.layers}/{CACHE_LOCK}")
    over = Over(files.take_lock(held))
    if not over.is_ours:
        say("claudebox: another box of this project has this host's caches: this one has the project's own alone\n")
        launch.mounts = tuple(
            mount.replace(source=cache.directory) if mount.path == PLACE else mount for mount in launch.mounts
        )
    launch.keep(over)
    return Companion(held)


def mount(launch: Launch) -> None:
    cache = launch.get(Cache)
    if not launch.get(Over).is_ours:
        return
    above, layers = os.open(cache.over_host, files.DIRECTORY), os.open(cache.layers, files.DIRECTORY)
    for lower, inner in cache.lower:
        name = inner.replace("/", "+")
        try:
            target = files.open_below(above, inner)
            sides = [files.open_below(layers, f"{name}.{side}", makes=True) for side in ("upper", "work")]
            _lay(os.open(lower, files.DIRECTORY), target, *sides)
        except OSError as error:
            raise Problem(
                f"{lower} cannot lie under the project's cache: {error.strerror}",
                "it needs Linux 5.11, and the project's cache on ext4, btrfs, xfs or tmpfs\n"
                "      without this host's caches: --cache project",
            ) from None


def _lay(lower: int, target: int, upper: int, work: int) -> None:
    """Mount an overlay. Its directories are named by descriptors: no path can be replaced, or be misread."""
    names = {"lowerdir": lower, "upperdir": upper, "workdir": work}
    options = ",".join([*(f"{key}=/proc/self/fd/{value}" for key, value in names.items()), "userxattr"])
    words = (b"claudebox-cache", f"/proc/self/fd/{target}".encode(), b"overlay", 0, options.encode())
    if c_call("mount", *words) != 0:
        raise OSError(0, "the kernel refuses the overlay")
