"""What claudebox remembers from one start to the next, in one format; and what boxes did, in journals.

    What you agreed to: … Remove this file to be asked again. (format 1)
    … lines …
    end

A person can read it: the first line says what the file is, and in which format. It is written whole and put in its
place by rename (a Preparation). A reader never mistakes a part for the whole: a file is damaged if its first line or
its end is missing, if it is larger than what is read, or if somebody else owns it. The caller decides what follows:
most ask again, and those that cannot ask refuse the start.
"""

from __future__ import annotations

import os
import posixpath
import stat

from claudebox.errors import suppress
from claudebox.files import Open, lstat
from claudebox.host.tree import Tree
from claudebox.model import Preparation
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

END = "end"


class Form(Record):
    """What a kind of memory is about, and how large it may be."""

    title: str  # a sentence or two for the person who opens the file
    number: int = 1  # the version of the format
    largest: int = 1 << 20  # bytes

    @property
    def header(self) -> str:
        return f"{self.title} (format {self.number})"


class Memory(Record):
    """What was found in the place of a memory, with its lines if it is whole."""

    ABSENT = "absent"
    WHOLE = "whole"
    DAMAGED = "damaged"

    condition: str
    lines: tuple[str, ...] = ()
    trouble: str = ""  # what is wrong, if it is damaged


def recall(tree: Tree, path: str, form: Form, uid: int) -> Memory:
    """What this user's claudebox has remembered there."""
    content = read_whole(tree, path, form.largest, uid)
    return content if isinstance(content, Memory) else read(content, form)


def read_whole(tree: Tree, path: str, largest: int, uid: int) -> bytes | Memory:
    """The content of a file, or a Memory without lines if there is no file or it cannot be read whole."""
    status = tree.lstat(path)
    if status is None:
        if tree.lacks(path):
            return Memory(Memory.ABSENT)
        status = tree.lstat_anew(path)  # another box may have written it since the first look
    if status is None:
        return _damaged("it cannot be looked at")
    if not stat.S_ISREG(status.st_mode):
        return _damaged("it is not a plain file")
    if status.st_uid != uid:
        return _damaged(f"it belongs to another user (uid {status.st_uid})")
    content = tree.read_plain(path, largest + 1)
    if content is None:
        return _damaged("it cannot be read")
    return content if len(content) <= largest else _damaged(f"it is larger than {largest} bytes")


def read(content: bytes, form: Form) -> Memory:
    try:
        first, *lines = content.decode().split("\n")
    except UnicodeDecodeError:
        return _damaged("it is not text")
    if first != form.header:
        return _damaged("it does not begin as claudebox begins it")
    if lines[-2:] != [END, ""]:
        return _damaged("its end is missing")
    return Memory(Memory.WHOLE, tuple(lines[:-2]))


def _damaged(trouble: str) -> Memory:
    return Memory(Memory.DAMAGED, trouble=trouble)


def write(form: Form, lines: Sequence[str]) -> bytes:
    """The content of a file with these lines. The caller escapes line breaks, and no line may look like the end."""
    if END in lines or any("\n" in line for line in lines):
        raise ValueError("a line of a memory has a line break, or is its end")
    return "".join(f"{line}\n" for line in (form.header, *lines, END)).encode()


def note(path: str, form: Form, lines: Sequence[str], *, is_private: bool = False) -> Preparation:
    """The preparation that writes a memory into a directory that exists."""
    return Preparation(Preparation.FILE, path, write(form, lines), is_private=is_private)


def note_with_directory(path: str, form: Form, lines: Sequence[str]) -> tuple[Preparation, ...]:
    """The preparations that write a memory, and make the directory for it."""
    return (Preparation(Preparation.DIRECTORY, posixpath.dirname(path)), note(path, form, lines))


def path_note(file: str, path: str) -> Preparation:
    """The preparation for a file that holds one path and nothing else: a format would be too much for that."""
    return Preparation(Preparation.FILE, file, path.encode(errors="surrogateescape") + b"\n")


def escape(text: str) -> str:
    """The text on one line without control characters. Different texts stay different."""
    return text if text.isprintable() and "\\" not in text else repr(text)[1:-1]


def unescape(line: str) -> str | None:
    """The text from which `escape` made this line; None if there is none."""
    if "\\" not in line:
        return line if line.isprintable() else None
    try:
        text = line.encode("ascii", "backslashreplace").decode("unicode_escape")
    except (UnicodeDecodeError, Warning):  # Python warns of escapes that it does not know
        return None
    return text if escape(text) == line else None


LARGEST_JOURNAL = 1 << 20  # bytes; then the file becomes the older half, and the older half before it is gone
OLDER = ".1"
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def note_in_journal(file: str, /, **fields: str | int) -> None:
    """Append what a box did, as a line of JSON. It never holds what was said, and no secret: the caller sees to that.

    If it cannot be written, nothing else suffers.
    """
    import json
    import time

    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps({"time": stamp, "box": os.getpid(), **fields}).encode() + b"\n"
    with suppress(OSError):
        status = lstat(None, file)
        if status is not None and status.st_size + len(line) > LARGEST_JOURNAL:
            os.rename(file, file + OLDER)
        with Open(os.open(file, APPEND, 0o600)) as journal:
            os.write(journal, line)


def read_journal(path: str) -> list[dict[str, Any]]:
    """All entries of the journal, the oldest first, without those that were not written to their end."""
    lines: list[bytes] = []
    for half in (path + OLDER, path):
        with suppress(OSError), open(half, "rb") as file:
            lines += file.read(2 * LARGEST_JOURNAL).splitlines()
    return list(filter(None, map(json_object, lines)))


def json_object(text: bytes) -> dict[str, Any]:
    """What a JSON object says; nothing if the text is none."""
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
