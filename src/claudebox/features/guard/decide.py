"""Decides what is read-only in the box because the host runs it later, and keeps it where it is.

A mount holds the file at its path. The directories above it are bound onto themselves, because a directory in which
something is mounted can be renamed, and another one can be put in its place. What does not exist cannot be a mount
point without leaving a trace on the host: it is looked for when the box has ended.
"""

from __future__ import annotations

import posixpath
import stat

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features.guard.git import Account, accept_detours, detours_in, git_guarded
from claudebox.features.guard.table import (
    DOT_GIT,
    GIT,
    SHELL,
    UNSEEN,
    WANTED,
    GuardRow,
    find_tools,
    ordinary_rows_of,
    rows_of,
)
from claudebox.features.guard.ways import Ways, find_shadowing, find_ways
from claudebox.features.guard.whole import hold_whole, outermost
from claudebox.host.git.config import host_configs
from claudebox.host.tree import Tree
from claudebox.host.walk import BEYOND, LINK, PRIVILEGED, UNREAD, Entry, list_directory
from claudebox.model import RO, RW, Finding, Guard, Guarded, Mount, Origin, Step
from claudebox.mounts import arrange, find_holder
from claudebox.paths import is_below, is_inside, move
from claudebox.problem import Problem
from claudebox.settings.values import PROJECT_FILE
from claudebox.trust.secret_places import Opening, openings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RULE = "guard"
DIRECT = Origin.of_rule(RULE, "git's worktrees: they are on this host at once")
MOST_HELD = 1000  # bwrap takes no more than 9000 words
MOST_LINKED = 200  # files of one directory that are looked at for hard links

# Groups and reasons for what is only looked at when the box has ended.
LEAVING = "a symlink that leaves the project"
LINKS = "links"
SETTLES = "claudebox obeys it in the next box"
SETTINGS = "settings"
PRIVILEGE = "makes whoever starts it you, or one of your group"
PRIVILEGES = "privileges"
HIDDEN = "cannot be listed: nothing in it was looked at"
TODO = "git rebase --continue runs it"
REPAIRED = "git worktree repair writes there"
TODO_LISTS = ("rebase-merge/git-rebase-todo", "sequencer/todo")


def decide(facts: Facts, draft: Draft) -> Contribution:
    tree, project, environ = facts.tree, facts.project, facts.host.environ
    account = Account(facts.host.person.home, host_configs(environ, facts.host.person.home))
    others = [wish.source for wish in draft.wished if wish.kind == RW and wish.is_dir]
    entries = (*facts.entries, *(entry for directory in others for entry in list_directory(tree, directory, WANTED)))
    opened = openings(facts.settings.writable, project, facts.host.person.home)
    outside = [facts.repository.outside] if facts.repository.outside else []
    roots = tuple(dict.fromkeys((project, *others, *outside)))
    # A project that is a layer is as it was when the box has ended: there is nothing to look for.
    reached = tuple(others) if facts.is_reviewed else roots
    ways = find_ways(facts.host, roots)
    candidates = with_ways(find_guarded(tree, (project, *others), entries, account), ways.guarded)
    guard = plan_guard(tree, candidates, draft.mounts, opened)
    guard = guard.replace(
        opened=(*guard.opened, *accept_detours(detours_in(tree, candidates, roots), opened)),
        others=(
            *find_others(entries, candidates),
            *find_tools(tree, (project, *others)),
            *find_shadowing(tree, ways.filled, ways.commands),
            *ways.made,
            own_settings(project),
        ),
        roots=reached,
        git_configs=account.configs,
        directories=facts.directories,
        ways=ways.guarded,
        made=ways.made,
        filled=ways.filled,
        commands=ways.commands,
    )
    findings = (*guard_findings(tree, guard, opened, project), *way_findings(guard, ways, project))
    guard = hold_whole(facts, guard, opened)
    guards = guard_mounts(tree, guard, list(arrange(draft.mounts)), opened)
    return Contribution(
        mounts=tuple(guards),
        pins=tuple(mount.path for mount in guards),
        findings=findings,
        decided=(("guard", guard),),
    )


