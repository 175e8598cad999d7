"""Judges the changes of a layer: which of them this host would run or believe, so that they land only if chosen."""

from __future__ import annotations

import posixpath

from claudebox.layers.changes import ADDED, DELETED, DIRECTORY, LINK, MODE, Change
from claudebox.paths import is_below, is_inside, normalize
from claudebox.record import Record
from claudebox.settings.values import PROJECT_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    from claudebox.model import Guarded

    class WhyApart(Protocol):
        """Says why a path is set apart."""

        def __call__(self, path: str, *, is_room: bool) -> str: ...


OWN = "claudebox obeys it"
LEAVING = "a symlink that leaves the project"
REPOSITORY = "git obeys it: a repository"
WITH_REPOSITORY = "a repository goes with it"
# A directory with either pair is a repository, whatever its name is, and git obeys what else is in it. The second one
# says where the rest is, and may name any directory for that.
SIGNS = (("HEAD", "objects"), ("HEAD", "commondir"))
OBEYED = ("HEAD", "objects", "config", "config.worktree", "commondir", "hooks")
# A symlink into one of these leads to what everybody has.
COMMON = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix", "/dev/null")


class Item(Record):
    """A change, and why it is set apart; "" if it is not."""

    change: Change
    reason: str = ""

    @property
    def is_safe(self) -> bool:
        """Whether it lands without being named: nothing on this host runs it, and nobody else has changed it."""
        return not self.reason and not self.change.is_conflict


def judge(
    changes: Iterable[Change],
    project: str,
    exists: Callable[[str], bool],
    held: Iterable[Guarded],
    why_apart: WhyApart,
) -> list[Item]:
    """Judge each change by its name, and by what the host runs already.

    `exists` says whether the host has something at a path below the project; `held` are the places that a box without a
    layer could not change; `why_apart` says of a path why this host would run what is there, whatever is there now.
    """
    changes = tuple(changes)
    surroundings = _Surroundings(project, {change.path for change in changes}, exists, held, why_apart)
    return [Item(change, surroundings.reason(change)) for change in changes]


class _Surroundings:
    """What a change is judged by."""

    def __init__(
        self,
        project: str,
        paths: set[str],
        exists: Callable[[str], bool],
        held: Iterable[Guarded],
        why_apart: WhyApart,
    ) -> None:
        self.project = project
        self.paths = paths
        self.exists = exists
        self.why_apart = why_apart
        self.held = {one.path[len(project) + 1 :]: one.reason for one in held if is_below(one.path, project)}
        # The directories in which something is held: whoever removes one of these removes that, too.
        self.holding = {above: reason for path, reason in self.held.items() for above in _parents(path)}

    def reason(self, change: Change) -> str:
        if change.holds_git:
            return WITH_REPOSITORY
        if change.path == PROJECT_FILE:
            return OWN
        reason = self._by_name(change) or self._by_place(change) or _by_repository(change.path, self.paths, self.exists)
        if not reason and change.what == LINK and change.target and _leaves(change, self.project):
            return LEAVING
        return reason

    def _by_place(self, change: Change) -> str:
        for path in (change.path, *_parents(change.path)):
            if path in self.held:
                return self.held[path]
        is_taken_away = change.kind == DELETED or (change.old is not None and change.kind != MODE)
        return self.holding.get(change.path, "") if is_taken_away else ""

    def _by_name(self, change: Change) -> str:
        is_room = change.what == DIRECTORY and change.kind == ADDED and change.old is None
        return self.why_apart(change.path, is_room=is_room)


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:number]) for number in range(len(parts) - 1, 0, -1)]


def _by_repository(path: str, paths: set[str], exists: Callable[[str], bool]) -> str:
    parts = path.split("/")
    for number, name in enumerate(parts):
        if name in OBEYED:
            around = "/".join(parts[:number])
            pairs = [[posixpath.join(around, sign) for sign in pair] for pair in SIGNS]
            if any(all(sign in paths or exists(sign) for sign in pair) for pair in pairs):
                return REPOSITORY
    return ""


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
    wanted = {item.change.path for item in chosen}
    for item in chosen:
        above = posixpath.dirname(item.change.path)
        while above and above not in wanted:
            wanted.add(above)
            above = posixpath.dirname(above)
    named = {item.change.path for item in chosen}
    return [
        item.change
        for item in everything
        if item.change.path in named or (item.change.path in wanted and _makes_room(item.change))
    ]


def _makes_room(change: Change) -> bool:
    return change.what == DIRECTORY and change.kind == ADDED
