"""Finds what a checkout in the box has left in a layer, so that it is whole on this host, too.

The commit that is checked out now has exactly what comes, and both what comes and what goes was in commits before the
first box of the layer: nothing is new, and nothing is lost. Where a file goes, that commit has to be one of them. What
boxes have committed, and what nobody looks for in commits, does not count.
"""

from __future__ import annotations

import os
import stat

from claudebox import files
from claudebox.features.review.judge import Item
from claudebox.features.review.show import read_in_layer, read_in_project
from claudebox.host.git import find_repository
from claudebox.host.git.directory import LARGEST, read_head
from claudebox.host.tree import Tree
from claudebox.layers import changes
from claudebox.layers.changes import DELETED, DIRECTORY, Change, walk_below
from claudebox.layers.introduced import read_introduced, record
from claudebox.layers.store import TIPS, Layer
from claudebox.process.git_objects import FILE, LINK, NOTHING, PROGRAM, CannotTell, History, hash_of, open_objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from claudebox.features.review.judge import Why

SECONDS = 2
OTHERS_CAN_WRITE = 0o002


def find_checkout(layer: Layer, items: list[Item], bwrap: str, why: Why) -> list[Item]:
    """Those of the changes that are set apart although they bring nothing new."""
    tips = (Tree().read_plain(f"{layer.directory}/{TIPS}", LARGEST) or b"").decode().split()
    git_dir = find_repository(Tree(), layer.project).git_dir
    odd = tuple(f"{item.change.path}/" for item in items if _is_odd(item.change))
    # A new directory lands with what is in it.
    leaves = [one for one in items if one.change.what != DIRECTORY or one.change.kind == DELETED]
    named = [one for one in leaves if one.reason and (reason := why(one.change.path)) and reason.is_grave]
    apart = [item for item in named if not f"{item.change.path}/".startswith(odd)]
    introduced = read_introduced(layer.reports)
    if not (tips and git_dir and apart) or introduced is None:
        return []
    upper, lower = os.open(layer.upper, files.DIRECTORY), files.open_directory(layer.project)
    try:
        with open_objects(bwrap, git_dir, tips[0], SECONDS) as objects:
            head = bytes.fromhex(read_head(Tree(), git_dir).commit)
            past = _Past(History(objects, map(bytes.fromhex, tips)), head, introduced)
            return [item for item in apart if past.has(item.change, upper, lower)]
    except (OSError, CannotTell):
        return []
    finally:
        os.close(upper)
        os.close(lower)


def _is_odd(change: Change) -> bool:
    """Whether no checkout does this: what others can write, or something in the place of a directory or a file."""
    is_other = change.kind != DELETED and (change.gone > 0 or (change.what == DIRECTORY and change.old is not None))
    return change.is_conflict or is_other or (change.what != changes.LINK and bool(change.mode & OTHERS_CAN_WRITE))


class _Past:
    """What commits had before the first box of a layer, and what is checked out now."""

    def __init__(self, history: History, head: bytes, introduced: frozenset[bytes]) -> None:
        self.history = history
        self.objects = history.objects
        self.head = head
        self.introduced = introduced

    def has(self, change: Change, upper: int, lower: int) -> bool:
        is_link = change.what == changes.LINK
        if change.kind == DELETED:
            is_right = any(name == self.head for name in self.history.walk()) and self._now(change.path) == NOTHING
        else:
            content = os.fsencode(change.target) if is_link else read_in_layer(upper, change)
            entry = LINK if is_link else _mode(change.mode), self._name(content)
            is_right = self._now(change.path) == entry and self._had(change.path, *entry)
            is_right &= record(change.path, *entry) not in self.introduced
        return is_right and all(
            self._had(path, mode, self._name(content))
            and (change.kind != DELETED or record(path, *NOTHING) not in self.introduced)
            for path, mode, content in _gone(lower, change)
        )

    def _now(self, path: str) -> tuple[int, bytes]:
        return self.objects.find(self.head, path)

    def _name(self, content: bytes | None) -> bytes:
        return hash_of(b"blob", content, self.history.size) if content is not None else b""

    def _had(self, path: str, mode: int, name: bytes) -> bool:
        try:
            return any(self.objects.find(commit, path) == (mode, name) for commit in self.history.walk())
        except CannotTell:
            return False


def _gone(lower: int, change: Change) -> Iterator[tuple[str, int, bytes | None]]:
    """The files of this host that the change removes or replaces, as git would keep them."""
    gone = [(change.path, change.old.mode)] if change.old is not None else []
    if change.what == DIRECTORY:
        parent, _, name = change.path.rpartition("/")
        here = files.open_below(lower, parent)
        gone = [(path, status.st_mode) for path, status in walk_below(here, name, change.path)]
        os.close(here)
    for path, mode in gone:
        if stat.S_ISLNK(mode):
            yield path, LINK, os.fsencode(os.readlink(path, dir_fd=lower))
        elif not stat.S_ISDIR(mode):
            yield path, _mode(mode), read_in_project(lower, path)


def _mode(mode: int) -> int:
    return PROGRAM if mode & stat.S_IXUSR else FILE
