"""`--places`: shows where claudebox keeps its files, and moves them: to where the XDG variables say, or back home.

Each part is at every moment whole in one of both places. A note says from the beginning to the end of the move which
places these are; whoever finds it goes on, in either direction, and no box starts before that.
"""

from __future__ import annotations

import os
import stat

from claudebox.boxes import require_no_box
from claudebox.host import Host, read_host
from claudebox.layers.copying import Copying
from claudebox.layers.files import DIRECTORY, PRIVATE, remove_path
from claudebox.paths import shorten_home
from claudebox.problem import Problem, quote
from claudebox.record import Record
from claudebox.remembered import write
from claudebox.settings.words import HOME, XDG, Request
from claudebox.settling import make_private, settle, write_whole
from claudebox.state import (
    INSTANCES,
    Apart,
    Instance,
    State,
    find_state,
    find_states,
    note_directory,
    note_of_places,
)
from claudebox.terminal import output_style, says_yes, show
from claudebox.view.as_json import dump
from claudebox.view.text import BOLD, escape
from claudebox.whereabouts import NOTE, WORDS, Note, choose, new_note, putting_away, recall_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

BETWEEN_FILE_SYSTEMS = 18  # EXDEV
UNFINISHED, LEFT = ".moving-", ".moved-"  # before the name of a copy that is not whole, and of what was copied
COLUMN = 15
_NAMES = State("", Apart("c", "s", "x"))
CONFIGURATION = tuple(path.removeprefix("c/") for path in (_NAMES.config, _NAMES.profiles))
CACHE = tuple(path.removeprefix("x/") for path in (_NAMES.cache, _NAMES.packages, _NAMES.nix_trial, _NAMES.layer_trial))
_INSTANCE = Instance("", "", "i")
CACHES = tuple(path.removeprefix("i/") for path in (_INSTANCE.cache, _INSTANCE.cache_over_host, _INSTANCE.cache_layers))
# Nix knows by their paths which links keep its garbage collector away: it is asked again.
NOT_MOVED = (_NAMES.packages.removeprefix("x/"),)


class Move(Record):
    """A move from one set of directories to another. All three may be one and the same."""

    home: str
    before: Apart
    after: Apart
    is_resumed: bool = False

    @property
    def is_homeward(self) -> bool:
        return self.after == in_home(self.home)

    @property
    def note(self) -> Note:
        return Note(self.after, self.before)


def in_home(home: str) -> Apart:
    return Apart(*[State(home).directory] * len(WORDS))


def as_apart(state: State) -> Apart:
    return Apart(state.configuration_directory, state.directory, state.cache_directory)


def paths_of(apart: Apart) -> dict[str, str]:
    return dict(zip(WORDS, (apart.configuration, apart.state, apart.cache), strict=True))


def tend_places(request: Request) -> int:
    host = read_host()
    word = dict(request.said).get("places", "")
    if word:
        _move(host, word, yes=request.yes)
        return 0
    state = find_state(host)
    places = paths_of(as_apart(state))
    if request.json:
        show(dump({"places": places}))
        return 0
    way = XDG if state.apart is None else HOME
    where = "where the XDG variables say" if way == XDG else f"in {_short(State(state.home).directory, state.home)}"
    lines = [f"{word:<{COLUMN}}{_short(path, state.home)}" for word, path in places.items()]
    show("\n".join([*lines, f"To have them {where}: claudebox --places {way}"]) + "\n")
    return 0


def _move(host: Host, word: str, *, yes: bool) -> None:
    move = _unfinished(host, word) or _begin(host, word)
    if move is None:
        return
    again = f"claudebox --places {word}"
    states = State(move.home, move.before), State(move.home, move.after)
    require_no_box(states, host.person.uid, again)
    if not move.is_resumed:
        _check(move)
    show(_announcement(move))
    if not yes and not says_yes("Move them? [y/N] "):
        raise Problem("nothing moved")
    try:
        former = _note_move(move)
        try:
            require_no_box(states, host.person.uid, again)  # from now on none starts: it would find the note
        except Problem:
            if not move.is_resumed:
                _write_note(move.home, former)
            raise
        carry_out(move)
    except OSError as error:
        other = HOME if word == XDG else XDG
        raise Problem(
            f"cannot move {error.filename or 'the files'}: {error.strerror}; no box starts until it is done",
            f"to go on: {again}\n      or back: claudebox --places {other}",
        ) from None
    show(f"Moved. To undo it: claudebox --places {HOME if word == XDG else XDG}\n")


