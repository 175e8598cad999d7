"""Remembers which files were masked, so that they stay masked wherever they are moved.

The agent cannot move such a file, but can move a directory above it to where nobody looks for secrets, such as among
the packages of npm. So each file is remembered by its inode, in a file that no box can see.
"""

from __future__ import annotations

from claudebox import remembered
from claudebox.facts import Masked
from claudebox.features.secrets.invention import Inventor
from claudebox.features.secrets.table import Candidate
from claudebox.host.digest import some_bytes
from claudebox.host.tree import Tree
from claudebox.host.walk import find_inodes
from claudebox.model import Preparation
from claudebox.paths import is_inside
from claudebox.problem import Problem, quote
from claudebox.record import Record
from claudebox.remembered import Form, Memory
from claudebox.settings.values import Word
from claudebox.state import Instance

TITLE = "Files that boxes saw with made-up values."
# Each line is a file: inode, style, reason and path, with tabs between them. There is room for more masks than a box
# can have.
FORM = Form(TITLE, number=2, largest=16 << 20)
FIELDS = 4
# In the first format, fields end in a line break and files in a zero byte.
OLD_HEADER = f"{TITLE} (format 1)"
# What made-up values are drawn with: a key, and a mark for each secret that could be guessed.
DRAWN = Form("The key with which made-up values are drawn. No box sees it.", largest=1 << 16)
KEY, WEAK = "key ", "weak "
KEY_BYTES = 32


class MaskedBefore(Record):
    """A file that an earlier box saw with made-up values."""

    inode: int
    style: str
    reason: str


def recall(tree: Tree, instance: Instance | None, uid: int) -> dict[str, MaskedBefore]:
    """The remembered files by their paths. Raises a Problem if one is lost: the box might show it as it is."""
    if instance is None:
        return {}
    content = remembered.read_whole(tree, instance.masked, FORM.largest, uid)
    memory = content if isinstance(content, Memory) else _read(content)
    known = _known(memory)
    if known is None:
        raise Problem(
            f"{instance.masked} tells which files have to stay masked, and is damaged: "
            f"{memory.trouble or 'a line is not as claudebox writes it'}",
            f"look where the secrets of the project are now, then remove it:\n      rm {quote(instance.masked)}",
        )
    return known


def _read(content: bytes) -> Memory:
    head, *records = content.split(b"\0")
    if head != OLD_HEADER.encode():
        return remembered.read(content, FORM)
    fields = [record.decode(errors="surrogateescape").split("\n", FIELDS - 1) for record in records]
    return Memory(Memory.WHOLE, tuple("\t".join([*field[:-1], remembered.escape(field[-1])]) for field in fields))


def _known(memory: Memory) -> dict[str, MaskedBefore] | None:
    """The files that the lines tell; None if a line cannot be understood."""
    if memory.condition == Memory.DAMAGED:
        return None
    known = {}
    for line in memory.lines:
        inode, *rest = line.split("\t")
        path = remembered.unescape(rest[-1]) if len(rest) == FIELDS - 1 else None
        if path is None or not (inode.isascii() and inode.isdigit()):
            return None
        known[path] = MaskedBefore(int(inode), rest[0], rest[1])
    return known


def still_there(tree: Tree, project: str, known: dict[str, MaskedBefore], reveals: tuple[Word, ...]) -> list[Candidate]:
    """Find where the files are now. Raises a Problem if that cannot be found out."""
    ours = {path: one for path, one in known.items() if is_inside(path, project)}
    moved = {
        one.inode: (path, one)
        for path, one in ours.items()
        if tree.resolve(path) != path or (status := tree.lstat(path)) is None or status.st_ino != one.inode
    }
    names = sum(one.inode in moved for one in ours.values())
    found = find_inodes(tree, project, frozenset(moved), names) if moved else {}
    if found is None:
        _check_revealed(project, [path for path, _ in moved.values()], reveals)
    there = [Candidate(path, one.style, one.reason) for path, one in ours.items()]
    for path, inode in (found or {}).items():
        was, one = moved[inode]
        there.append(Candidate(path, one.style, one.reason, inode=inode, was=was))
    return there


def _check_revealed(project: str, lost: list[str], reveals: tuple[Word, ...]) -> None:
    for path in lost:
        if not any(is_inside(path, f"{project}/{reveal.text}") for reveal in reveals):
            raise Problem(
                f"{path} held secrets and is gone, or has been moved; the project is too large to look for it, "
                "has a directory that cannot be listed, or is being changed by another box",
                f"if it need not be masked wherever it is: --reveal {quote(path.removeprefix(project + '/'))}",
            )


def remembering(
    instance: Instance | None,
    known: dict[str, MaskedBefore],
    elsewhere: dict[str, MaskedBefore],
    masked: tuple[Masked, ...],
) -> tuple[Preparation, ...]:
    """Note the files that this plan masks, and those that are not its business: hidden, or of another worktree."""
    now = {**elsewhere, **{_kept_as(one): MaskedBefore(one.inode, one.style, one.reason) for one in masked}}
    if instance is None or now == known:
        return ()
    # Another worktree's box may start at this moment, and what it masks must not be forgotten.
    memory = remembered.note(instance.masked, FORM, _lines(now), is_private=True)
    memory = memory.replace(before=remembered.write(FORM, _lines(known)))
    if len(memory.content) > FORM.largest:
        raise Problem(
            f"{len(now)} files of this project are or were masked: too many to remember",
            f"look where the secrets of the project are now, then start afresh:\n      rm {quote(instance.masked)}",
        )
    return (
        Preparation(Preparation.DIRECTORY, instance.directory),
        remembered.path_note(instance.project, instance.root),
        memory,
    )


def _kept_as(one: Masked) -> str:
    """The path under which a file is remembered: its own, or below the one that it had before it was moved.

    Nothing can be there, so that it counts as moved at every start, whatever is in its old place meanwhile.
    """
    mark = f"/{one.inode}"
    return f"{one.was.removesuffix(mark)}{mark}" if one.was else one.path


def _lines(known: dict[str, MaskedBefore]) -> list[str]:
    return [f"{one.inode}\t{one.style}\t{one.reason}\t{remembered.escape(path)}" for path, one in sorted(known.items())]


def recall_inventor(tree: Tree, instance: Instance | None, uid: int) -> tuple[Inventor, tuple[str, ...]]:
    """Who makes up the values of this project, and the lines that were remembered of them.

    Without its memory others are made up, which is no danger.
    """
    lines = () if instance is None else remembered.recall(tree, instance.decoys, DRAWN, uid).lines
    key = next((line.removeprefix(KEY) for line in lines if line.startswith(KEY)), "")
    try:
        drawn_with = bytes.fromhex(key)
    except ValueError:
        drawn_with = b""
    weak = tuple(line.removeprefix(WEAK) for line in lines if line.startswith(WEAK))
    return Inventor(drawn_with if len(drawn_with) == KEY_BYTES else some_bytes(KEY_BYTES), weak), lines


def remembering_inventor(
    instance: Instance | None, inventor: Inventor, before: tuple[str, ...]
) -> tuple[Preparation, ...]:
    lines = (f"{KEY}{inventor.key.hex()}", *(f"{WEAK}{mark}" for mark in inventor.weak))
    if instance is None or lines == before:
        return ()
    note = remembered.note(instance.decoys, DRAWN, lines, is_private=True)
    return Preparation(Preparation.DIRECTORY, instance.directory), note.replace(before=remembered.write(DRAWN, before))
