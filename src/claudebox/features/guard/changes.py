"""Finds what a box has left that can run code on the host: the difference of two pictures, where it matters.

A session that edits source files should end without a word. So a repository that was cloned is no news unless its
configuration or one of its hooks would run something, and neither is a package.json with a new dependency.
"""

from __future__ import annotations

import posixpath
import stat

from claudebox.features.guard import envrc
from claudebox.features.guard.decide import LINKS, TODO, find_guarded, find_others, with_ways
from claudebox.features.guard.git import (
    CONFIG,
    INCLUDED,
    POINTER,
    Account,
    checkout_of,
    is_include,
    pointed_to,
    runs_program,
)
from claudebox.features.guard.ordinary import BUILD, TOOLS, USE
from claudebox.features.guard.table import DOT_GIT, GIT, UNSEEN, WANTED, find_tools
from claudebox.features.guard.ways import find_shadowing
from claudebox.host.fingerprint import ONE_TOO_MANY, Fingerprint
from claudebox.host.git import config as gitconfig
from claudebox.host.git.index import find_gitlinks
from claudebox.host.tree import Tree
from claudebox.host.walk import DIRECTORY, FILE, LINK, UNREAD, Entry, list_directory, walk_project
from claudebox.model import Guard, Guarded, Trace
from claudebox.paths import is_below, is_inside, parents
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NEW = "new"
CHANGED = "changed"
# A symlink into one of these leads to what everybody has.
COMMON = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix", "/dev/null")
RUN_BY_THEMSELVES = (
    *("preinstall", "install", "postinstall", "prepare", "preprepare", "postprepare", "prepublish", "dependencies"),
)
GIT_CONFIG = "/.git/config"
MOST_OF_INDEXES = 1 << 26  # bytes of git's indexes that are read
TOO_LARGE = ("too large to be looked at",)
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


def take_picture(tree: Tree, guard: Guard) -> dict[str, Trace]:
    """Take in the files of all these places as they are now."""
    places = (*guard.held, *guard.opened, *guard.loose, *guard.absent, *guard.others)
    return Fingerprint(tree).take(place.path for place in places if place.group != UNSEEN)


def look(tree: Tree, guard: Guard, home: str) -> Moment:
    """Look at everything as it is now. The tree has to be a new one: an old one remembers what it has read."""
    project, *others = guard.roots
    entries = [*walk_project(tree, project, WANTED)]
    for directory in others:
        entries += list_directory(tree, directory, WANTED)
    entries += _linked(tree, entries)
    candidates = find_guarded(tree, guard.roots, entries, Account(home, guard.git_configs))
    candidates = with_ways(candidates, guard.ways)
    within = tuple(one for one in candidates if any(is_inside(one.path, root) for root in guard.roots))
    others_found = (
        *find_others(entries, within),
        *find_tools(tree, guard.roots),
        *find_shadowing(tree, guard.filled, guard.commands),
        *guard.made,
    )
    files = take_picture(tree, Guard(absent=within, others=others_found))
    return Moment((*within, *others_found), files)


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
            path = posixpath.normpath(posixpath.join(checkout.work_tree, name, DOT_GIT))
            if path not in known and tree.lstat(path):
                known.add(path)
                waiting.append(Entry(path, _kind(tree, path)))
                found.append(waiting[-1])
    return found


def _kind(tree: Tree, path: str) -> str:
    return LINK if tree.is_link(path) else DIRECTORY if tree.is_plain_directory(path) else FILE


