"""Judges the changes of a layer: which of them this host would run or believe, so that they land only if chosen."""

from __future__ import annotations

import posixpath

from claudebox.layers.changes import ADDED, DELETED, DIRECTORY, LINK, MODE, Change
from claudebox.paths import COMMON, is_below, is_inside, normalize
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from claudebox.features.guard.table import Reason
    from claudebox.model import Guarded

    Why = Callable[[str], Reason | None]

LEAVING = "a symlink that leaves the project"
REPOSITORY = "git obeys it: a repository"
WITH_REPOSITORY = "a repository goes with it"
# A directory with either pair is a repository, whatever its name is, and git obeys what else is in it. The second one
# says where the rest is, and may name any directory for that.
SIGNS = (("HEAD", "objects"), ("HEAD", "commondir"))
OBEYED = ("HEAD", "objects", "config", "config.worktree", "commondir", "hooks")


class Item(Record):
    """A change, and why it is set apart; "" if it is not."""

    change: Change
    reason: str = ""

    @property
    def is_safe(self) -> bool:
        """Whether it lands without being named: nothing on this host runs it, and nobody else has changed it."""
        return not self.reason and not self.change.is_conflict


def judge(
    changes: Iterable[Change], project: str, exists: Callable[[str], bool], held: Iterable[Guarded], why: Why
) -> list[Item]:
    """Judge each change by its name, and by what the host runs already.

    `exists` says whether the host has something at a path below the project; `held` are the places that a box without a
    layer could not change; `why` says of a path why this host would obey what is there, whatever is there now.
    """
    changes = tuple(changes)
    paths = {change.path for change in changes}
    places = {one.path[len(project) + 1 :]: one.reason for one in held if is_below(one.path, project)}
    # The directories in which something is held: whoever removes one of these removes that, too.
    holding = {above: reason for path, reason in places.items() for above in _parents(path)}

    def reason(change: Change) -> str:
        if change.holds_git:
            return WITH_REPOSITORY
        # A new directory is judged like a text in it, as there may be one.
        by_name = why(f"{change.path}/x.md" if _makes_room(change) and change.old is None else change.path)
        if by_name is not None:
            return by_name.text
        by_place = next((places[path] for path in (change.path, *_parents(change.path)) if path in places), "")
        if by_place or (_takes_away(change) and change.path in holding):
            return by_place or holding[change.path]
        if _is_of_repository(change.path, paths, exists):
            return REPOSITORY
        return LEAVING if change.what == LINK and change.target and _leaves(change, project) else ""

    return [Item(change, reason(change)) for change in changes]


def _takes_away(change: Change) -> bool:
    return change.kind == DELETED or (change.old is not None and change.kind != MODE)


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:number]) for number in range(len(parts) - 1, 0, -1)]


def _is_of_repository(path: str, paths: set[str], exists: Callable[[str], bool]) -> bool:
    parts = path.split("/")
    for around in ("/".join(parts[:number]) for number, name in enumerate(parts) if name in OBEYED):
        pairs = [[posixpath.join(around, sign) for sign in pair] for pair in SIGNS]
        if any(all(sign in paths or exists(sign) for sign in pair) for pair in pairs):
            return True
    return False


def _leaves(change: Change, project: str) -> bool:
    if _turns_back(change.target):
        return True
    here = posixpath.dirname(f"{project}/{change.path}")
    named = normalize(posixpath.join(here, change.target))
    return not any(is_inside(named, place) for place in (project, *COMMON))


def _turns_back(target: str) -> bool:
    """Whether `..` follows a name: if that is a symlink, nobody can tell by the text where it leads."""
    names = [name for name in target.split("/") if name not in ("", ".")]
    while names and names[0] == "..":
        names.pop(0)
    return ".." in names


def with_parents(chosen: list[Item], everything: list[Item]) -> list[Change]:
    """The chosen changes in the order of the list, and the new directories around them."""
    named = {item.change.path for item in chosen}
    around = {above for path in named for above in _parents(path)}
    every = (item.change for item in everything)
    return [one for one in every if one.path in named or (one.path in around and _makes_room(one))]


def _makes_room(change: Change) -> bool:
    return change.what == DIRECTORY and change.kind == ADDED
