"""Judges the changes of a layer: which of them this host would run or believe, so that they land only if chosen."""

from __future__ import annotations

import posixpath

from claudebox.features.table import load
from claudebox.layers.changes import ADDED, DIRECTORY, LINK, Change
from claudebox.paths import is_inside
from claudebox.record import Record
from claudebox.settings.values import PROJECT_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    RowOf = Callable[[str], Any]  # the guard's: why a file of this name is guarded

OWN = "claudebox obeys it"
LEAVING = "a symlink that leaves the project"
REPOSITORY = "git obeys it: a repository"
WITH_REPOSITORY = "a repository goes with it"
# A directory with these is a repository, whatever its name is, and git obeys what else is in it.
SIGNS = ("HEAD", "objects")
OBEYED = ("HEAD", "config", "config.worktree", "commondir", "hooks")
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


def judge(changes: Iterable[Change], project: str, exists: Callable[[str], bool]) -> list[Item]:
    """`exists` says whether the host has something at a path below the project."""
    changes = tuple(changes)
    paths = {change.path for change in changes}
    row_of = load("guard.table", "row_of")
    return [Item(change, _reason(change, project, paths, exists, row_of)) for change in changes]


def _reason(change: Change, project: str, paths: set[str], exists: Callable[[str], bool], row_of: RowOf) -> str:
    if change.holds_git:
        return WITH_REPOSITORY
    if change.path == PROJECT_FILE:
        return OWN
    reason = _by_table(change, row_of) or _by_repository(change.path, paths, exists)
    if not reason and change.what == LINK and change.target and _leaves(change, project):
        return LEAVING
    return reason


def _by_table(change: Change, row_of: RowOf) -> str:
    parts = change.path.split("/")
    for number, name in enumerate(parts):
        row = row_of(name)
        if row is None:
            continue
        rest = "/".join(parts[number + 1 :])
        is_only_around = bool(row.inner) and change.what == DIRECTORY and change.kind == ADDED and change.old is None
        if not rest and not is_only_around:
            return str(row.reason)
        if rest and (not row.inner or any(is_inside(rest, inner) or is_inside(inner, rest) for inner in row.inner)):
            return str(row.reason)
    return ""


def _by_repository(path: str, paths: set[str], exists: Callable[[str], bool]) -> str:
    parts = path.split("/")
    for number, name in enumerate(parts):
        if name in OBEYED:
            around = "/".join(parts[:number])
            signs = [posixpath.join(around, sign) for sign in SIGNS]
            if all(sign in paths or exists(sign) for sign in signs):
                return REPOSITORY
    return ""


def _leaves(change: Change, project: str) -> bool:
    here = posixpath.dirname(f"{project}/{change.path}")
    named = posixpath.normpath(posixpath.join(here, change.target))
    return not any(is_inside(named, place) for place in (project, *COMMON))


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