class Comparison:
    """Compares what was there before the box with what is there after it."""

    def __init__(self, tree: Tree, guard: Guard, before: dict[str, Trace], after: Moment) -> None:
        self.tree = tree
        self.guard = guard
        self.before = before
        self.after = after
        self.known = {one.path for one in (*guard.held, *guard.opened, *guard.loose, *guard.absent, *guard.others)}
        self.files_in = _by_directory(after)
        # A worktree has the same files as the project, which are no news.
        self.familiar = self._familiar()
        self.by_request = [one.path for one in guard.opened if one.group != GIT] + self._new_checkouts()

    def _familiar(self) -> set[tuple[str, str, bytes | None]]:
        """The files of the project that are obeyed already, without those of repositories that lie in it."""
        guard = self.guard
        groups = {
            one.path: one.group for one in (*guard.held, *guard.opened, *guard.loose, *guard.absent, *guard.others)
        }
        cloned = {path.removesuffix(GIT_CONFIG) for path in groups if path.endswith(GIT_CONFIG)} - {*guard.roots}
        return {
            (group, posixpath.basename(path), trace.content)
            for path, trace in self.before.items()
            if trace.content and cloned.isdisjoint(parents(path))
            for group in [next((groups[above] for above in (path, *parents(path)) if above in groups), "")]
        }

    def _new_checkouts(self) -> list[str]:
        """Projects of others that were cloned into this one: an editor obeys their files when it is opened there."""
        gits = {path for path in self.known if path.endswith(GIT_CONFIG)}
        return [
            place.path.removesuffix(GIT_CONFIG)
            for place in self.after.places
            if place.path.endswith(GIT_CONFIG) and place.path not in gits and self.tree.lstat(place.path) is not None
        ]

    def leftovers(self) -> list[Leftover]:
        found: dict[str, Leftover] = {}
        for place in self.after.places:
            if place.group == UNSEEN and place.path not in self.known:
                found[place.path] = Leftover(NEW, place.path, place.reason)
            for path in self._files_of(place.path):
                for leftover in self._judge(place, path) if path not in found else ():
                    found[leftover.path] = _merged(found.get(leftover.path), leftover)
        # What any git command runs comes first, so that many others do not drown it.
        return sorted(found.values(), key=lambda leftover: (leftover.is_ordinary, not leftover.is_gits, leftover.path))

    def _files_of(self, place: str) -> list[str]:
        if place in self.after.files:
            return [place]
        return self.files_in.get(place, [])

    def _judge(self, place: Guarded, path: str) -> Iterator[Leftover]:
        old, new = self.before.get(path), self.after.files[path]
        if (old is not None and _is_same(old, new)) or self._is_editors_own(path):
            return
        what = NEW if old is None else CHANGED
        key = (place.group, posixpath.basename(path), new.content)
        if old is None and place.group not in (GIT, LINKS) and key in self.familiar:
            return
        is_ordinary = place.group in (BUILD, USE, TOOLS) or (
            place.group != GIT and any(is_inside(path, asked) for asked in self.by_request)
        )
        if is_ordinary and envrc.is_evaluated(self.tree, path):
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

    def _is_editors_own(self, path: str) -> bool:
        """Whether an editor on this host writes it all the time, in a place where the agent cannot write."""
        directory, _, name = path.rpartition("/")
        return name in WRITTEN_BY_EDITORS and any(is_inside(directory, one.path) for one in self.guard.held)

    def _details(self, place: Guarded, path: str, old: Trace | None, new: Trace) -> tuple[str, ...] | None:
        """What matters about the change; None if nothing does."""
        if new == ONE_TOO_MANY:
            return ("there are more files than were looked at",)
        if place.group == LINKS:
            return self._leaving(path, new)
        if stat.S_ISLNK(new.mode):
            return (f"-> {(new.content or b'').decode(errors='surrogateescape')}",)
        if place.reason in (CONFIG, INCLUDED):
            return _running_pairs(old, new)
        if place.reason == TODO:
            return _commands(new)
        if place.reason == POINTER:
            return self._pointer(path, old, new)
        if path.endswith("/package.json"):
            return _scripts(old, new)
        if path.endswith("/pyproject.toml"):
            return _build_system(old, new)
        return ()

    def _new_repository(self, path: str) -> str:
        """The directory of git to which the file belongs, if that was not there before; else ""."""
        for above in parents(path):
            if not any(is_below(above, root) for root in self.guard.roots):
                return ""  # never the project itself, which would be moved away as a whole
            if self.tree.lstat(f"{above}/HEAD") is not None and self.tree.lstat(f"{above}/objects") is not None:
                return "" if f"{above}/config" in self.known else above
        return ""

    def _leaving(self, path: str, new: Trace) -> tuple[str, ...] | None:
        target = (new.content or b"").decode(errors="surrogateescape")
        named = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        real = self.tree.resolve(path) or named
        leaves = [
            place
            for place in (named, real)
            if not any(is_inside(place, known) for known in (*self.guard.roots, *COMMON))
        ]
        return (f"-> {target}",) if leaves else None

    def _pointer(self, path: str, old: Trace | None, new: Trace) -> tuple[str, ...] | None:
        """What a pointer says, unless it is a new one of the usual kind.

        Worktrees and submodules that were added point to a directory of their own repository.
        """
        text = (new.content or b"").decode(errors="surrogateescape")
        said = pointed_to(text, "" if path.endswith("/commondir") else "gitdir: ")
        base = posixpath.dirname(path)
        named = posixpath.normpath(posixpath.join(base, said))
        if path.endswith("/commondir"):
            is_usual = posixpath.basename(posixpath.dirname(base)) == "worktrees" and named == posixpath.dirname(
                posixpath.dirname(base)
            )
        else:
            is_usual = any(is_inside(named, root) for root in self.guard.roots) and "/.git/" in f"{named}/"
        return None if old is None and is_usual else (said,)


