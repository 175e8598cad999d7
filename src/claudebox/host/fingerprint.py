"""Notes files as they are at one moment, to compare them with another moment.

Every launch does this, so it reads little: the content of small files, so that a difference can be shown and undone,
and the status of all others. A box cannot forge the time at which the kernel changed a file's status last (ctime).
"""

from __future__ import annotations

import os
import stat

from claudebox.host.tree import Tree
from claudebox.model import Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SMALL_FILE_BYTES = 1 << 16
MOST_BYTES = 1 << 22
MOST_FILES_OF_A_PLACE = 300
DEEPEST = 4
NOT_RUN = ".sample"  # the suffix of the example hooks, which git does not run

ONE_TOO_MANY = Trace((0, 0, 0, 0, 0), None, 0)  # stands for the first file that was not looked at


class Fingerprint:
    """The files of some places, by path."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.files: dict[str, Trace] = {}
        self._room = MOST_BYTES

    def take(self, places: Iterable[str]) -> dict[str, Trace]:
        for place in places:
            self._take(place, [MOST_FILES_OF_A_PLACE], 0)
        return self.files

    def _take(self, path: str, left: list[int], depth: int) -> None:
        if left[0] < 0 or path in self.files:
            return  # before anything is looked up: there may be a million files
        status = self.tree.lstat(path)
        if status is None:
            return
        if stat.S_ISDIR(status.st_mode):
            for name in self.tree.entries(path) if depth < DEEPEST else ():
                if not name.endswith(NOT_RUN):
                    self._take(f"{path}/{name}", left, depth + 1)
            return
        left[0] -= 1
        if left[0] < 0:
            self.files[path] = ONE_TOO_MANY
            return
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        self.files[path] = Trace(identity, self._content(path, status), status.st_mode, status.st_nlink)

    def _content(self, path: str, status: os.stat_result) -> bytes | None:
        if stat.S_ISLNK(status.st_mode):
            return os.fsencode(self.tree.link_target(path))
        if not stat.S_ISREG(status.st_mode) or status.st_size > min(SMALL_FILE_BYTES, self._room):
            return None
        self._room -= status.st_size
        return self.tree.read_plain(path, SMALL_FILE_BYTES)
