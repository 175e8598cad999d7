"""What this host runs later: read-only in the box and kept where it is, and reported when the box has ended.

A mount holds the file at its path. The directories above it are bound onto themselves, because a directory in which
something is mounted can be renamed, and another one can be put in its place. What does not exist cannot be a mount
point without leaving a trace on the host: it is looked for when the box has ended.
"""

from __future__ import annotations

import posixpath
import stat

from claudebox.errors import Problem, quote
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host.git import host_configs
from claudebox.host.git.directory import FORGED
from claudebox.host.secrets import Opening, openings
from claudebox.host.tree import Tree
from claudebox.host.walk import BEYOND, DIRECTORY, LINK, OTHER, UNREAD, Entry, list_directory
from claudebox.model import (
    MOST_LAYERED,
    RO,
    RW,
    UNASKED,
    Finding,
    Guard,
    Guarded,
    Launch,
    Mount,
    Origin,
    Plan,
    Step,
)
from claudebox.overlay.git import DETOUR, Account
from claudebox.overlay.places import ABSENT, HELD, LOOSE, OPENED, find_fates, find_places, walled_parts
from claudebox.overlay.table import CLAUDES, DOT_GIT, GIT, UNSEEN, WANTED, WHOLE, WORKTREES, held_rows
from claudebox.overlay.ways import WAYS, find_ways
from claudebox.paths import is_below, is_inside, move, parents, within
from claudebox.sandbox.mounts import arrange, find_holder
from claudebox.settings.table import GUARDED, REVIEW, WRITABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from claudebox.model import Deed
    from claudebox.output.section import Line, Section

RULE = "guard"
DIRECT = Origin.of_rule(RULE, "git's worktrees: they are on this host at once")
PARTS = "this host, an agent or CI obeys parts of it"
MOST_HELD = 1000  # bwrap takes no more than 9000 words
MOST_LINKED = 200  # files of one directory that are looked at for hard links
ALL_HELD = "all of it is read-only in the box, since {}; to let the agent work: --writable {}"
LIES_IN = "lies in {}: programs of this host obey what is there, and the agent can change it"
MADE = "and it is not held: tools make what is there"
FILLED = "is on your PATH: what the agent installs there are commands of this shell"
HERE = "has the directory that you are in: every program that the agent writes is a command there"
LATER = "lands later"
OPENS = "(if that is what the agent is to work on: --writable PATH)"
TOLD = """\
The user's own programs run these later, outside the box, so you cannot change, rename or remove them ("Read-only
file system", "Device or resource busy"): {names}.
If the task needs it, write down the change that you would make and ask the user to make it, or to start claudebox again
with `--writable PATH`. What you create of this kind is shown to the user when the box ends.
Directories above them cannot be renamed either, and a rename from one into another fails ("Invalid cross-device link"):
use `mv` or `git mv`, which copy then.
"""
TOLD_OF_GIT = """\
Git works: commit, branch, checkout, stash, merge, rebase, fetch, submodule update. A command that would change one of
these files, or `.git/config` (`git remote add`, `push -u`, `branch -u`, `submodule add`, `sparse-checkout`), does not
begin ("was not started") and says why; nothing has changed then. For one command use `git -c NAME=VALUE …`, and name
remote and branch (`git push origin BRANCH`). Make worktrees in the project (`.claude/worktrees/NAME`): elsewhere they
would vanish.
"""