NAMING = (".envrc", ".mise", "mise.", ".rtx")  # how files of direnv and mise begin, which name others


def decide_report(_: Facts, draft: Draft) -> Contribution:
    """Look afterwards at what has changed. What was kept in layers comes first: some of it may have landed then."""
    guard: Guard = dict(draft.decided)["guard"]
    return Contribution(steps=(Step(Step.AFTER, "guard"),) if guard.roots else ())


def find_guarded(tree: Tree, roots: Iterable[str], entries: Iterable[Entry], account: Account) -> list[Guarded]:
    """Everything that the host would run, whether it exists or not. `entries` is what a walk of the project found."""
    entries = tuple(entries)
    roots = {*roots, *(posixpath.dirname(entry.path) for entry in entries if entry.name == DOT_GIT)}
    found = [guarded for entry in entries for guarded in _by_table(entry, roots)]
    for entry in entries:
        if entry.name.startswith(NAMING):
            from claudebox.features.guard import envrc

            found += [Guarded(path, SHELL, envrc.NAMED) for path in envrc.named_places(tree, entry.path)]
    return list(dict.fromkeys([*git_guarded(tree, entries, account), *found]))


def with_ways(candidates: Iterable[Guarded], ways: Iterable[Guarded]) -> list[Guarded]:
    """All of them, each place once. That something outside leads there says more than a name, except to git."""
    by_path = {way.path: way for way in ways}
    return [*(one for one in candidates if one.group == GIT or one.path not in by_path), *by_path.values()]


def _by_table(entry: Entry, roots: set[str]) -> Iterator[Guarded]:
    for row in rows_of(entry.name):
        if not row.in_roots or posixpath.dirname(entry.path) in roots:
            yield _part(entry, row)


def _part(entry: Entry, row: GuardRow) -> Guarded:
    return Guarded(f"{entry.path}/{row.inner}" if row.inner else entry.path, row.group, row.reason)


def find_others(entries: Iterable[Entry], guarded: Iterable[Guarded]) -> tuple[Guarded, ...]:
    """What is not guarded but looked at afterwards: symlinks, what runs on request, and what git would go on with."""
    return tuple(dict.fromkeys([*_looked_at(entries), *_unfinished(guarded)]))


def own_settings(project: str) -> Guarded:
    """The project's settings for claudebox. Where there are some, the box has them read-only."""
    return Guarded(f"{project}/{PROJECT_FILE}", SETTINGS, SETTLES)


def _looked_at(entries: Iterable[Entry]) -> Iterator[Guarded]:
    for entry in entries:
        if entry.kind in (UNREAD, BEYOND):
            yield Guarded(entry.path, UNSEEN, HIDDEN)
        elif entry.kind == LINK:
            yield Guarded(entry.path, LINKS, LEAVING)
        elif entry.kind == PRIVILEGED:
            yield Guarded(entry.path, PRIVILEGES, PRIVILEGE)
        for row in ordinary_rows_of(entry.name):
            yield _part(entry, row)


def _unfinished(guarded: Iterable[Guarded]) -> Iterator[Guarded]:
    """The lists of an unfinished rebase, with commands among the next steps; and where a worktree is to be repaired."""
    for one in guarded:
        if one.group == GIT and posixpath.basename(one.path) == "config":
            for name in TODO_LISTS:
                yield Guarded(f"{posixpath.dirname(one.path)}/{name}", GIT, TODO)
            yield Guarded(f"{posixpath.dirname(one.path)}/gitdir", GIT, REPAIRED)


def plan_guard(tree: Tree, candidates: list[Guarded], mounts: list[Mount], opened: list[Opening]) -> Guard:
    """Judge each place by what is there. Only what the agent could write matters."""
    writable = [mount.source for mount in mounts if mount.kind == RW]
    parts: dict[str, list[Guarded]] = {"held": [], "opened": [], "loose": [], "absent": []}
    for fate, candidate in judge_places(tree, candidates, writable, opened):
        parts[fate].append(candidate)
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


