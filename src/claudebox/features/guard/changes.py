"""Finds what a box has left that can run code on the host: the difference of two pictures, where it matters.

A session that edits source files should end without a word. So a repository that was cloned is no news unless its
configuration or one of its hooks would run something, and neither is a package.json with a new dependency.
"""

from __future__ import annotations

import posixpath
import stat

from claudebox.features.guard.checkouts import Checkouts, Familiar
from claudebox.features.guard.contents import build_system, commands, running_pairs, scripts
from claudebox.features.guard.decide import (
    HIDDEN,
    LINKS,
    PRIVILEGES,
    REPAIRED,
    SETTINGS,
    TODO,
    find_guarded,
    find_others,
    own_settings,
    with_ways,
)
from claudebox.features.guard.git import (
    CONFIG,
    DETOUR,
    INCLUDED,
    POINTER,
    PROGRAM,
    Account,
    checkout_of,
    detours_in,
)
from claudebox.features.guard.ordinary import BUILD, TOOLS, USE
from claudebox.features.guard.pointers import back_pointer, kind_of, leaving, pointer, work_tree
from claudebox.features.guard.table import DOT_GIT, GIT, HEAD, UNSEEN, WANTED, find_tools
from claudebox.features.guard.ways import find_shadowing
from claudebox.host.fingerprint import ONE_TOO_MANY, Fingerprint
from claudebox.host.git.index import find_gitlinks
from claudebox.host.tree import Tree
from claudebox.host.walk import (
    BEYOND,
    LINK,
    OTHER,
    SKIPPED,
    UNREAD,
    Entry,
    list_directory,
    search_rest,
    walk_project,
)
from claudebox.model import Guard, Guarded, Trace
from claudebox.paths import is_below, is_inside, normalize, parents
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NEW = "new"
CHANGED = "changed"
IN_THE_WAY = "a directory: the next box will not start"
REPOSITORIES = frozenset((DOT_GIT, HEAD))
MOST_OF_INDEXES = 1 << 26  # bytes of git's indexes that are read
WRITTEN_BY_EDITORS = ("workspace.xml", "usage.statistics.xml")


class Leftover(Record):
    """A change that the user should know of."""

    what: str
    path: str
    reason: str
    details: tuple[str, ...] = ()
    is_ordinary: bool = False  # it runs only when the user asks for it
    is_gits: bool = False  # git obeys it
    old: Trace | None = None
    new: Trace | None = None


class Moment(Record):
    """The places that count and their files, at one moment."""

    places: tuple[Guarded, ...]
    files: dict[str, Trace]
    detours: tuple[Entry, ...] = ()
    since: int = 0  # when the box started, in nanoseconds


def take_picture(tree: Tree, guard: Guard) -> dict[str, Trace]:
    """Take in the files of all these places as they are now."""
    places = (*guard.held, *guard.opened, *guard.loose, *guard.absent, *guard.others)
    return Fingerprint(tree).take(place.path for place in places if place.group != UNSEEN)


def look(tree: Tree, guard: Guard, home: str, since: int = 0) -> Moment:
    """Look at everything as it is now. The tree has to be a new one: an old one remembers what it has read.

    `since` is when the box started. Before it, nobody looked into the directories that the walk skips.
    """
    project, *others = guard.roots
    entries = [*walk_project(tree, project, WANTED)]
    for directory in others:
        entries += list_directory(tree, directory, WANTED)
    entries += _linked(tree, entries)
    entries += search_rest(tree, project, REPOSITORIES, since, modes=is_shared(tree, guard.roots))
    candidates = find_guarded(tree, guard.roots, entries, Account(home, guard.git_configs))
    candidates = with_ways(candidates, guard.ways)
    within = tuple(one for one in candidates if any(is_inside(one.path, root) for root in guard.roots))
    others_found = (
        *find_others(entries, within),
        *find_tools(tree, guard.roots),
        *find_shadowing(tree, guard.filled, guard.commands),
        *guard.made,
        own_settings(project),
    )
    detours = detours_in(tree, within, guard.roots)
    led_away = tuple(Guarded(entry.path, GIT, DETOUR) for entry in detours)
    files = take_picture(tree, Guard(absent=(*within, *led_away), others=others_found))
    return Moment((*within, *others_found), files, tuple(detours), since)


