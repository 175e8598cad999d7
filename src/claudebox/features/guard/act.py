"""Reports, when the box has ended, what it has left that this host may run, and asks whether that stays.

This module is loaded while bwrap makes the mounts, for the first look, so what every box needs afterwards costs nobody
time. What only a report needs is imported when there is one.
"""

from __future__ import annotations

import os
import time

from claudebox.features.guard.changes import Comparison, Leftover, look, take_picture
from claudebox.features.guard.git import DETOUR
from claudebox.host.tree import Tree
from claudebox.host.walk import UNREAD
from claudebox.model import Plan, Trace
from claudebox.paths import is_below, is_inside
from claudebox.problem import Problem
from claudebox.terminal import WHAT_CAN_BE_ANSWERED, ask, errors_style, no_such_number, numbers_in, say
from claudebox.view.text import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from claudebox.view.aftermath import Where

    Ask = Callable[[str], str]

COARSEST_CLOCK = 2_000_000_000  # nanoseconds: some file systems count in pairs of seconds

MOST_LOOKS = 20  # for directories in each other that were locked

KEEP = ("k", "keep", "n", "no")
SHOW = ("s", "show")
QUARANTINE = ("q", "quarantine")


def after(plan: Plan) -> Callable[[bool], None]:
    """Look at what could be run later, before the program starts. Returns what to do when the box has ended."""
    before = take_picture(Tree(), plan.guard)
    since = time.time_ns() - COARSEST_CLOCK
    own_source = os.path.realpath(__file__.rpartition("/features/")[0])
    if any(is_inside(own_source, root) for root in plan.guard.roots):
        _import_everything()
    return lambda may_ask: report(plan, before, ask if may_ask else None, since)


def _import_everything() -> None:
    """Import what a report may need before the box starts: the agent can change the files of this claudebox."""
    import difflib
    import json
    import tomllib

    from claudebox.features.guard import quarantine
    from claudebox.view import aftermath

    del difflib, json, tomllib, quarantine, aftermath


def report(plan: Plan, before: dict[str, Trace], asking: Ask | None, since: int = 0) -> None:
    """Say what has changed since, and ask what to do with it, if there is somebody to ask.

    The exit status does not depend on it: that is up to the program that the box ran.
    """
    has_looked = False
    try:
        detours, leftovers = find_leftovers(plan, before, since)
        if detours:
            _end_detours(plan, detours)
        has_looked = True
        if leftovers:
            _report(plan, leftovers, asking)
    except KeyboardInterrupt:
        # An agent can make the look last long.
        say("\n" if has_looked else "\nclaudebox: interrupted: what the box has left was not looked at\n")
    except BrokenPipeError:
        pass
    except Exception as error:
        say(f"claudebox: what the box has left could not be looked at: {escape(str(error))}\n")


def find_leftovers(plan: Plan, before: dict[str, Trace], since: int) -> tuple[list[Leftover], list[Leftover]]:
    """What git would write through, and everything else that matters."""
    tree = Tree()
    moment = look(tree, plan.guard, plan.person.home, since)
    for _ in range(MOST_LOOKS):
        unread = [entry.path for entry in moment.detours if entry.kind == UNREAD]
        if not unread or not _make_listable(unread):
            break
        tree = Tree()
        moment = look(tree, plan.guard, plan.person.home, since)
    comparison = Comparison(tree, plan.guard, before, moment)
    detours = comparison.detours()
    gone = {detour.path for detour in detours}
    return detours, [one for one in comparison.leftovers() if one.path not in gone and not _has_landed(plan, one)]


def _has_landed(plan: Plan, leftover: Leftover) -> bool:
    """Whether it is in a layer: then the box has not changed it itself. Somebody here has, or it has just landed."""
    old, new = leftover.old, leftover.new
    if old is not None and new is not None and old.names > 1 and old.identity[:2] == new.identity[:2]:
        return False  # the box may have another name for it, in no layer; what lands is a new file
    return plan.review is not None and not leftover.is_ordinary and plan.review.over(leftover.path) >= 0


def _make_listable(directories: list[str]) -> bool:
    """Have directories of git listed that an agent has locked: git would still write a file in there that it knows."""
    from claudebox.features.guard.quarantine import make_listable

    try:
        for directory in directories:
            make_listable(directory)
    except OSError:
        return False
    return True


