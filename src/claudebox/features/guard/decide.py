"""Decides what is read-only in the box because the host runs it later, and keeps it where it is.

A mount holds the file at its path. The directories above it are bound onto themselves, because a directory in which
something is mounted can be renamed, and another one can be put in its place. What does not exist cannot be a mount
point without leaving a trace on the host: it is looked for when the box has ended.
"""

from __future__ import annotations

import posixpath
import stat

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features.guard.git import Account, accept_detours, git_directories, git_guarded
from claudebox.features.guard.others import find_others
from claudebox.features.guard.table import DOT_GIT, GIT, IN_ROOTS, OWN, UNSEEN, WANTED, held_rows
from claudebox.features.guard.ways import find_shadowing, find_ways
from claudebox.features.guard.whole import WHOLE, hold_whole, outermost, walled_parts
from claudebox.host import Host
from claudebox.host.git import host_configs
from claudebox.host.git.directory import find_detours
from claudebox.host.secrets import Opening, openings
from claudebox.host.tree import Tree
from claudebox.host.walk import Entry, list_directory, walk_project
from claudebox.model import RO, RW, Finding, Guard, Guarded, Mount, Origin, Ways
from claudebox.mounts import arrange, find_holder
from claudebox.paths import absolute, is_below, is_inside, move
from claudebox.record import Record
from claudebox.settings import PROJECT_FILE
from claudebox.settings.table import HIDES, WRITABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RULE = "guard"
DIRECT = Origin.of_rule(RULE, "git's worktrees: they are on this host at once")
SETTINGS = "settings"
MOST_HELD = 1000  # bwrap takes no more than 9000 words
MOST_LINKED = 200  # files of one directory that are looked at for hard links
ALL_HELD = "all of it is read-only in the box, since {}; to let the agent work: --writable {}"
LIES_IN = "lies in {}: programs of this host obey what is there, and the agent can change it"
MADE = "and it is not held: tools make what is there"
FILLED = "is on your PATH: what the agent installs there are commands of this shell"
HERE = "has the directory that you are in: every program that the agent writes is a command there"


def decide(facts: Facts, draft: Draft) -> Contribution:
    tree, project, environ = facts.tree, facts.project, facts.host.environ
    account = Account(facts.host.person.home, host_configs(environ, facts.host.person.home))
    others = [wish.source for wish in draft.wished if wish.kind == RW and wish.is_dir]
    entries = (*facts.entries, *(entry for directory in others for entry in list_directory(tree, directory, WANTED)))
    opened = openings(facts.settings[WRITABLE], project, facts.host.person.home)
    outside = [facts.repository.outside] if facts.repository.outside else []
    roots = tuple(dict.fromkeys((project, *others, *outside)))
    # A project that is a layer is as it was when the box has ended: there is nothing to look for.
    reached = tuple(others) if facts.is_reviewed else roots
    ways = find_ways(facts.host, roots)
    found = find_places(tree, roots, entries, account, ways, refuses=True)
    guard = plan_guard(tree, found.guarded, draft.mounts, opened)
    guard = guard.replace(
        opened=(*guard.opened, *accept_detours(found.detours, opened)),
        others=found.others,
        roots=reached,
        hidden=frozenset(
            absolute(hide.text, project, facts.host.person.home)
            for hide in facts.settings[HIDES]
            if not hide.origin.is_projects
        ),
        git_configs=account.configs,
        ways=ways,
    )
    findings = (*guard_findings(tree, guard, opened, project), *way_findings(guard, ways, project))
    guard = hold_whole(facts, guard, opened)
    guards = guard_mounts(tree, guard, list(arrange(draft.mounts)), opened)
    pins = tuple(mount.path for mount in guards)
    return Contribution(mounts=tuple(guards), pins=pins, findings=findings, records=(guard,))


class Found(Record):
    """What counts in the directories that the agent can write, at one moment, whether it exists or not."""

    guarded: list[Guarded]
    detours: list[Entry]  # what git did not write in its own directories
    others: tuple[Guarded, ...]  # what no mount holds


