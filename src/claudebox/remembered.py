"""The one format in which something is remembered from one start to the next.

    What you agreed to: … Remove this file to be asked again. (format 1)
    … lines …
    end

A person can read it: the first line says what it is, and which format. It is written whole, and put in its place by
rename (a Preparation). A reader never takes a part of it for the whole: without its first line or its end, larger than
what is read, or with another owner, it is damaged. What follows from that is for the caller to decide: most ask again,
and whoever cannot do that refuses the start.
"""

from __future__ import annotations

import posixpath
import stat

from claudebox.host.tree import Tree
from claudebox.model import Preparation
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

END = "end"


class Form(Record):
    """What a kind of memory is about, and how large it may be."""

    title: str  # a sentence or two, for whoever opens the file
    number: int = 1  # of the format
    largest: int = 1 << 20  # bytes

    @property
    def header(self) -> str:
        return f"{self.title} (format {self.number})"


class Memory(Record):
    """What was found in the place of a memory: its lines if it is whole."""

    ABSENT = "absent"
    WHOLE = "whole"
    DAMAGED = "damaged"

    condition: str
    lines: tuple[str, ...] = ()
    trouble: str = ""  # what is wrong with a damaged one


def recall(tree: Tree, path: str, form: Form, uid: int) -> Memory:
    """What this user's claudebox has remembered there."""
    content = read_whole(tree, path, form.largest, uid)
    return content if isinstance(content, Memory) else read(content, form)


def read_whole(tree: Tree, path: str, largest: int, uid: int) -> bytes | Memory:
    """The content of a file, or a Memory without lines if there is none or it cannot be had whole."""
    status = tree.lstat(path)
    if status is None:
        return Memory(Memory.ABSENT)
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
    """Each line is one line, by `escape` if need be, and none looks like the end."""
    if END in lines or any("\n" in line for line in lines):
        raise ValueError("a line of a memory has a line break, or is its end")
    return "".join(f"{line}\n" for line in (form.header, *lines, END)).encode()


def note(path: str, form: Form, lines: Sequence[str], *, is_private: bool = False) -> Preparation:
    """What writes a memory into a directory that is there."""
    return Preparation(Preparation.FILE, path, write(form, lines), is_private=is_private)


def keeping(path: str, form: Form, lines: Sequence[str]) -> tuple[Preparation, ...]:
    """What writes a memory, and makes the directory that it belongs into."""
    return (Preparation(Preparation.DIRECTORY, posixpath.dirname(path)), note(path, form, lines))


def path_note(file: str, path: str) -> Preparation:
    """A file with nothing but one path in it, for which a whole format would be too much."""
    return Preparation(Preparation.FILE, file, path.encode(errors="surrogateescape") + b"\n")


def escape(text: str) -> str:
    """The text on one line that obeys no terminal; different for different texts."""
    return text if text.isprintable() and "\\" not in text else repr(text)[1:-1]


def unescape(line: str) -> str | None:
    """The text that `escape` made this line of; None if it has made it of none."""
    if "\\" not in line:
        return line if line.isprintable() else None
    try:
        text = line.encode("ascii", "backslashreplace").decode("unicode_escape")
    except (UnicodeDecodeError, Warning):  # Python warns of escapes that it does not know
        return None
    return text if escape(text) == line else None