def _end_detours(plan: Plan, detours: list[Leftover]) -> None:
    """Move away what would make the next git command on this host write elsewhere. Nobody has to be asked.

    The user's next prompt may be that command, and git never makes such a thing itself. What cannot be moved, since an
    agent can fill the disk, is removed. All of it happens before anything is said: perhaps nobody listens.
    """
    from claudebox.features.guard.quarantine import remove
    from claudebox.view import aftermath as view

    where = view.Where(plan.project, plan.person.home)
    told, failed = _move_away(plan, detours, where) if plan.state is not None else ("", dict.fromkeys(detours, ""))
    for detour in failed:
        try:
            remove(detour.path)
        except OSError as error:
            told += view.moved("", [], [], [(detour.path, error.strerror or str(error))], where)
    say(view.detours(detours, where, errors_style()) + told)


def _report(plan: Plan, leftovers: list[Leftover], asking: Ask | None) -> None:
    from claudebox.view import aftermath as view

    where, style = view.Where(plan.project, plan.person.home), errors_style()
    say(view.report(leftovers, where, style))
    grave = [leftover for leftover in leftovers if not leftover.is_ordinary]
    if not grave or asking is None:
        return None
    can_move = plan.state is not None
    has_shown = False
    while True:
        words = _answer(asking, has_shown=has_shown, can_move=can_move)
        if words[0] in SHOW:
            has_shown = True
            say(view.contents(grave, where, style))
        elif words[0] in QUARANTINE and can_move:
            chosen = _chosen(grave, words[1:])
            if chosen:
                return _quarantine(plan, chosen, where)
            # Nothing would be moved, so to take it for an answer would keep what somebody wanted to be gone.
            say(no_such_number(len(grave)))
        elif words[0] in KEEP:
            return None
        else:
            say(WHAT_CAN_BE_ANSWERED)


def _answer(asking: Ask, *, has_shown: bool, can_move: bool) -> list[str]:
    """Ask. A bare Enter means show the first time, and keep after that."""
    choices = [*(["Keep"] if has_shown else ["Show", "keep"]), *(["quarantine"] if can_move else [])]
    question = f"{', '.join(choices[:-1])} or {choices[-1]}?" if len(choices) > 1 else f"{choices[0]}?"
    hint = " (q 1 2: some of them)" if can_move else ""
    try:
        words = asking(f"{question}{hint} [{'k' if has_shown else 's'}] ").split()
    except Problem:
        return ["keep"]
    return words or ["keep" if has_shown else "show"]


def _chosen(leftovers: list[Leftover], words: list[str]) -> list[Leftover]:
    """Those with these numbers; all of them, if no number was said; nothing, if a word is not one of the numbers."""
    numbers = numbers_in(" ".join(words), len(leftovers))
    return [one for number, one in enumerate(leftovers, 1) if not words or number in numbers]


def _quarantine(plan: Plan, leftovers: list[Leftover], where: Where) -> None:
    from claudebox.view.aftermath import moved

    told, failed = _move_away(plan, leftovers, where)
    say(told + moved("", [], [], [(one.path, why) for one, why in failed.items()], where))


def _move_away(plan: Plan, leftovers: list[Leftover], where: Where) -> tuple[str, dict[Leftover, str]]:
    """Move what was left to the quarantine. Returns what to say about it, and why something could not be moved."""
    from claudebox.features.guard.quarantine import Old, Quarantine
    from claudebox.view.aftermath import moved

    assert plan.state is not None
    try:
        quarantine = Quarantine(plan.state.quarantine)
    except OSError as error:
        return "", dict.fromkeys(leftovers, error.strerror or str(error))
    names: list[str] = []
    restored: list[str] = []
    failed: dict[Leftover, str] = {}
    for leftover in leftovers:
        # What lies outside of the project is called by its whole name.
        root = plan.project if is_below(leftover.path, plan.project) else ""
        name = leftover.path[len(root) + 1 :]
        known = leftover.old
        old = Old(known.content, known.mode) if known is not None and known.content is not None else None
        try:
            quarantine.take(root or "/", name, old)
            names.append(name if root else leftover.path)
            restored += [leftover.path] if old is not None else []
        except OSError as error:
            failed[leftover] = error.strerror or str(error)
    # Nobody is told how to get back what leads git elsewhere.
    are_detours = all(leftover.reason == DETOUR for leftover in leftovers)
    return moved(quarantine.directory, names, restored, [], where, for_good=are_detours), failed
