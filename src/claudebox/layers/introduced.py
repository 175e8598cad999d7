"""Remembers which files commits have brought that were made in boxes: such a file never counts as the user's own.

A later commit of the user has it as well, so the commit does not tell. The list is in the state, where no box sees it,
for all projects, since a box may write in the repository of another one; and it only grows. If it cannot be read, or a
box made more than anybody could look at, nobody knows.
"""

from __future__ import annotations

import os

from claudebox import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set

NAME, PICTURE = "introduced", "box-"
LARGEST = 1 << 24
MORE = b"and more"  # what stands for the files that nobody could look at


def is_alone(reports: str, project: str) -> bool:
    """Whether no box that writes there runs, and every one that has ended was looked at: each has a picture until then.

    The picture of another project's box counts if it names this one.
    """
    instances, named = os.path.dirname(os.path.dirname(reports)), ascii(project)[1:-1].encode()
    try:
        for instance in os.listdir(instances):
            place = f"{instances}/{instance}/reports"
            pictures = [name for name in os.listdir(place) if name.startswith(PICTURE)] if os.path.isdir(place) else []
            for picture in pictures:
                with open(f"{place}/{picture}", "rb") as file:
                    if place == reports or named in file.read():
                        return False
        return True
    except OSError:
        return not os.path.isdir(instances)


def _place(reports: str) -> str:
    """The list, in the directory of the whole state."""
    return f"{os.path.dirname(os.path.dirname(os.path.dirname(reports)))}/{NAME}"


def record(path: str, mode: int, blob: bytes) -> bytes:
    return b"%o %s %s" % (mode, blob.hex().encode(), os.fsencode(path))


def read_introduced(reports: str) -> frozenset[bytes] | None:
    """The files that boxes have brought, each as a `record`; None if nobody knows them all."""
    try:
        with open(_place(reports), "rb") as file:
            *lines, rest = file.read(LARGEST).split(b"\0")
    except FileNotFoundError:
        return frozenset()
    except OSError:
        return None
    return None if rest or MORE in lines else frozenset(lines)


def note_introduced(reports: str, entries: Set[bytes], *, is_whole: bool) -> None:
    """Add to them, in one piece: another box may end at the same time. Raises OSError."""
    known = read_introduced(reports)
    new = entries - known if known is not None else set[bytes]()
    if not is_whole and known is not None:
        new |= {MORE}
    if new:
        files.make_private(os.path.dirname(_place(reports)))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(_place(reports), flags, files.PRIVATE_FILE)
        try:
            files.write_all(descriptor, b"".join(line + b"\0" for line in sorted(new)))
        finally:
            os.close(descriptor)
