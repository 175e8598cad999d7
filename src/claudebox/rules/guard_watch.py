"""What is compared from before the box to after it: what is guarded, what could have been, and what runs on request."""

from __future__ import annotations

import posixpath

from claudebox.host.fingerprint import Fingerprint
from claudebox.host.project import BEYOND, LINK, UNREAD, Entry
from claudebox.host.tree import Tree
from claudebox.model import Guard, Guarded, Trace
from claudebox.rules.guard_table import GIT, UNSEEN, ordinary_row_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LEAVING = "a symlink that leaves the project"
LINKS = "links"
HIDDEN = "cannot be listed: nothing in it was looked at"
TODO = "git rebase --continue runs it"
TODO_LISTS = ("rebase-merge/git-rebase-todo", "sequencer/todo")


def find_others(entries: Iterable[Entry], guarded: Iterable[Guarded]) -> tuple[Guarded, ...]:
    """Besides what is guarded: symlinks, what runs on request, and what git would go on with."""
    return tuple(dict.fromkeys([*_by_name(entries), *_unfinished(guarded)]))


def _by_name(entries: Iterable[Entry]) -> Iterator[Guarded]:
    for entry in entries:
        row = ordinary_row_of(entry.name)
        if row is not None:
            for inner in row.inner or ("",):
                yield Guarded(posixpath.join(entry.path, inner).rstrip("/"), row.group, row.reason)
        elif entry.kind in (UNREAD, BEYOND):
            yield Guarded(entry.path, UNSEEN, HIDDEN)
        elif entry.kind == LINK:
            yield Guarded(entry.path, LINKS, LEAVING)


def _unfinished(guarded: Iterable[Guarded]) -> Iterator[Guarded]:
    """A rebase that was left in the middle may have commands among what is to be done next."""
    for one in guarded:
        if one.group == GIT and posixpath.basename(one.path) == "config":
            for name in TODO_LISTS:
                yield Guarded(f"{posixpath.dirname(one.path)}/{name}", GIT, TODO)


def take_picture(tree: Tree, guard: Guard) -> dict[str, Trace]:
    """The files of all these places as they are now."""
    places = (*guard.held, *guard.opened, *guard.loose, *guard.absent, *guard.others)
    return Fingerprint(tree).take(place.path for place in places if place.group != UNSEEN)