def _unfinished(host: Host, word: str) -> Move | None:
    """A move that was ended, to go on with, or to go back."""
    home = host.person.home
    note = recall_note(host.tree, home, host.person.uid)
    if note is None or note.before is None:
        return None
    both = [note.now, note.before]
    wanted = [one for one in both if (one == in_home(home)) == (word == HOME)]
    if not wanted:
        raise Problem("claudebox was moving its files between other places", f"to go on: claudebox --places {XDG}")
    return Move(home, next(one for one in both if one != wanted[0]), wanted[0], is_resumed=True)


def _begin(host: Host, word: str) -> Move | None:
    """The move that is asked for; None if there is nothing to move."""
    state, home = find_state(host), host.person.home
    after = in_home(home) if word == HOME else choose(host, find_states(host))
    before = as_apart(state)
    if before == after:
        settle(host)
        show(f"They are in {', '.join(_short(path, home) for path in dict.fromkeys(paths_of(after).values()))}.\n")
        return None
    return Move(home, before, after)


def _announcement(move: Move) -> str:
    lines = [output_style().paint("claudebox moves its files:", BOLD)]
    for word, path in paths_of(move.before).items():
        lines += [f"  {word:<{COLUMN}}from {_short(path, move.home)}"]
        lines += [f"  {'':<{COLUMN}}to   {_short(paths_of(move.after)[word], move.home)}"]
    return "\n".join(lines) + "\n"


def _short(path: str, home: str) -> str:
    return escape(shorten_home(path, home))


def _check(move: Move) -> None:
    """Raise if something would be replaced, or would mean something else in another directory."""
    for source, target in _parts(move):
        if os.path.lexists(target) or _is_ours(target, move.home):
            raise _in_the_way(source if _is_ours(target, move.home) else target)
        for link in (source, *_in_directory(source)):
            _check_link(link, source)


def _in_the_way(path: str) -> Problem:
    return Problem(f"{path} is there already", putting_away(path))


def _in_directory(path: str) -> list[str]:
    if os.path.basename(path) not in CONFIGURATION or os.path.islink(path) or not os.path.isdir(path):
        return []
    return [f"{path}/{name}" for name in os.listdir(path)]


def _check_link(link: str, part: str) -> None:
    if not os.path.islink(link) or os.readlink(link).startswith("/"):
        return
    named = os.path.join(os.path.dirname(link), os.readlink(link))
    leads_to = os.path.abspath(named)
    if not leads_to.startswith(f"{part}/"):
        raise Problem(
            f"{link} is a symlink that would lead elsewhere: {os.readlink(link)}",
            f"say it in full:\n      cd {quote(os.path.dirname(link))}\n"
            f"      ln -sfn {quote(leads_to)} {quote(os.path.basename(link))}",
        )


def _note_move(move: Move) -> Note | None:
    """Note that a move begins, and return what was noted before."""
    was_home = move.before == in_home(move.home)
    make_private(note_directory(move.home))
    _write_note(move.home, move.note)
    return None if was_home else Note(move.before)


def _write_note(home: str, note: Note | None) -> None:
    if note is None:
        os.unlink(note_of_places(home))
        return
    write_whole(new_note(home), write(NOTE, note.lines()))
    os.rename(new_note(home), note_of_places(home))


def _parts(move: Move) -> Iterator[tuple[str, str]]:
    """Each part with its place now and after the move, in an order in which it is there when its turn comes."""
    before, after = move.before, move.after
    if after.cache != after.state:
        yield from _caches({before.state, before.cache, after.state} - {after.cache}, after)
    for directory in dict.fromkeys(paths_of(before).values()):
        for name in sorted(_names(directory)):
            is_caches = name == INSTANCES and directory == before.cache != before.state
            place = _place(name, after)
            if place != directory and not is_caches and not _is_ours(f"{directory}/{name}", move.home):
                yield f"{directory}/{name}", f"{place}/{name}"
    if after.cache == after.state:
        yield from _caches({before.cache} - {before.state, after.state}, after)


def _caches(bases: set[str], after: Apart) -> Iterator[tuple[str, str]]:
    """What package managers downloaded: in the directory of its project, or in a directory of caches."""
    for base in sorted(bases):
        for name in _names(f"{base}/{INSTANCES}"):
            if os.path.islink(f"{base}/{INSTANCES}/{name}"):
                continue
            for cache in CACHES:
                source = f"{base}/{INSTANCES}/{name}/{cache}"
                if os.path.lexists(source):
                    yield source, f"{after.cache}/{INSTANCES}/{name}/{cache}"


