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
    from collections.abc import Container, Iterable

SMALL_FILE_BYTES = 1 << 16
MOST_BYTES = 1 << 20
MOST_FILES_OF_A_PLACE = 2000  # and directories; of more, one trace stands for all
MOST_ENTRIES_OF_A_PLACE = 20_000
DEEPEST = 30
NOT_RUN = ".sample"  # the suffix of the example hooks, which git does not run

REST = 0  # the mode of the trace that stands for many files


class Fingerprint:
    """The files of some places, without directories called as in `skipped` and those whose path ends with `apart`.

    Every place has room of its own: nothing that is left in one place keeps another from being looked at.
    """

    def __init__(self, tree: Tree, skipped: Container[str] = (), apart: str = "\0") -> None:
        self.tree, self.skipped, self.apart = tree, skipped, apart
        self.files: dict[str, Trace] = {}
        self._room = MOST_BYTES
        self._seen = 0  # of one place
        self._rest: dict[str, int] = {}

    def take(self, places: Iterable[str]) -> dict[str, Trace]:
        for place in sorted(places, key=self.tree.is_plain_directory):  # so that files have their content before those
            self._seen, self._rest = 0, {}
            self._take(place, 0)
            for first in list(self._rest)[:1]:
                # The key of such a hash is this process's own.
                self.files[first] = Trace((REST, hash(frozenset(self._rest.items()))), None, REST)
        return self.files

    def _take(self, path: str, depth: int) -> None:
        if self._seen > MOST_ENTRIES_OF_A_PLACE or path in self.files:
            return  # before anything is looked up: there may be a million files
        status = self.tree.lstat(path)
        if status is None:
            return
        self._seen += 1
        is_directory = stat.S_ISDIR(status.st_mode)
        if self._seen > MOST_ENTRIES_OF_A_PLACE or (is_directory and depth == DEEPEST):
            self._rest[path] = int.from_bytes(os.urandom(8), "big")  # equal to nothing: nobody looks further
        elif is_directory:
            for name in self.tree.entries(path) if not path.endswith(self.apart) else ():
                if not name.endswith(NOT_RUN) and name not in self.skipped:
                    self._take(f"{path}/{name}", depth + 1)
        else:
            identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if self._seen > MOST_FILES_OF_A_PLACE:
                self._rest[path] = hash(identity)
            else:
                self.files[path] = Trace(identity, self._content(path, status), status.st_mode, status.st_nlink)

    def _content(self, path: str, status: os.stat_result) -> bytes | None:
        if stat.S_ISLNK(status.st_mode):
            return os.fsencode(self.tree.link_target(path))
        if not stat.S_ISREG(status.st_mode) or status.st_size > min(SMALL_FILE_BYTES, self._room):
            return None
        self._room -= status.st_size
        return self.tree.read_plain(path, SMALL_FILE_BYTES)