def _linked(tree: Tree, entries: list[Entry]) -> list[Entry]:
    """Find repositories that an index of git names, even where no walk looks, and those that their indexes name."""
    known = {entry.path for entry in entries}
    found: list[Entry] = []
    room = [MOST_OF_INDEXES]
    waiting = [entry for entry in entries if entry.name == DOT_GIT]
    while waiting:
        checkout = checkout_of(tree, waiting.pop(0))
        if checkout is None:
            continue
        names = find_gitlinks(tree, checkout.git_dir, room)
        if names is None:
            found.append(Entry(f"{checkout.git_dir}/index", UNREAD))
            continue
        for name in dict.fromkeys(names):
            path = normalize(posixpath.join(checkout.work_tree, name, DOT_GIT))
            if path not in known and tree.lstat(path):
                known.add(path)
                waiting.append(Entry(path, kind_of(tree, path)))
                found.append(waiting[-1])
    return found


class Comparison:
    """Compares what was there before the box with what is there after it."""

    def __init__(self, tree: Tree, guard: Guard, before: dict[str, Trace], after: Moment) -> None:
        self.tree = tree
        self.guard = guard
        self.before = before
        self.after = after
        self.known = {one.path for one in (*guard.held, *guard.opened, *guard.loose, *guard.absent, *guard.others)}
        self.files_in = _by_directory(after)
        checkouts = Checkouts(tree, guard, after.places)
        self.familiar = Familiar(guard, before, checkouts)
        self.by_request = [one.path for one in guard.opened if one.group != GIT] + checkouts.cloned

    def leftovers(self) -> list[Leftover]:
        found: dict[str, Leftover] = {}
        seen = [place for place in self.after.places if place.group != UNSEEN]
        for place in self.after.places:
            if place.group == UNSEEN and place.path not in self.known:
                found[place.path] = Leftover(NEW, place.path, place.reason)
            elif place.group == SETTINGS and self.tree.is_plain_directory(place.path):
                found[place.path] = Leftover(NEW, place.path, IN_THE_WAY)  # no box starts where there was one before
        for entry in self.after.detours:
            if entry.kind in (UNREAD, BEYOND):
                found[entry.path] = Leftover(NEW, entry.path, HIDDEN, is_gits=True)
        for place in seen:
            for path in self._files_of(place.path):
                for leftover in self._judged(place, path) if path not in found else ():
                    found[leftover.path] = _merged(found.get(leftover.path), leftover)
        # What any git command runs comes first, so that many others do not drown it.
        return sorted(found.values(), key=lambda leftover: (leftover.is_ordinary, not leftover.is_gits, leftover.path))

    def detours(self) -> list[Leftover]:
        """What git would write through. Where there was one before, the user has said so."""
        found = []
        for entry in self.after.detours:
            old, new = self.before.get(entry.path), self.after.files.get(entry.path)
            is_same = old is not None and new is not None and _is_same(old, new)
            if entry.kind in (LINK, OTHER) and not is_same:
                what = NEW if old is None else CHANGED
                found.append(Leftover(what, entry.path, DETOUR, _target(new), is_gits=True, old=old, new=new))
        return found

    def _files_of(self, place: str) -> list[str]:
        if place in self.after.files:
            return [place]
        return self.files_in.get(place, [])

    def _judged(self, place: Guarded, path: str) -> list[Leftover]:
        """Judge a file. What the agent has written must never keep the rest from being said."""
        try:
            return list(self._judge(place, path))
        except Exception as error:
            return [
                Leftover(NEW, path, place.reason, (f"could not be looked at: {error}",), is_gits=place.group == GIT)
            ]

    def _judge(self, place: Guarded, path: str) -> Iterator[Leftover]:
        old, new = self.before.get(path), self.after.files[path]
        if (old is not None and _is_same(old, new)) or self._is_editors_own(path):
            return
        what = NEW if old is None else CHANGED
        if old is None and self._was_unseen(place, path):
            return
        if old is None and place.group not in (GIT, LINKS) and self.familiar.has(place, path, new):
            return
        is_ordinary = place.group in (BUILD, USE, TOOLS) or (
            place.group not in (GIT, PRIVILEGES) and any(is_inside(path, asked) for asked in self.by_request)
        )
        if is_ordinary:
            from claudebox.features.guard import envrc

            if envrc.is_evaluated(self.tree, path):
                place, is_ordinary = place.replace(reason=envrc.NAMED), False
        details = self._details(place, path, old, new)
        if details is None:
            return
        repository = self._new_repository(path) if place.group == GIT else ""
        if repository:
            name = posixpath.relpath(path, repository)
            details = details or (name,)
            yield Leftover(NEW, repository, "a repository: git obeys it", details, is_gits=True)
        elif place.group == TOOLS:
            yield Leftover(what, place.path, place.reason, is_ordinary=True)  # one for all files of a tool
        elif place.reason == TODO:
            yield Leftover(NEW, posixpath.dirname(path), place.reason, details, is_gits=True)
        else:
            is_gits = place.group == GIT
            yield Leftover(what, path, place.reason, details, is_ordinary, is_gits, old, new)

    def _was_unseen(self, place: Guarded, path: str) -> bool:
        """Whether it was there before the box, where nobody looked: it and what it lies in are older."""
        if place.path in self.known:
            return False
        inside = [one for one in (path, *parents(path)) if any(is_below(one, root) for root in self.guard.roots)]
        names = {posixpath.basename(one) for one in inside} - {DOT_GIT}
        if SKIPPED.keys().isdisjoint(names) and place.reason not in (INCLUDED, PROGRAM):
            return False
        statuses = [status for one in inside if (status := self.tree.lstat(one)) is not None]
        return all(status.st_ctime_ns < self.after.since for status in statuses)

    def _is_editors_own(self, path: str) -> bool:
        """Whether an editor on this host writes it all the time, in a place where the agent cannot write."""
        directory, _, name = path.rpartition("/")
        return name in WRITTEN_BY_EDITORS and any(is_inside(directory, one.path) for one in self.guard.held)

    def _details(self, place: Guarded, path: str, old: Trace | None, new: Trace) -> tuple[str, ...] | None:
        """What matters about the change; None if nothing does."""
        if new == ONE_TOO_MANY:
            return ("there are more files than were looked at",)
        if place.group == LINKS:
            return leaving(self.tree, self.guard.roots, path, new)
        if stat.S_ISLNK(new.mode):
            return _target(new)
        if place.reason in (CONFIG, INCLUDED):
            return (*(running_pairs(old, new) or ()), *work_tree(self.tree, path, old, new)) or None
        if place.reason == TODO:
            return commands(new)
        if place.reason == REPAIRED:
            return back_pointer(self.tree, self.guard.roots, path, new)
        if place.reason == POINTER:
            return pointer(self.guard.roots, path, old, new)
        if path.endswith("/package.json"):
            return scripts(old, new)
        if path.endswith("/pyproject.toml"):
            return build_system(old, new)
        return ()

    def _new_repository(self, path: str) -> str:
        """The directory of git to which the file belongs, if that was not there before; else ""."""
        for above in parents(path):
            if not any(is_below(above, root) for root in self.guard.roots):
                return ""  # never the project itself, which would be moved away as a whole
            if self.tree.lstat(f"{above}/HEAD") is not None and self.tree.lstat(f"{above}/objects") is not None:
                return "" if f"{above}/config" in self.known else above
        return ""


def is_shared(tree: Tree, roots: tuple[str, ...]) -> bool:
    """Whether a group shares the project, so that the box could make files that are setgid."""
    statuses = (tree.status(path) for root in roots for path in (root, f"{root}/{DOT_GIT}"))
    return any(status is not None and status.st_mode & stat.S_ISGID for status in statuses)


def _by_directory(moment: Moment) -> dict[str, list[str]]:
    """The files of each place that is a directory."""
    found: dict[str, list[str]] = {place.path: [] for place in moment.places}
    for path in moment.files:
        for above in parents(path):
            if above in found:
                found[above].append(path)
    return found


def _target(new: Trace | None) -> tuple[str, ...]:
    is_link = new is not None and stat.S_ISLNK(new.mode)
    return (f"-> {(new.content or b'').decode(errors='surrogateescape')}",) if is_link and new is not None else ()


def _is_same(old: Trace, new: Trace) -> bool:
    if old.identity == new.identity:
        return True
    return old.content is not None and old.content == new.content and old.mode == new.mode


def _merged(one: Leftover | None, other: Leftover) -> Leftover:
    if one is None:
        return other
    return one.replace(details=tuple(dict.fromkeys((*one.details, *other.details))))