def find_places(
    tree: Tree, roots: tuple[str, ...], entries: Iterable[Entry], account: Account, ways: Ways, *, refuses: bool = False
) -> Found:
    """Find it before the box and after it in the same way. `entries` is what a walk found."""
    entries = tuple(entries)
    repositories = {*roots, *(posixpath.dirname(entry.path) for entry in entries if entry.name == DOT_GIT)}
    named = [one for entry in entries for one in _by_table(tree, entry, repositories)]
    guarded = dict.fromkeys([*git_guarded(tree, entries, account, refuses=refuses), *named])
    git_dirs = [one for one in git_directories(guarded) if any(is_inside(one, root) for root in roots)]
    detours = find_detours(tree, dict.fromkeys(git_dirs), roots)
    # That something outside leads there says more than a name, except to git.
    leading = {way.path: way for way in ways.guarded}
    return Found(
        [*(one for one in guarded if one.group == GIT or one.path not in leading), *leading.values()],
        detours,
        (*find_others(entries, roots, git_dirs, detours), *find_shadowing(tree, ways), own_settings(roots[0])),
    )


def _by_table(tree: Tree, entry: Entry, roots: set[str]) -> Iterator[Guarded]:
    for row in held_rows(entry.name):
        if row.group in IN_ROOTS and posixpath.dirname(entry.path) not in roots:
            continue
        for part in walled_parts(tree, entry.path) if row.is_tools else [row.inner]:
            yield Guarded(f"{entry.path}/{part}" if part else entry.path, row.group, row.reason)


def own_settings(project: str) -> Guarded:
    """The project's settings for claudebox. Where there are some, the box has them read-only."""
    return Guarded(f"{project}/{PROJECT_FILE}", SETTINGS, OWN)


def plan_guard(tree: Tree, candidates: list[Guarded], mounts: list[Mount], opened: list[Opening]) -> Guard:
    """Judge each place by what is there. Only what the agent could write matters."""
    writable = [mount.source for mount in mounts if mount.kind == RW]
    parts: dict[str, list[Guarded]] = {"held": [], "opened": [], "loose": [], "absent": []}
    for fate, candidate in judge_places(tree, candidates, writable, opened):
        parts[fate].append(candidate)
        if fate == "absent":
            tree.check_lack(candidate.path)
    guard = Guard().replace(**{fate: tuple(members) for fate, members in parts.items()})
    if len(guard.held) > MOST_HELD:
        raise Problem(
            f"the project has {len(guard.held)} places that this host may run later, more than can be guarded",
            "remove what an agent has left, or let it change some: --writable DIRECTORY",
        )
    return guard.replace(held=outermost(guard.held))


def judge_places(
    tree: Tree, candidates: list[Guarded], writable: list[str], opened: list[Opening]
) -> Iterator[tuple[str, Guarded]]:
    """What becomes of each place, and of those to which symlinks lead from there."""
    waiting, seen = list(candidates), {candidate.path for candidate in candidates}
    while waiting:
        candidate = waiting.pop(0)
        if not any(is_inside(candidate.path, source) for source in writable):
            continue
        fate, target = _judge(tree, candidate.path, opened)
        yield fate, candidate
        if target and target not in seen:
            seen.add(target)
            waiting.append(candidate.replace(path=target))


def _judge(tree: Tree, path: str, opened: list[Opening]) -> tuple[str, str]:
    """What becomes of a place, and where it leads if it is a symlink."""
    status = tree.lstat(path)
    if status is None:
        return "absent", ""
    if any(opening.opens(path) for opening in opened):
        return "opened", ""
    real = tree.resolve(path)
    if real != path:
        return "loose", real or ""
    return ("held", "") if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) else ("loose", "")


def find_held(host: Host, project: str, layers: tuple[str, ...]) -> list[Guarded]:
    """Every place that a box without a layer could not change: for those who bring changes to the project later.

    `layers` are the directories of the project that a box had as layers. If one of them is not a tool's own, of which
    only parts matter, it was held as a whole, and is now, too, even if what led there is gone.
    """
    account = Account(host.person.home, host_configs(host.environ, host.person.home))
    ways = find_ways(host, (project,))
    candidates = find_places(host.tree, (project,), walk_project(host.tree, project, WANTED), account, ways).guarded
    found = {one.path: one for _, one in judge_places(host.tree, candidates, [project], [])}
    whole = (f"{project}/{layer}" for layer in layers if layer and posixpath.basename(layer) not in WHOLE)
    more = (*ways.made, *((path, "this host runs it") for path in whole))
    return [*found.values(), *(Guarded(path, GIT, why) for path, why in more if path not in found)]


