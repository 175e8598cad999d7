"""Which files were masked, so that they stay so wherever they are moved to.

The agent cannot move such a file itself, but a directory above it: to where nobody looks for secrets, among the
packages of npm for one. So each file is remembered by its inode, in a file that no box can see.
"""

from __future__ import annotations

from claudebox.features.secrets.table import (
    MEMORY,
    Candidate,
)
from claudebox.host.tree import Tree
from claudebox.host.walk import find_inodes
from claudebox.model import (
    Masked,
    Preparation,
    State,
)
from claudebox.paths import is_inside
from claudebox.problem import Problem
from claudebox.quoting import quote
from claudebox.record import Record
from claudebox.settings.values import Named

HEADER = "Files that boxes saw with made-up values. (format 1)"
LONGEST = 1 << 18
FIELDS = 4


class Known(Record):
    """A file that was masked."""

    inode: int
    style: str
    reason: str


def recall(tree: Tree, state: State | None, uid: int) -> dict[str, Known]:
    """By path; nothing if somebody else wrote it."""
    path = f"{state.directory}/{MEMORY}" if state is not None else ""
    status = tree.lstat(path) if path else None
    if status is None or status.st_uid != uid:
        return {}
    head, *records = (tree.read_plain(path, LONGEST) or b"").decode(errors="surrogateescape").split("\0")
    fields = [record.split("\n", FIELDS - 1) for record in records]
    if head != HEADER or any(len(field) != FIELDS or not field[0].isdigit() for field in fields):
        return {}
    return {path: Known(int(inode), style, reason) for inode, style, reason, path in fields}


def still_there(tree: Tree, project: str, known: dict[str, Known], reveals: tuple[Named, ...]) -> list[Candidate]:
    """Where the files are now. Raises a Problem if that cannot be found out."""
    ours = {path: one for path, one in known.items() if is_inside(path, project)}
    moved = {
        one.inode: (path, one)
        for path, one in ours.items()
        if tree.resolve(path) != path or (status := tree.lstat(path)) is None or status.st_ino != one.inode
    }
    found = find_inodes(tree, project, frozenset(moved)) if moved else {}
    if found is None:
        _check_revealed(project, [path for path, _ in moved.values()], reveals)
    now = {**{path: moved[inode][1] for path, inode in (found or {}).items()}, **ours}
    return [Candidate(path, one.style, one.reason) for path, one in now.items()]


def _check_revealed(project: str, lost: list[str], reveals: tuple[Named, ...]) -> None:
    for path in lost:
        if not any(is_inside(path, f"{project}/{reveal.path}") for reveal in reveals):
            raise Problem(
                f"{path} held secrets and is gone, or has been moved; the project is too large to look for it, "
                "or has a directory that cannot be listed",
                f"if it need not be masked wherever it is: --reveal {quote(path.removeprefix(project + '/'))}",
            )


def remembering(
    state: State | None, known: dict[str, Known], kept: dict[str, Known], masked: tuple[Masked, ...]
) -> tuple[Preparation, ...]:
    """What notes the files of this plan, beside those that are not its business: hidden, or of another worktree."""
    now = {**kept, **{one.path: Known(one.inode, one.style, one.reason) for one in masked}}
    if state is None or now == known:
        return ()
    records = [f"{one.inode}\n{one.style}\n{one.reason}\n{path}" for path, one in sorted(now.items())]
    root = state.root.encode(errors="surrogateescape") + b"\n"
    content = "\0".join([HEADER, *records]).encode(errors="surrogateescape")
    return (
        Preparation(Preparation.DIRECTORY, state.directory),
        Preparation(Preparation.FILE, f"{state.directory}/project", root),
        Preparation(Preparation.FILE, f"{state.directory}/{MEMORY}", content, is_private=True),
    )
