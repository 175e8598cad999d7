"""Reports, when the box has ended, what it has left that this host may obey, and asks whether that stays.

This module is loaded while bwrap makes the mounts, for the first look, so what every box needs afterwards costs nobody
time. What only a report needs is imported when there is one.
"""

from __future__ import annotations

import errno
import os
import stat

from claudebox import files
from claudebox.errors import suppress
from claudebox.host.git.directory import common_dir, read_refs
from claudebox.host.tree import Tree
from claudebox.model import HIDE, MASK, Launch, Plan, Trace
from claudebox.output.terminal import ask, choose, errors_style, no_such_number, numbers_in, say
from claudebox.overlay import kept
from claudebox.overlay.comparison import Comparison, Leftover, Picture, take_picture
from claudebox.overlay.git import DETOUR, git_directories
from claudebox.paths import is_below, parents
from claudebox.text import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Set

    from claudebox.model import Deed
    from claudebox.overlay.history import Carried
    from claudebox.overlay.screen import Row, View

    Ask = Callable[[str], str]
    Held = tuple[tuple[str, int], ...]  # places of the host, and a descriptor of each

MOST_LOOKS = 20  # for directories in each other that were locked
LINKED, MOST_LINKED = "commit {:.12} of a submodule was not looked at: it is missing", 3
KEEP, SHOW, QUARANTINE = "keep", "show", "quarantine"
DOES = {
    SHOW: "see what the files hold",
    KEEP: "leave them where they are",
    QUARANTINE: "move them out of the project; with numbers, some of them",
}
LAYER_GONE = (
    "claudebox: {} was removed or replaced while the box ran,\n"
    "  so no layer was over it any more: what is in it now may be the box's\n"
)
INTERRUPTED = "claudebox: interrupted: the next start looks at what the box has left"


def watch_project(launch: Launch) -> Deed:
    """Look at what could be obeyed later, before the program starts. Returns what to do when the box has ended."""
    plan = launch.plan
    others = kept.find_running(plan)
    before = take_picture(Tree(), plan.guard)
    others |= kept.find_running(plan)
    if kept.can_change_claudebox(plan):
        _import_everything()
    picture = kept.keep_picture(plan, kept.oldest(before, others))
    layers = _hold(one.path for one in (plan.review.covered if plan.review is not None else ()))
    closed = _hold(_closed(plan, before))

    def deed(may_ask: bool) -> None:
        # A box that has ended meanwhile may have undone what it did, and left it to this one to do it again. One that
        # still runs looks itself.
        ended = {path: one for path, one in others.items() if not os.path.lexists(path)}
        if report(plan, kept.oldest(before, ended), ask if may_ask else None, layers=layers, closed=closed) and picture:
            os.unlink(picture)

    return deed


def _import_everything() -> None:
    import difflib

    from claudebox.overlay import history, screen

    del difflib, history, screen


def report(
    plan: Plan, before: Picture, asking: Ask | None, heading: str = "", layers: Held = (), closed: Held = ()
) -> bool:
    """Take away what git did not write, say what has changed, and ask what to do with it, if somebody can be asked.

    Returns whether all of it was looked at and kept. The exit status does not depend on it: that is the program's.
    """
    has_looked = False
    try:
        there = _still_there(layers)
        leftovers, is_whole = find_leftovers(plan, before, there, _still_there(closed))
        strange = [one for one in leftovers if one.is_strange]
        # Nobody has to be asked: the next prompt may run git there. An agent can fill the disk.
        told = _move_away(plan, strange, _view(plan), removes=True) if strange else ""
        told += "".join(LAYER_GONE.format(escape(path)) for path, _ in layers if path not in there)
        carried = _find_carried(plan, before)
        if not leftovers and not carried and not told:
            return is_whole
        from claudebox.overlay import history, screen

        view, commits = _view(plan), carried or history.Carried()
        plain = view.replace(style=view.style.replace(colour=False))
        kept_text = heading + plain.all_rows(leftovers, commits, told)
        has_looked = kept.keep_report(plan.state, kept_text, plain.whole(leftovers, commits)) and is_whole
        # All of it is done and kept before anything is said: perhaps nobody listens.
        listed = screen.rows([one for one in leftovers if not one.is_strange])
        is_asked = asking is not None and bool(listed)
        hint = screen.CHOICE if is_asked else (screen.UNDO if listed else "") + kept.AGAIN
        say(heading + view.all_rows(leftovers, commits, told) + (hint if plan.state is not None else ""))
        kept.note_seen(plan.state)
        if asking is not None and listed:
            _ask(plan, listed, asking, view)
    except KeyboardInterrupt:
        # An agent can make the look last long.
        say("\n" if has_looked else f"\n{INTERRUPTED}\n")
    except BrokenPipeError:
        pass
    except Exception as error:
        say(f"claudebox: what the box has left could not be looked at: {escape(str(error))}\n")
    return has_looked