def guard_mounts(tree: Tree, guard: Guard, mounts: list[Mount], opened: list[Opening]) -> list[Mount]:
    """Cover each guarded place in every writable mount that shows it, under whatever name."""
    found: list[Mount] = []
    for guarded in guard.held:
        is_dir, origin = tree.is_plain_directory(guarded.path), Origin.of_rule(RULE, guarded.reason)
        for path in _writable_appearances(guarded.path, mounts):
            found.append(Mount(RO, path, origin, source=guarded.path, is_dir=is_dir))
            found += _parts_opened(tree, guarded.path, path, opened) if is_dir else []
            found += [
                Mount(RW, move(place, guarded.path, path), DIRECT, source=place)
                for place in guard.direct
                if is_below(place, guarded.path)
            ]
        # A mount of a part of it does not open that part.
        found += [
            mount.replace(kind=RO, origin=origin)
            for mount in mounts
            if mount.kind == RW and is_below(mount.source, guarded.path)
        ]
    return found


def _writable_appearances(host_path: str, mounts: list[Mount]) -> list[str]:
    places = [
        (mount, move(host_path, mount.source, mount.path))
        for mount in mounts
        if mount.kind == RW and is_inside(host_path, mount.source)
    ]
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
    findings = [_opening_finding(tree, guard, opening) for opening in opened]
    findings += [
        Finding(
            Finding.NOTE,
            within(guarded.path, project),
            f"leads through a symlink, which no mount can hold ({guarded.reason}): looked at when the box has ended",
        )
        for guarded in guard.loose
    ]
    findings += [
        Finding(Finding.RISK, within(guarded.path, project), guarded.reason)
        for guarded in guard.held
        if guarded.group == UNSEEN
    ]
    for guarded in guard.held:
        findings += [
            Finding(
                Finding.RISK,
                within(path, project),
                f"has another name, a hard link, through which the agent may change it ({guarded.reason})",
            )
            for path in _linked_elsewhere(tree, guarded.path)
        ]
    return findings


def way_findings(guard: Guard, ways: Ways, project: str) -> list[Finding]:
    """What is to be said about the ways from outside that no line about a guarded file says."""
    findings = []
    for held in guard.held:
        if held.path in guard.roots:
            opens = "." if held.path == project else held.path
            text = f"all of it is read-only in the box, since {held.reason}; to let the agent work: --writable {opens}"
            findings.append(Finding(Finding.NOTE, held.path, text))
    for root, way in ways.above:
        text = f"lies in {way}: programs of this host obey what is there, and the agent can change it"
        findings.append(Finding(Finding.RISK, root, text))
    for filled in ways.filled:
        text = "is on your PATH: what the agent installs there are commands of this shell"
        findings.append(Finding(Finding.NOTE, within(filled, project), text))
    if ways.has_here:
        text = "has the directory that you are in: every program that the agent writes is a command there"
        findings.append(Finding(Finding.RISK, "PATH", text))
    return findings


def _opening_finding(tree: Tree, guard: Guard, opening: Opening) -> Finding:
    subject, rule = opening.said.text, opening.said.origin.shown
    if any(opening.opens(guarded.path) for guarded in guard.opened):
        return Finding(Finding.RISK, subject, f"{rule} lets the agent change what this host runs later")
    if tree.lstat(opening.path) is None:
        return Finding(Finding.NOTE, subject, f"{rule} would open it, but it does not exist")
    if any(is_below(opening.path, guarded.path) for guarded in guard.held):
        return Finding(Finding.RISK, subject, f"{rule} lets the agent change what this host runs later")
    return Finding(Finding.NOTE, subject, f"{rule} opens nothing: nothing there is guarded")


def _linked_elsewhere(tree: Tree, path: str) -> list[str]:
    names = tree.entries(path)[:MOST_LINKED] if tree.is_plain_directory(path) else []
    files = [f"{path}/{name}" for name in names] or [path]
    return [file for file in files if _has_names(tree, file)]


def _has_names(tree: Tree, path: str) -> bool:
    status = tree.lstat(path)
    return status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def within(path: str, project: str) -> str:
    """The path as people call it in the project."""
    return path[len(project) + 1 :] if is_below(path, project) else path
