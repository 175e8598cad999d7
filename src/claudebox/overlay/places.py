"""Finds what this host runs or obeys in the directories that an agent can write, at one moment.

The same search decides before the box what is held, and says afterwards what to compare with what was there before.
"""

from __future__ import annotations

import posixpath
import stat

from claudebox.errors import Problem
from claudebox.host import Host
from claudebox.host.git import host_configs
from claudebox.host.git.directory import OPERATIONS, STRANGE, find_detours
from claudebox.host.secrets import Opening
from claudebox.host.tree import Tree
from claudebox.host.walk import BEYOND, LINK, PRIVILEGED, SKIPPED, UNREAD, WORKTREES, Entry, walk_project
from claudebox.model import Guarded, Ways
from claudebox.overlay.git import Account, git_directories, git_guarded
from claudebox.overlay.table import (
    DOT_GIT,
    GIT,
    IN_ROOTS,
    OWN,
    TOOLS,
    UNSEEN,
    WALLED,
    WANTED,
    WHOLE,
    Reason,
    held_rows,
    is_harmless,
    why,
)
from claudebox.overlay.ways import find_shadowing, find_ways
from claudebox.paths import is_below, is_inside, parents
from claudebox.record import Record
from claudebox.settings import PROJECT_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Roots = tuple[str, ...]  # where the agent can write

SETTINGS = "settings"
LINKS, LEAVING = "links", "a symlink that leaves the project"
PRIVILEGES, PRIVILEGE = "privileges", "makes whoever starts it you, or one of your group"
NOT_LISTED = "too deep, or cannot be listed: nothing in it was looked at"
NOT_REACHED = "one directory too many: what follows was not looked at"
NOT_GITS = "git or another program would obey it there"
UNDER_WAY = "the box began or changed what is in progress here: git rebase --continue and --abort obey it"
HELD, OPENED, LOOSE, ABSENT = "held", "opened", "loose", "absent"  # what becomes of a place, as fields of a Guard


class Found(Record):
    """What counts, whether it exists or not."""

    guarded: list[Guarded]
    detours: list[Entry]  # what git did not write in its own directories
    others: tuple[Guarded, ...]  # what no mount holds


def find_places(
    tree: Tree,
    roots: Roots,
    entries: Iterable[Entry],
    account: Account,
    ways: Ways,
    *,
    since: int = 0,
    refuses: bool = False,
) -> Found:
    """`entries` is what a walk found; `since` is when somebody looked last, in nanoseconds."""
    entries = tuple(entries)
    repositories = {*roots, *(posixpath.dirname(entry.path) for entry in entries if entry.name == DOT_GIT)}
    named = [one for entry in entries for one in _by_table(tree, entry, repositories)]
    guarded = dict.fromkeys([*git_guarded(tree, entries, account, refuses=refuses), *named])
    git_dirs = [one for one in git_directories(guarded) if any(is_inside(one, root) for root in roots)]
    own_first = sorted(dict.fromkeys(git_dirs), key=lambda one: one != f"{roots[0]}/{DOT_GIT}")
    detours = find_detours(tree, own_first, roots, since)
    # That something outside leads there says more than a name, except to git.
    leading = {way.path: way for way in ways.guarded}
    return Found(
        [*(one for one in guarded if one.group == GIT or one.path not in leading), *leading.values()],
        detours,
        (*_find_others(entries, roots, git_dirs, detours), *find_shadowing(tree, ways), own_settings(roots[0])),
    )


def _by_table(tree: Tree, entry: Entry, roots: set[str]) -> Iterator[Guarded]:
    for row in held_rows(entry.name):
        if row.group in IN_ROOTS and posixpath.dirname(entry.path) not in roots:
            continue
        for part in walled_parts(tree, entry.path) if row.is_tools else [_inner(tree, entry.path, row.inner)]:
            yield Guarded(f"{entry.path}/{part}" if part else entry.path, row.group, row.reason)


def _inner(tree: Tree, directory: str, inner: str) -> str:
    """A part of a directory; or the file on the way to it, which may say where the rest is."""
    above = (one for one in parents(f"/{inner}")[::-1] if tree.is_file(f"{directory}{one}"))
    return next(above, f"/{inner}")[1:]


def walled_parts(tree: Tree, directory: str) -> list[str]:
    """The names in a tool's directory that are held where no layer holds all of it; "" is the directory itself."""
    try:
        return [name for name in tree.names(directory) if name.lower().startswith(WALLED)]
    except Problem:
        return [""]


def own_settings(project: str) -> Guarded:
    """The project's settings for claudebox. Where there are some, the box has them read-only."""
    return Guarded(f"{project}/{PROJECT_FILE}", SETTINGS, OWN)