def guard_mounts(tree: Tree, guard: Guard, mounts: list[Mount], opened: list[Opening]) -> list[Mount]:
    """Cover each guarded place in every writable mount that shows it, under whatever name."""
    found: list[Mount] = []
    for guarded in guard.held:
        is_dir, origin = tree.is_plain_directory(guarded.path), Origin.of_rule(RULE, guarded.reason)
        for path in _writable_appearances(guarded.path, mounts):
            found.append(Mount(RO, path, origin, source=guarded.path, is_dir=is_dir))
            found += _parts_opened(tree, guarded.path, path, opened) if is_dir else []
            direct = (place for place in guard.direct if is_below(place, guarded.path))
            found += [Mount(RW, move(place, guarded.path, path), DIRECT, source=place) for place in direct]
        # A mount of a part of it does not open that part.
        parts = (mount for mount in mounts if mount.kind == RW and is_below(mount.source, guarded.path))
        found += [mount.replace(kind=RO, origin=origin) for mount in parts]
    return found


def _writable_appearances(host_path: str, mounts: list[Mount]) -> list[str]:
    showing = (mount for mount in mounts if mount.kind == RW and is_inside(host_path, mount.source))
    places = [(mount, move(host_path, mount.source, mount.path)) for mount in showing]
    # Where something else lies over it, the box does not have it there.
    return [path for mount, path in places if find_holder(path, mounts) == mount]


def _parts_opened(tree: Tree, held: str, path: str, opened: list[Opening]) -> list[Mount]:
    return [
        Mount(RW, move(opening.path, held, path), opening.said.origin, opening.path, is_dir=tree.is_dir(opening.path))
        for opening in opened
        if is_below(opening.path, held) and tree.resolve(opening.path) == opening.path
    ]


def is_guard(mount: Mount) -> bool:
    return mount.origin.is_rule(RULE)


def guard_findings(tree: Tree, guard: Guard, opened: list[Opening], project: str) -> list[Finding]:
    def found(kind: str, path: str, text: str) -> Finding:
        return Finding(kind, within(path, project), text)

    loose = "leads through a symlink, which no mount can hold ({}): looked at when the box has ended"
    linked = "has another name, a hard link, through which the agent may change it ({})"
    unseen = (one for one in (*guard.held, *guard.others) if one.group == UNSEEN)
    links = ((path, one.reason) for one in guard.held for path in _linked_elsewhere(tree, one.path))
    return [
        *(_opening_finding(tree, guard, opening) for opening in opened),
        *(found(Finding.NOTE, one.path, loose.format(one.reason)) for one in guard.loose),
        *(found(Finding.RISK, one.path, one.reason) for one in unseen),
        *(found(Finding.RISK, path, linked.format(reason)) for path, reason in links),
    ]


def way_findings(guard: Guard, ways: Ways, project: str) -> list[Finding]:
    """What is to be said about the ways from outside that no line about a guarded file says."""
    findings = [
        Finding(Finding.NOTE, held.path, ALL_HELD.format(held.reason, "." if held.path == project else held.path))
        for held in guard.held
        if held.path in guard.roots
    ]
    findings += [Finding(Finding.RISK, root, LIES_IN.format(way)) for root, way in ways.above]
    findings += [Finding(Finding.NOTE, within(made, project), f"{why}, {MADE}") for made, why in ways.made]
    findings += [Finding(Finding.NOTE, within(filled, project), FILLED) for filled in ways.filled]
    return [*findings, Finding(Finding.RISK, "PATH", HERE)] if ways.has_here else findings


def _opening_finding(tree: Tree, guard: Guard, opening: Opening) -> Finding:
    subject, rule = opening.said.text, opening.said.origin.shown
    is_there = tree.lstat(opening.path) is not None
    is_part = is_there and any(is_below(opening.path, guarded.path) for guarded in guard.held)
    if is_part or any(opening.opens(guarded.path) for guarded in guard.opened):
        return Finding(Finding.RISK, subject, f"{rule} lets the agent change what this host runs later")
    if not is_there:
        return Finding(Finding.NOTE, subject, f"{rule} would open it, but it does not exist")
    return Finding(Finding.NOTE, subject, f"{rule} opens nothing: nothing there is guarded")


def _linked_elsewhere(tree: Tree, path: str) -> list[str]:
    names = tree.entries(path)[:MOST_LINKED] if tree.is_plain_directory(path) else []
    statuses = {file: tree.lstat(file) for file in [f"{path}/{name}" for name in names] or [path]}
    return [
        file for file, one in statuses.items() if one is not None and stat.S_ISREG(one.st_mode) and one.st_nlink > 1
    ]


def within(path: str, project: str) -> str:
    """The path as people call it in the project."""
    return path[len(project) + 1 :] if is_below(path, project) else path