def _by_directory(moment: Moment) -> dict[str, list[str]]:
    """The files of each place that is a directory."""
    found: dict[str, list[str]] = {place.path: [] for place in moment.places}
    for path in moment.files:
        for above in parents(path):
            if above in found:
                found[above].append(path)
    return found


def _is_same(old: Trace, new: Trace) -> bool:
    if old.identity == new.identity:
        return True
    return old.content is not None and old.content == new.content and old.mode == new.mode


def _merged(one: Leftover | None, other: Leftover) -> Leftover:
    if one is None:
        return other
    return one.replace(details=tuple(dict.fromkeys((*one.details, *other.details))))


def _pairs(trace: Trace | None) -> list[tuple[str, str]]:
    content = (trace.content or b"") if trace is not None else b""
    return [
        (name, value)
        for name, value in gitconfig.parse(content.decode(errors="surrogateescape"))
        if is_include(name) or name == "core.hookspath" or runs_program(name, value)
    ]


def _running_pairs(old: Trace | None, new: Trace) -> tuple[str, ...] | None:
    if new.content is None:
        return TOO_LARGE
    before = _pairs(old)
    added = [pair for pair in _pairs(new) if pair not in before]
    return tuple(f"{name} = {value}" for name, value in added) or None


def _commands(new: Trace) -> tuple[str, ...] | None:
    if new.content is None:
        return TOO_LARGE
    lines = new.content.decode(errors="replace").splitlines()
    return tuple(line.strip() for line in lines if line.split()[:1] in (["exec"], ["x"])) or None


def _scripts(old: Trace | None, new: Trace) -> tuple[str, ...] | None:
    """The scripts of a package that changed. In a new package, only those count that run without being named."""
    if new.content is None:
        return TOO_LARGE
    before, after = _table(old, "scripts"), _table(new, "scripts")
    changed = [name for name, script in after.items() if before.get(name) != script]
    changed = changed if old is not None else [name for name in changed if name in RUN_BY_THEMSELVES]
    return tuple(changed) or None


def _table(trace: Trace | None, name: str) -> dict[str, object]:
    import json

    try:
        document = json.loads((trace.content or b"{}") if trace is not None else b"{}")
    except (ValueError, RecursionError):
        return {}
    table = document.get(name) if isinstance(document, dict) else None
    return table if isinstance(table, dict) else {}


def _build_system(old: Trace | None, new: Trace) -> tuple[str, ...] | None:
    """Whether what builds a package has changed: unlike dependencies, that changes rarely.

    In a new package it counts if the package is built by code of its own.
    """
    if new.content is None:
        return TOO_LARGE
    before, after = _toml_table(old, "build-system"), _toml_table(new, "build-system")
    if old is None:
        return ("build-system",) if "backend-path" in after else None
    return ("build-system",) if before != after else None


def _toml_table(trace: Trace | None, name: str) -> dict[str, object]:
    import tomllib

    try:
        document = tomllib.loads(((trace.content or b"") if trace is not None else b"").decode())
    except (ValueError, RecursionError):
        return {}
    table = document.get(name)
    return table if isinstance(table, dict) else {}