class Guarding(Feature):
    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        tree, project, home = facts.tree, facts.project, facts.host.person.home
        account = Account(home, host_configs(facts.host.environ, home))
        others = [wish.source for wish in draft.wished if wish.kind == RW and wish.is_dir]
        beside = [entry for directory in others for entry in list_directory(tree, directory, WANTED)]
        opened = openings(facts.settings[WRITABLE], project, home)
        outside = [facts.repository.outside] if facts.repository.outside else []
        roots = tuple(dict.fromkeys((project, *others, *outside)))
        # A project that is a layer is as it was when the box has ended: there is nothing to look for.
        reached = tuple(others) if facts.is_reviewed else roots
        ways = find_ways(facts.host, roots)
        found = find_places(tree, roots, (*facts.entries, *beside), account, ways, since=facts.since, refuses=True)
        guard = plan_guard(tree, found.guarded, draft.mounts, opened)
        guard = guard.replace(
            opened=(*guard.opened, *accept_detours(found.detours, opened)),
            others=found.others,
            roots=reached,
            hidden=facts.hidden,
            git_configs=account.configs,
            ways=ways,
        )
        findings = tuple(guard_findings(tree, guard, opened, project))
        guard = hold_whole(facts, guard, opened)
        guards = guard_mounts(tree, guard, list(arrange(draft.mounts)), opened)
        pins = tuple(mount.path for mount in guards)
        return Contribution(mounts=tuple(guards), pins=pins, findings=findings, records=(guard,))

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import WRITABLE, Row, Section, fields, named

        guard, later = plan.guard, plan.layered
        held = [one for one in guard.held if one.path not in later]
        lands = [one for one in guard.held if one.path in later]
        # A place may be held for two reasons.
        names, landing = (tuple({within(one.path, plan.project): 0 for one in part}) for part in (held, lands))
        walls = f"(no layers here: {guard.walls})" if guard.walls else ""
        opens = OPENS if any(one.group == WAYS for one in guard.held) else ""  # because something outside leads there
        parts = {"read_only": held, "lands_later": lands, "opened": guard.opened, "cannot_be_held": guard.loose}
        told = TOLD.format(names=", ".join(named(names)))
        told += TOLD_OF_GIT if any(one.group == "git" for one in held) else ""
        return (
            Section(
                title="Guarded",
                legend="what this host may run later",
                lines=(
                    *_with_reasons("read-only", held, plan.project),
                    *(("", tuple(note.split(" "))) for note in (walls, opens) if note and guard.held),
                    *_with_reasons(LATER, lands, plan.project),
                    *_with_reasons("writable", guard.opened, plan.project),
                ),
                rows=(
                    Row("guarded", names, "(read-only: this host may run it later)" if names else "", after=WRITABLE),
                    Row(LATER, landing, "(this host may run it)" if landing else "", after=WRITABLE),
                ),
                key="guard",
                value={
                    **{name: [fields(one, "path", "reason") for one in part] for name, part in parts.items()},
                    "no_layers_because": guard.walls or None,
                },
                told=(("Read-only in the project", told),) if held else (),
            ),
        )


class Report(Feature):
    """Says at the end what the box has left that this host may obey, and what of its home is gone with it.

    What was kept in layers comes first: some of it may have landed then.
    """

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        guard = draft.get(Guard)
        moments = (Step.MADE, Step.AFTER) if guard is not None and guard.roots else (Step.MADE,)
        return Contribution(steps=tuple(Step(moment, self) for moment in moments))

    def made(self, launch: Launch, root: str) -> Deed:
        from claudebox.overlay import lost_files

        return lost_files.watch_home(launch, root)

    def after(self, launch: Launch) -> Deed:
        from claudebox.overlay import report

        return report.watch_project(launch)


# What is wrong in a directory of git, and the command that mends it.
DETOURS = {
    LINK: ("a symlink, which git never makes: on this host it would write where that leads", "rm"),
    OTHER: ("neither a file nor a directory, and git on this host would write to it", "rm"),
    UNREAD: ("a directory of git that cannot be listed", "chmod -R u+rwX"),
    BEYOND: ("more in a directory of git than can be looked at", "ls -A"),
    FORGED: ("an index as git never writes it (or split): git would restore and commit what it says", "rm"),
}
MOST_NAMED = 3


def accept_detours(detours: list[Entry], opened: list[Opening]) -> tuple[Guarded, ...]:
    """The detours that somebody said are theirs. Raises a Problem if there are others.

    An agent may have made them, in a box whose end nobody saw; and whoever starts the next box uses git around it.
    """
    found = [entry for entry in detours if entry.kind in DETOURS]
    strange = [entry for entry in found if not any(opening.opens(entry.path) for opening in opened)]
    if strange:
        first = strange[0]
        more = f", and {len(strange) - 1} more" if len(strange) > 1 else ""
        what, mend = DETOURS[first.kind]
        same = [entry.path for entry in strange if entry.kind == first.kind][:MOST_NAMED]
        advice = [f"{mend} {quote(path)}" for path in same]
        advice += ["or, if you made it yourself, start with", f"--writable {quote(first.path)}"]
        raise Problem(f"{first.path}{more}: {what}", "\n      ".join(advice))
    return tuple(Guarded(entry.path, GIT, DETOUR) for entry in found)


