"""What of the host a box sees through a layer."""

from __future__ import annotations

import os
import stat

from claudebox import files
from claudebox.layers.changes import is_opaque

DIRECTORY, PLAIN_FILE, NOTHING = "directory", "file", ""


def kind_seen(root: str, upper: str, path: str) -> str:
    """What the box sees at this path: a directory, a file, or nothing that could be mounted on.

    Symlinks are nothing, on the way and at the end.
    """
    above = os.open(upper, files.DIRECTORY)
    try:
        lower: int | None = os.open(root, files.DIRECTORY)
    except OSError:
        lower = None
    *parents, last = path.split("/")
    try:
        for name in parents:
            above, lower = _enter(above, lower, name)
            if above < 0 and lower is None:
                return NOTHING
        return _kind(above, lower, last)
    except OSError:
        return NOTHING
    finally:
        for descriptor in (above, lower):
            if descriptor is not None and descriptor >= 0:
                os.close(descriptor)


def _enter(above: int, lower: int | None, name: str) -> tuple[int, int | None]:
    """Enter a directory of both; -1 and None stand for one that is not there, or is not seen."""
    status = files.lstat(above, name) if above >= 0 else None
    inner, below = -1, None
    if status is None or stat.S_ISDIR(status.st_mode):
        if status is not None:
            inner, _ = files.open_hidden_directory(above, name)
        if lower is not None and (inner < 0 or not is_opaque(inner)):
            found = files.lstat(lower, name)
            if found is not None and stat.S_ISDIR(found.st_mode):
                below = os.open(name, files.DIRECTORY, dir_fd=lower)
    for descriptor in (above, lower):
        if descriptor is not None and descriptor >= 0:
            os.close(descriptor)
    return inner, below


def _kind(above: int, lower: int | None, name: str) -> str:
    status = files.lstat(above, name) if above >= 0 else None
    if status is None and lower is not None:
        status = files.lstat(lower, name)
    if status is None:
        return NOTHING
    return PLAIN_FILE if stat.S_ISREG(status.st_mode) else DIRECTORY if stat.S_ISDIR(status.st_mode) else NOTHING