def _place(name: str, apart: Apart) -> str:
    return apart.configuration if name in CONFIGURATION else apart.cache if name in CACHE else apart.state


def _is_ours(path: str, home: str) -> bool:
    """Whether it is the note, or what a move leaves behind while it goes on."""
    name = os.path.basename(path).removeprefix(".")  # what is being removed has one more
    is_note = path in (note_of_places(home), new_note(home)) or path.startswith(f"{new_note(home)}.")
    return is_note or f".{name.removeprefix('.')}".startswith((UNFINISHED, LEFT))


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []


def carry_out(move: Move) -> None:
    """Move everything. The note of the move is written."""
    _carry(move)
    _finish(move)


def _carry(move: Move) -> None:
    for source, target in _parts(move):
        parent, name = os.path.split(target)
        if os.path.basename(source) in NOT_MOVED:
            remove_path(source)
        elif os.path.lexists(target):
            if not _is_copy(source, target):
                raise _in_the_way(target)  # somebody put it there since the move was ended
            _leave(source)  # it was copied whole before somebody ended the move
        else:
            make_private(parent)
            if not _rename(source, target):
                _copy(source, parent, name)
                _leave(source)


def _is_copy(source: str, target: str) -> bool:
    """Whether one was copied from the other: then it is on another file system, of the same kind and as old."""
    one, other = os.lstat(source), os.lstat(target)
    is_same = (one.st_mode, one.st_mtime_ns) == (other.st_mode, other.st_mtime_ns)
    return is_same and one.st_dev != other.st_dev


def _rename(source: str, target: str) -> bool:
    """Give it its new name; False if that is on another file system."""
    mode = os.lstat(source).st_mode
    if stat.S_ISDIR(mode) and mode & PRIVATE != PRIVATE:
        os.chmod(source, PRIVATE)  # an agent took it: such a directory cannot be moved
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != BETWEEN_FILE_SYSTEMS:
            raise
        return False
    return True


def _copy(source: str, parent: str, name: str) -> None:
    """Copy beside the target, and give the copy its name when it is whole and on the disk."""
    unfinished = f"{UNFINISHED}{name}"
    remove_path(f"{parent}/{unfinished}")
    here, there = os.open(os.path.dirname(source), DIRECTORY), os.open(parent, DIRECTORY)
    try:
        Copying(there).copy(here, os.path.basename(source), there, unfinished)
        os.sync()
        os.rename(unfinished, name, src_dir_fd=there, dst_dir_fd=there)
    finally:
        os.close(here)
        os.close(there)


def _leave(source: str) -> None:
    """Remove what was copied. First it loses its name, so that what has a name is whole."""
    parent, name = os.path.split(source)
    left = f"{parent}/{LEFT}{name}"
    remove_path(left)
    os.rename(source, left)
    remove_path(left)


def _finish(move: Move) -> None:
    """Remove what is left, and note where all is now."""
    kept = {*paths_of(move.after).values(), note_directory(move.home)}
    for directory in paths_of(move.after).values():
        make_private(directory)
    for directory in {*kept, *paths_of(move.before).values()}:
        instances = [f"{directory}/{INSTANCES}/{name}" for name in _names(f"{directory}/{INSTANCES}")]
        for place in (directory, *(path for path in instances if not os.path.islink(path))):
            for path in [f"{place}/{name}" for name in _names(place)]:
                if _is_ours(path, move.home) and path != note_of_places(move.home):
                    remove_path(path)
        if directory not in kept:
            _remove_empty(directory)
    if not move.is_homeward:
        _write_note(move.home, Note(move.after))
        return
    os.chmod(move.after.state, PRIVATE)
    _write_note(move.home, None)
    _remove_empty(note_directory(move.home))


def _remove_empty(directory: str) -> None:
    """Remove a directory, with directories of caches that are empty; but nothing that holds something."""
    for path in (*(f"{directory}/{INSTANCES}/{name}" for name in _names(f"{directory}/{INSTANCES}")),):
        _try_to_remove(path)
    _try_to_remove(f"{directory}/{INSTANCES}")
    _try_to_remove(directory)


def _try_to_remove(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError:
        pass  # something of somebody is in there