def plan_guard(tree: Tree, candidates: list[Guarded], mounts: Iterable[Mount], opened: list[Opening]) -> Guard:
    """Judge each place by what is there. Only what the agent could write matters."""
    writable = [mount.source for mount in mounts if mount.kind == RW]
    parts: dict[str, list[Guarded]] = {HELD: [], OPENED: [], LOOSE: [], ABSENT: []}
    for fate, candidate in find_fates(tree, candidates, writable, opened):
        parts[fate].append(candidate)
        if fate == ABSENT:
            tree.check_lack(candidate.path)
    guard = Guard().replace(**{fate: tuple(members) for fate, members in parts.items()})
    if len(guard.held) > MOST_HELD:
        raise Problem(
            f"the project has {len(guard.held)} places that this host may run later, more than can be guarded",
            "remove what an agent has left, or let it change some: --writable DIRECTORY",
        )
    return guard.replace(held=outermost(guard.held))


def hold_whole(facts: Facts, guard: Guard, opened: list[Opening]) -> Guard:
    """The guard with whole directories, if this box has layers for them; else with the reason why it has none."""
    if facts.settings[REVIEW].text != GUARDED:
        return guard
    gits = [entry.path for entry in facts.entries if entry.name == DOT_GIT]
    whole = [
        Guarded(entry.path, held_rows(entry.name)[0].group, PARTS)
        for entry in facts.entries
        if entry.kind == DIRECTORY and entry.name in WHOLE and _can_be_whole(facts, entry.path, gits, opened)
    ]
    inside = [one.path for one in guard.held if is_below(one.path, facts.project)]
    outside_git = [path for path in inside if DOT_GIT not in path.lower().split("/")]
    if not whole and not any(facts.tree.is_plain_directory(path) for path in outside_git):
        return guard
    if doubt := facts.why_no_layers:
        return guard.replace(walls=doubt)
    whole = sorted(whole, key=lambda one: one.path.count("/"))[:MOST_LAYERED]
    direct = tuple(place for one in whole if (place := _worktrees(facts, one.path)))
    walls = frozenset(path for one in whole for path in _held_otherwise(facts.tree, guard, one.path))
    held = outermost((*guard.held, *whole), direct, walls)
    # An agent can make so many directories that there are not layers for all. Then these come first: of the others all
    # is read-only without a layer, of these only parts would be.
    if len(held) > MOST_LAYERED:
        held = tuple(sorted(held, key=lambda one: one not in whole))
    return guard.replace(held=held, direct=direct)


def _can_be_whole(facts: Facts, path: str, gits: list[str], opened: list[Opening]) -> bool:
    # What somebody wants writable arrives at once, whether it exists or not.
    if any(opening.opens(path) or is_below(opening.path, path) for opening in opened):
        return False
    # What git notes of a repository in it would never land, and the files of that would.
    if any(is_below(git, path) and not is_inside(git, f"{path}/{WORKTREES}") for git in gits):
        return False
    # On another file system than the project's, nothing could land.
    here, project = facts.tree.lstat(path), facts.tree.lstat(facts.project)
    is_mounted = here is None or project is None or here.st_dev != project.st_dev
    return not is_mounted and facts.tree.resolve(path) == path


def _held_otherwise(tree: Tree, guard: Guard, directory: str) -> list[str]:
    """What is held in the directory for another reason than its name: a hook to which git's configuration leads.

    It might not be told from the rest when the box has ended, so it stays read-only. The directory is a layer all the
    same: an agent can make a symlink that leads into it, and nothing may be less guarded for that.
    """
    known = {f"{directory}/{name}" for name in walled_parts(tree, directory)}
    worktrees = f"{directory}/{WORKTREES}"
    inner = [one.path for one in guard.held if is_below(one.path, directory)]
    return [path for path in inner if path not in known and not is_inside(path, worktrees)]


def _worktrees(facts: Facts, directory: str) -> str:
    """The directory of worktrees, which the launch makes if Claude may want it; "" if there is none."""
    path, tree = f"{directory}/{WORKTREES}", facts.tree
    if posixpath.basename(directory) != CLAUDES:
        return ""
    if tree.lstat(path) is None:
        has_git = tree.lstat(f"{posixpath.dirname(directory)}/{DOT_GIT}") is not None
        return path if has_git and facts.install is not None else ""
    return path if tree.is_plain_directory(path) else ""