def _closed(plan: Plan, before: Picture) -> list[str]:
    """What the box has hidden or masked of what counts: it cannot change that itself."""
    masked = [one.covers for one in plan.mounts if one.kind == MASK and one.covers in before.files]
    return masked + [one.path for one in plan.mounts if one.kind == HIDE and one.path in plan.guard.hidden]


def _hold(paths: Iterable[str]) -> Held:
    """Name what the box has mounted something over by descriptors, so that nothing else can get such an inode."""
    held = dict.fromkeys(paths, -1)
    for path in held:
        with suppress(OSError):
            held[path] = os.open(path, files.NAME_ONLY)
    return tuple(held.items())


def _still_there(held: Held) -> frozenset[str]:
    """The paths at which there is still the same. From anything else the kernel has taken the mount away."""
    found: list[str] = []
    for path, descriptor in held:
        with suppress(OSError):
            found += [path] if os.path.samestat(os.lstat(path), os.fstat(descriptor)) else []
    return frozenset(found)


def find_leftovers(
    plan: Plan, before: Picture, layers: Set[str], closed: frozenset[str]
) -> tuple[list[Leftover], bool]:
    """What the box has left; and whether everything could be looked at that an agent may have locked."""
    # If claudebox was killed, that box may have had more than this one: `--mount-rw`.
    guard = plan.guard.replace(roots=tuple(dict.fromkeys((*plan.guard.roots, *before.roots))))
    for _ in range(MOST_LOOKS):
        comparison = Comparison(Tree(), guard, plan.person.home, before, closed)
        # Git and others would still find a file that they know in a directory that an agent has locked.
        if not (is_locked := make_listable(comparison.unread)):
            break
    made = {*map(common_dir, git_directories(comparison.places))} - before.refs.keys()
    if made and plan.state is not None:
        kept.note_introduced(plan.state.reports, {*map(os.fsencode, made)}, is_whole=True)
    return [one for one in comparison.leftovers() if not _is_others(plan, one, layers, closed)], not is_locked


def _is_others(plan: Plan, leftover: Leftover, layers: Set[str], closed: Set[str]) -> bool:
    """Whether it was hidden, masked or in a layer to the end: then the box has not changed it itself.

    Somebody here has, or it has just landed.
    """
    old, new = leftover.old, leftover.new
    if old is not None and new is not None and old.names > 1 and old.identity[:2] == new.identity[:2]:
        return False  # the box may have another name for it, with no mount over it; what lands is a new file
    if not closed.isdisjoint((leftover.path, *parents(leftover.path))):
        return True
    number = plan.review.over(leftover.path) if plan.review is not None else -1
    return plan.review is not None and number >= 0 and plan.review.covered[number].path in layers


def _find_carried(plan: Plan, before: Picture) -> Carried | None:
    """What commits carry in the repositories whose refs have moved since; None in most boxes: none has."""
    now = {path: read_refs(Tree(), path) for path in before.refs}
    missing = kept.read_missing(plan.state) if plan.state is not None else frozenset[str]()
    if now == before.refs and not missing:
        return None
    from claudebox.overlay.history import find_all_carried, may_have_come

    come = {one for one in missing if any(may_have_come(path, one, before.since) for path in now)}
    if now == before.refs and not come:
        return None
    reports = plan.state.reports if plan.state is not None else ""
    commits = find_all_carried(plan, before, now, kept.read_introduced(reports), come)
    if commits and reports:
        kept.note_introduced(reports, commits.entries, is_whole=not commits.troubles)
    if plan.state is not None and (missing or commits.missing):
        kept.note_missing(plan.state, (missing - come) | commits.missing)
    tips = {tip for refs in now.values() for tip in refs.tips.values()}
    told = [LINKED.format(one) for one in sorted(commits.missing - missing - tips)]
    more = [f"nor {len(told) - MOST_LINKED} others"] if len(told) > MOST_LINKED else []
    return commits.replace(troubles=(*commits.troubles, *told[:MOST_LINKED], *more))


