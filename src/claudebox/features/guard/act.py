"""Reports, when the box has ended, what it has left that this host may obey, and asks whether that stays.

This module is loaded while bwrap makes the mounts, for the first look, so what every box needs afterwards costs nobody
time. What only a report needs is imported when there is one.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem
from claudebox.features.guard import kept
from claudebox.features.guard.changes import Comparison, Leftover, Picture, take_picture
from claudebox.features.guard.commits import carried
from claudebox.features.guard.git import DETOUR
from claudebox.host.tree import Tree
from claudebox.host.walk import UNREAD
from claudebox.layers.introduced import note_introduced, read_introduced
from claudebox.model import MASK, Launch, Plan
from claudebox.paths import is_below, is_inside
from claudebox.terminal import WHAT_CAN_BE_ANSWERED, ask, errors_style, no_such_number, numbers_in, say
from claudebox.text import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from claudebox.model import Deed
    from claudebox.view.aftermath import Row, View

    Ask = Callable[[str], str]

MOST_LOOKS = 20  # for directories in each other that were locked
KEEP, SHOW, QUARANTINE = ("k", "keep", "n", "no"), ("s", "show"), ("q", "quarantine")


def after(launch: Launch) -> Deed:
    """Look at what could be obeyed later, before the program starts. Returns what to do when the box has ended."""
    plan = launch.plan
    before = take_picture(Tree(), plan.guard)
    own_source = os.path.realpath(__file__.rpartition("/features/")[0])
    if any(is_inside(own_source, root) for root in plan.guard.roots):
        _import_everything()
    picture = kept.keep_picture(plan, before)

    def deed(may_ask: bool) -> None:
        if report(plan, before, ask if may_ask else None):
            kept.remove(picture)

    return deed


def _import_everything() -> None:
    """Import what a report may need before the box starts: the agent can change the files of this claudebox."""
    import difflib

    from claudebox.features.guard import quarantine
    from claudebox.process import git_objects
    from claudebox.view import aftermath

    del difflib, quarantine, git_objects, aftermath


def report(plan: Plan, before: Picture, asking: Ask | None, heading: str = "") -> bool:
    """Take away what git did not write, say what has changed, and ask what to do with it, if somebody can be asked.

    Returns whether all of it was looked at and kept. The exit status does not depend on it: that is the program's.
    """
    from claudebox.view import aftermath

    has_looked = False
    try:
        leftovers = find_leftovers(plan, before)
        view = aftermath.View(plan.project, plan.person.home, errors_style())
        strange = [one for one in leftovers if one.is_strange]
        told = _take_away(plan, strange, view) if strange else ""
        reports = plan.state.reports if plan.state is not None else ""
        commits = carried(plan, before.refs, read_introduced(reports) or frozenset())
        if commits and reports:
            note_introduced(reports, commits.entries, is_whole=not commits.troubles)
        if leftovers or commits:
            plain = view.replace(style=view.style.replace(colour=False))
            everything = plain.whole(leftovers, commits)
            kept.keep_report(plan.state, heading + plain.all_rows(leftovers, commits, told), everything)
        has_looked = True
        # All of it is done and kept before anything is said: perhaps nobody listens.
        if leftovers or commits:
            listed = aftermath.rows([one for one in leftovers if not one.is_strange])
            hint = (
                aftermath.CHOICE if asking is not None and listed else (aftermath.UNDO if listed else "") + kept.AGAIN
            )
            say(heading + view.all_rows(leftovers, commits, told) + (hint if plan.state is not None else ""))
            kept.note_seen(plan.state)
            _choose(plan, listed, asking, view) if asking is not None and listed else None
    except KeyboardInterrupt:
        # An agent can make the look last long.
        say("\n" if has_looked else "\nclaudebox: interrupted: the next start looks at what the box has left\n")
    except BrokenPipeError:
        pass
    except Exception as error:
        say(f"claudebox: what the box has left could not be looked at: {escape(str(error))}\n")
    return has_looked


def find_leftovers(plan: Plan, before: Picture) -> list[Leftover]:
    from claudebox.features.guard.quarantine import make_listable

    for _ in range(MOST_LOOKS):
        comparison = Comparison(Tree(), plan.guard, plan.person.home, before)
        # Git would still write a file that it knows in a directory of its own that an agent has locked.
        locked = [entry.path for entry in comparison.detours if entry.kind == UNREAD]
        if not locked or not make_listable(locked):
            break
    masked = {mount.covers for mount in plan.mounts if mount.kind == MASK}  # the box cannot change these
    return [one for one in comparison.leftovers() if one.path not in masked and not _has_landed(plan, one)]


def _has_landed(plan: Plan, leftover: Leftover) -> bool:
    """Whether it is in a layer: then the box has not changed it itself. Somebody here has, or it has just landed."""
    old, new = leftover.old, leftover.new
    if old is not None and new is not None and old.names > 1 and old.identity[:2] == new.identity[:2]:
        return False  # the box may have another name for it, in no layer; what lands is a new file
    return plan.review is not None and plan.review.over(leftover.path) >= 0


def _take_away(plan: Plan, strange: list[Leftover], view: View) -> str:
    """Move away what git did not write in its directory. Nobody has to be asked: the next prompt may run git there.

    What cannot be moved, since an agent can fill the disk, is removed.
    """
    from claudebox.features.guard.quarantine import remove

    told, failed = _move_away(plan, strange, view)
    for path in tuple(failed):
        try:
            remove(path)
            del failed[path]
        except OSError:
            continue
    return told + view.not_moved(failed)


def _choose(plan: Plan, listed: list[Row], asking: Ask, view: View) -> None:
    can_move = plan.state is not None
    is_shown = not listed[0][0].is_grave  # what is merely named need not be looked at first
    while True:
        # A bare Enter means show the first time, and keep after that.
        question = "Show, keep or quarantine? (q 1 2: some of them)" if can_move else "Show or keep?"
        try:
            words = asking(f"{question} [{'k' if is_shown else 's'}] ").split() or ["k" if is_shown else "s"]
        except Problem:
            return
        if words[0] in SHOW:
            is_shown = True
            say(view.contents(listed))
        elif words[0] in QUARANTINE and can_move:
            numbers = numbers_in(" ".join(words[1:]), len(listed))
            chosen = [row for number, row in enumerate(listed, 1) if number in numbers or not words[1:]]
            if chosen:
                told, failed = _move_away(plan, [one for row in chosen for one in row], view)
                stay = [str(number) for number, row in enumerate(listed, 1) if row not in chosen]
                say(told + view.not_moved(failed) + (f"Kept: {', '.join(stay)}\n" if stay else ""))
                return
            # Nothing would be moved, so to take it for an answer would keep what somebody wanted to be gone.
            say(no_such_number(len(listed)))
        elif words[0] in KEEP:
            return
        else:
            say(WHAT_CAN_BE_ANSWERED)


def _move_away(plan: Plan, leftovers: list[Leftover], view: View) -> tuple[str, dict[str, str]]:
    """Move what was left to the quarantine. Returns what to say about it, and why something could not be moved."""
    from claudebox.features.guard.quarantine import Quarantine

    failed = {one.path: f"to undo it: {one.mend}" for one in leftovers if one.mend}
    try:
        quarantine = Quarantine(plan.state.quarantine if plan.state is not None else "/dev/null")
    except OSError as error:
        return "", {one.path: error.strerror or str(error) for one in leftovers}
    names: list[str] = []
    restored: list[str] = []
    for one in leftovers:
        # What lies outside of the project is called by its whole name.
        root = plan.project if is_below(one.path, plan.project) else ""
        name = one.path[len(root) + 1 :]
        try:
            if one.path not in failed:
                restored += [one.path] if quarantine.take(root or "/", name, one.old) else []
                names.append(name if root else one.path)
        except OSError as error:
            failed[one.path] = error.strerror or str(error)
    detours = {one.path for one in leftovers if one.reason == DETOUR}
    back = next((name for name in names if f"{plan.project}/{name}" not in detours and name not in detours), "")
    return view.moved(quarantine.directory, names, restored, back), failed
