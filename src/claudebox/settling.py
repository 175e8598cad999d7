"""Makes the directories that claudebox keeps its files in where the XDG variables say, and notes which they are."""

from __future__ import annotations

import os

from claudebox.layers.files import DIRECTORY, NO_REPLACE, PRIVATE, rename, write_all
from claudebox.paths import parents
from claudebox.problem import Problem, quote
from claudebox.remembered import write
from claudebox.state import Apart, find_state, note_of_places
from claudebox.whereabouts import NOTE, Note, new_note, recall_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.host import Host


def settle(host: Host) -> Host:
    """Make the directories that are missing, before a box is planned: what is there can be hidden from it."""
    state = find_state(host)
    if state.apart is None:
        return host
    try:
        for directory in state.directories():
            make_private(directory)
        if not state.is_noted:
            _note_first(host, state.apart)
    except OSError as error:
        raise Problem(
            f"cannot make {error.filename or state.directory}: {error.strerror}", f"ls -ld {quote(state.home)}"
        ) from None
    return host.looked_at_anew()


def make_private(directory: str) -> None:
    """Make a directory, and those above it that are missing, for this user alone."""
    missing = [path for path in (directory, *parents(directory)) if not os.path.lexists(path)]
    for path in reversed(missing):
        try:
            os.mkdir(path, PRIVATE)
        except FileExistsError:
            pass  # another launch makes it


def _note_first(host: Host, apart: Apart) -> None:
    """Write the note, unless another launch was faster: then both have to mean the same."""
    home, uid = host.person.home, host.person.uid
    temporary = f"{new_note(home)}.{os.getpid()}"
    write_whole(temporary, write(NOTE, Note(apart).lines()))
    if not _rename_if_free(temporary, note_of_places(home)):
        os.unlink(temporary)
    if recall_note(host.looked_at_anew().tree, home, uid) != Note(apart):
        raise Problem("another claudebox starts with other XDG variables at this moment", "try again")


def _rename_if_free(path: str, new: str) -> bool:
    """Give a file another name in its directory. Not by a second name: some file systems have none."""
    here = os.open(os.path.dirname(path), DIRECTORY)
    try:
        rename(here, os.path.basename(path), here, os.path.basename(new), NO_REPLACE)
    except FileExistsError:
        return False
    finally:
        os.close(here)
    return True


def write_whole(path: str, content: bytes) -> None:
    """Write a new file, and have it on the disk before anything depends on it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