def outermost(
    held: Iterable[Guarded], direct: tuple[str, ...] = (), walls: frozenset[str] = frozenset()
) -> tuple[Guarded, ...]:
    """Leave out what is in a directory that is held itself, except walls, nearest to the root first."""
    held = tuple(held)
    paths = {guarded.path for guarded in held}

    def is_held_by_another(path: str) -> bool:
        nearest = next((above for above in parents(path) if above in paths or above in direct), "")
        return nearest in paths

    found = (one for one in held if one.path in walls or not is_held_by_another(one.path))
    return tuple(sorted(found, key=lambda one: one.path.count("/")))


def guard_mounts(tree: Tree, guard: Guard, mounts: list[Mount], opened: list[Opening]) -> list[Mount]:
    """Cover each guarded place in every writable mount that shows it, under whatever name."""
    found: list[Mount] = []
    for guarded in guard.held:
        is_dir, origin = tree.is_plain_directory(guarded.path), Origin.of_rule(RULE, guarded.reason)
        for path in _writable_appearances(guarded.path, mounts):
            found.append(Mount(RO, path, origin, source=guarded.path, is_dir=is_dir, consent=UNASKED))
            found += _parts_opened(tree, guarded.path, path, opened) if is_dir else []
            direct = (place for place in guard.direct if is_below(place, guarded.path))
            found += [
                Mount(RW, move(place, guarded.path, path), DIRECT, source=place, consent=UNASKED) for place in direct
            ]
        # A mount of a part of it does not open that part.
        parts = (mount for mount in mounts if mount.kind == RW and is_below(mount.source, guarded.path))
        found += [mount.replace(kind=RO, origin=origin, consent=UNASKED) for mount in parts]
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


def guard_findings(tree: Tree, guard: Guard, opened: list[Opening], project: str) -> list[Finding]:
    def found(kind: str, path: str, text: str) -> Finding:
        return Finding(kind, within(path, project), text)

    loose = "leads through a symlink, which no mount can hold ({}): looked at when the box has ended"
    linked = "has another name, a hard link, through which the agent may change it ({})"
    unseen = (one for one in (*guard.held, *guard.others) if one.group == UNSEEN)
    links = ((path, one.reason) for one in guard.held for path in _linked_elsewhere(tree, one.path))
    whole = ((one, "." if one.path == project else one.path) for one in guard.held if one.path in guard.roots)
    return [
        *(_opening_finding(tree, guard, opening) for opening in opened),
        *(found(Finding.NOTE, one.path, loose.format(one.reason)) for one in guard.loose),
        *(found(Finding.RISK, one.path, one.reason) for one in unseen),
        *(found(Finding.RISK, path, linked.format(reason)) for path, reason in links),
        *(found(Finding.NOTE, one.path, ALL_HELD.format(one.reason, name)) for one, name in whole),
        *(found(Finding.RISK, root, LIES_IN.format(way)) for root, way in guard.ways.above),
        *(found(Finding.NOTE, made, f"{why}, {MADE}") for made, why in guard.ways.made),
        *(found(Finding.NOTE, filled, FILLED) for filled in guard.ways.filled),
        *([found(Finding.RISK, "PATH", HERE)] if guard.ways.has_here else []),
    ]


def _opening_finding(tree: Tree, guard: Guard, opening: Opening) -> Finding:
    subject, rule = opening.said.text, opening.said.origin.shown
    is_part = tree.lstat(opening.path) is not None and any(is_below(opening.path, one.path) for one in guard.held)
    if is_part or any(opening.opens(guarded.path) for guarded in guard.opened):
        return Finding(Finding.RISK, subject, f"{rule} lets the agent change what this host runs later")
    return Finding(Finding.NOTE, subject, f"{rule} opens nothing: nothing there is guarded")


def _linked_elsewhere(tree: Tree, path: str) -> list[str]:
    names = tree.entries(path)[:MOST_LINKED] if tree.is_plain_directory(path) else []
    statuses = [(file, tree.lstat(file)) for file in [f"{path}/{name}" for name in names] or [path]]
    return [file for file, one in statuses if one is not None and stat.S_ISREG(one.st_mode) and one.st_nlink > 1]


def _with_reasons(label: str, members: Iterable[Guarded], project: str) -> Iterable[Line]:
    for guarded in members:
        yield label, (within(guarded.path, project), *f"({guarded.reason})".split(" "))
        label = ""
