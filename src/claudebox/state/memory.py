"""What claudebox remembers from one start to the next, in one format; and what boxes did, in journals.

    What you agreed to: … Remove this file to be asked again. (format 1)
    … lines …
    end

A person can read it: the first line says what the file is, and in which format. It is written whole and put in its
place by rename (a Preparation). A reader never mistakes a part for the whole: a file is damaged if its first line or
its end is missing, if it is larger than what is read, or if somebody else owns it. Then it counts as missing.
"""

from __future__ import annotations

import os
import posixpath

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


def recall(tree: Tree, path: str, form: Form, uid: int) -> tuple[str, ...]:
    """What this user's claudebox has remembered there. A file that is damaged holds nothing."""
    status = tree.lstat(path) or tree.lstat_anew(path)  # another box may have written it since the first look
    content = tree.read_plain(path, form.largest + 1) if status is not None and status.st_uid == uid else None
    return read(content, form) if content is not None and len(content) <= form.largest else ()


def read(content: bytes, form: Form) -> tuple[str, ...]:
    with suppress(UnicodeDecodeError):
        first, *lines = content.decode().split("\n")
        if first == form.header and lines[-2:] == [END, ""]:
            return tuple(lines[:-2])
    return ()


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