def _find_others(
    entries: Iterable[Entry], roots: Roots, git_dirs: Iterable[str], detours: Iterable[Entry]
) -> tuple[Guarded, ...]:
    """Every place that is compared when the box has ended, besides those that are held. Grave ones come first."""
    paths = [f"{git_dir}/{name}" for git_dir in git_dirs for name in OPERATIONS]
    found = {path: Guarded(path, GIT, UNDER_WAY) for path in paths}
    found.update((entry.path, Guarded(entry.path, GIT, NOT_GITS)) for entry in detours if entry.kind == STRANGE)
    named: dict[str, Guarded] = {}
    for entry in entries:  # nearest to the root first
        path, kind = entry.path, entry.kind
        if kind in (UNREAD, BEYOND):
            found[path] = Guarded(path, UNSEEN, NOT_LISTED if kind == UNREAD else NOT_REACHED)
        elif kind == PRIVILEGED:
            found[path] = Guarded(path, PRIVILEGES, PRIVILEGE)
        elif (
            entry.name != DOT_GIT
            and not is_harmless(entry.name)  # so that thousands of `.gitkeep` cost little
            and not _is_covered(path, found, named)
            and (reason := judged(path, roots))
        ):
            (found if reason.is_grave else named)[path] = Guarded(path, TOOLS, reason.text)
        elif kind == LINK:
            found[path] = Guarded(path, LINKS, LEAVING)
    return (*found.values(), *named.values())


def _is_covered(path: str, *found: dict[str, Guarded]) -> bool:
    """Whether a directory above is looked at with all its files."""
    for above in parents(path):
        if above.endswith(WORKTREES):
            return False
        if any(above in places and places[above].group == TOOLS for places in found):
            return True
    return False


def judged(path: str, roots: Roots) -> Reason | None:
    """Why this host may obey a path, by its name below the directory that the agent can write."""
    return next((why(path[len(root) + 1 :]) for root in roots if is_below(path, root)), None)


def is_whole(path: str, roots: Roots) -> bool:
    """Whether something obeys whatever is in a place, so that no name in it says that a tool made what is there."""
    reason = judged(path, roots)
    return reason is not None and reason.is_grave and posixpath.basename(path) not in SKIPPED


def find_fates(
    tree: Tree, candidates: Iterable[Guarded], writable: list[str], opened: list[Opening]
) -> Iterator[tuple[str, Guarded]]:
    """What becomes of each place that an agent could write, and of those to which symlinks lead from there."""
    waiting = list(candidates)
    seen = {candidate.path for candidate in waiting}
    while waiting:
        candidate = waiting.pop(0)
        if not any(is_inside(candidate.path, source) for source in writable):
            continue
        fate, target = _fate(tree, candidate.path, opened)
        yield fate, candidate
        if target and target not in seen:
            seen.add(target)
            waiting.append(candidate.replace(path=target))


def _fate(tree: Tree, path: str, opened: list[Opening]) -> tuple[str, str]:
    """What becomes of a place, and where it leads if it is a symlink."""
    status = tree.lstat(path)
    if status is None:
        return ABSENT, ""
    if any(opening.opens(path) for opening in opened):
        return OPENED, ""
    real = tree.resolve(path)
    if real != path:
        return LOOSE, real or ""
    return (HELD, "") if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) else (LOOSE, "")


def find_held(host: Host, project: str, layers: tuple[str, ...]) -> list[Guarded]:
    """Every place that a box without a layer could not change: for those who bring changes to the project later.

    `layers` are the directories of the project that a box had as layers. If one of them is not a tool's own, of which
    only parts matter, it was held as a whole, and is now, too, even if what led there is gone.
    """
    account = Account(host.person.home, host_configs(host.environ, host.person.home))
    ways = find_ways(host, (project,))
    candidates = find_places(host.tree, (project,), walk_project(host.tree, project, WANTED), account, ways).guarded
    found = {one.path: one for _, one in find_fates(host.tree, candidates, [project], [])}
    whole = (f"{project}/{layer}" for layer in layers if layer and posixpath.basename(layer) not in WHOLE)
    more = (*ways.made, *((path, "this host runs it") for path in whole))
    return [*found.values(), *(Guarded(path, GIT, why) for path, why in more if path not in found)]


MANIFESTS = ("package.json", "pyproject.toml", "setup.cfg", "tox.ini")
MANIFEST = "tools that your commit hooks run obey it"
MODULE = "a hook or git's configuration runs python -m, which searches here first"
MODULES = (".py", ".pyc", ".so")
HOOK_MANAGERS = (".husky", ".lefthook", "lefthook", ".pre-commit-config", "prek.toml")


def find_manifests(tree: Tree, root: str, *, has_hooks: bool) -> tuple[Guarded, ...]:
    """What tools read that the hooks of a repository run."""
    has_hooks |= any(name.startswith(HOOK_MANAGERS) for name in tree.entries(root))
    return tuple(Guarded(f"{root}/{name}", TOOLS, MANIFEST) for name in MANIFESTS if has_hooks)


def says_module(text: bytes) -> bool:
    """Whether a hook or a configuration has `python -m`, so that a module in the checkout may be run instead."""
    words = [word.strip(b"\"'") for word in text.split()]
    return b"py" in text and any(word[:1] == b"-" != word[1:2] and b"m" in word for word in words)  # `-um`, too


def find_modules(tree: Tree, root: str) -> set[str]:
    """What Python would import from this directory: an empty one, too, since somebody may fill it later.

    A directory with an `__init__.py` comes before a module elsewhere; one without it does not.
    """
    names = [name for name in tree.entries(root) if name.partition(".")[0].isidentifier() and name not in SKIPPED]
    paths = [f"{root}/{name}" for name in names if name.endswith(MODULES) or tree.is_dir(f"{root}/{name}")]
    packages = [f"{path}/__init__{end}" for path in paths for end in MODULES if tree.lstat(f"{path}/__init__{end}")]
    return {*paths, *packages}