def _ask(plan: Plan, listed: list[Row], asking: Ask, view: View) -> None:
    words = {word: does for word, does in DOES.items() if word != QUARANTINE or plan.state is not None}
    question = "Show, keep or quarantine? (q 1 2: some of them)" if plan.state is not None else "Show or keep?"
    is_shown = not listed[0][0].is_grave  # what is merely named need not be looked at first
    while True:
        # A bare Enter means show the first time, and keep after that.
        default = KEEP if is_shown else SHOW
        word, said = choose(asking, f"{question} [{default[0]}] ", words, default)
        if word == SHOW:
            is_shown = True
            say(view.contents(listed))
        elif word == QUARANTINE:
            numbers = numbers_in(said, len(listed))
            chosen = [row for number, row in enumerate(listed, 1) if number in numbers or not said]
            if chosen:
                told = _move_away(plan, [one for row in chosen for one in row], view)
                stay = [str(number) for number, row in enumerate(listed, 1) if row not in chosen]
                return say(told + (f"Kept: {', '.join(stay)}\n" if stay else ""))
            # Nothing would be moved, so to take it for an answer would keep what somebody wanted to be gone.
            say(no_such_number(len(listed)))
        else:
            return None


def _view(plan: Plan) -> View:
    from claudebox.overlay.screen import View

    return View(plan.project, plan.person.home, errors_style())


def _move_away(plan: Plan, leftovers: list[Leftover], view: View, *, removes: bool = False) -> str:
    """Move what was left to the quarantine, and say so. With `removes`, what cannot be moved is removed if possible."""
    quarantine: Quarantine | None = None
    failed = {one.path: f"to undo it: {one.mend}" for one in leftovers if one.mend}
    names: list[str] = []
    restored: list[str] = []
    for one in leftovers:
        # What lies outside of the project is called by its whole name.
        root = plan.project if is_below(one.path, plan.project) else ""
        name = one.path[len(root) + 1 :]
        try:
            if one.path not in failed:
                quarantine = quarantine or Quarantine(plan.state.quarantine if plan.state is not None else "/dev/null")
                restored += [one.path] if quarantine.take(root or "/", name, one.old) else []
                names.append(name if root else one.path)
        except OSError as error:
            failed[one.path] = error.strerror or str(error)
    for path in tuple(failed) if removes else ():
        with suppress(OSError):
            remove(path)
            del failed[path]
    detours = {one.path for one in leftovers if one.reason == DETOUR}
    back = next((name for name in names if f"{plan.project}/{name}" not in detours and name not in detours), "")
    return view.moved(quarantine.directory if quarantine is not None else "", names, restored, back, failed)


class Quarantine:
    """A new directory in the project's state, where no box sees it.

    Nothing follows a symlink on the way there: another box may be at work in the same place.
    """

    def __init__(self, place: str) -> None:
        files.make_private(place)
        number = 1
        while os.path.lexists(f"{place}/{number}"):
            number += 1
        self.directory = f"{place}/{number}"
        os.mkdir(self.directory, files.PRIVATE)

    def take(self, root: str, path: str, old: Trace | None) -> bool:
        """Move something from below a directory of the user. Returns whether what was there before is there again.

        Raises OSError if it cannot be moved.
        """
        with files.Parent(f"{root}/{path}") as (source, name):
            _make_writable(source)
            with (
                files.Open(os.open(self.directory, files.DIRECTORY)) as own,
                # What was moved before may be a symlink, and lead anywhere.
                files.Open(files.open_below(own, os.path.dirname(path), makes=True)) as target,
            ):
                _move(source, name, target)
            if old is None or old.content is None:
                return False
            if stat.S_ISLNK(old.mode):
                os.symlink(old.content, os.fsencode(name), dir_fd=source)
            else:
                files.write_new(name, old.content, old.mode & files.PERMISSIONS, source)
            return True


def remove(path: str) -> None:
    """Remove a symlink or the like, of which nobody needs a copy. Raises OSError if that is not possible."""
    with files.Parent(path) as (directory, name):
        _make_writable(directory)
        os.unlink(name, dir_fd=directory)


def make_listable(directories: list[str]) -> bool:
    """Let the user list directories of theirs again. Returns whether one of them was locked."""
    was_locked = False
    for directory in directories:
        with suppress(OSError), files.Parent(directory) as (above, name):
            descriptor, mode = files.open_hidden_directory(above, name)
            os.close(descriptor)
            was_locked |= mode & files.PRIVATE != files.PRIVATE
    return was_locked


def _make_writable(directory: int) -> None:
    """An agent can keep things in a directory by taking away the right to write it."""
    mode = stat.S_IMODE(os.fstat(directory).st_mode)
    if mode & files.PRIVATE != files.PRIVATE:
        os.fchmod(directory, mode | files.PRIVATE)


def _move(directory: int, name: str, target: int) -> None:
    try:
        files.rename(directory, name, target, name, files.NO_REPLACE)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        files.copy_tree(directory, name, target)
        files.remove_tree(directory, name)
