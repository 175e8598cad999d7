"""Reads from git's index what git has of a file, without starting git.

The agent can write an index. So an entry is believed only if it names the very content of the file: either git has it,
or the agent knew it already.
"""

from __future__ import annotations

import posixpath

from claudebox.host.digest import git_blob
from claudebox.host.git.repository import pointed_to
from claudebox.host.tree import Tree
from claudebox.paths import is_inside, normalize
from claudebox.record import Record

LARGEST_INDEX_BYTES = 1 << 26
NAME_LENGTH = 0xFFF  # these bits of an entry's flags
BLOB, FLAGS = 20, 2


class Indexes:
    """The indexes of the repositories of a project, each read once."""

    def __init__(self, tree: Tree, project: str, git_dir: str) -> None:
        self.tree = tree
        self.project = project
        self.git_dirs = {project: git_dir}
        self.content: dict[str, bytes] = {}

    def repository(self, path: str) -> str:
        """The checkout that a file belongs to, "" if it is in none."""
        directory = posixpath.dirname(path)
        while is_inside(directory, self.project):
            if self._git_dir(directory):
                return directory
            directory = posixpath.dirname(directory)
        return ""

    def has(self, path: str, content: bytes) -> bool:
        """Whether git has this file with exactly this content."""
        return bool(blob := self.blob(path)) and blob == git_blob(content)

    def blob(self, path: str) -> bytes:
        """The hash that the index has for this path; empty if it has none."""
        checkout = self.repository(path)
        if not checkout:
            return b""
        if checkout not in self.content:
            self.content[checkout] = (
                self.tree.read_plain(f"{self._git_dir(checkout)}/index", LARGEST_INDEX_BYTES) or b""
            )
        return _blob(self.content[checkout], path[len(checkout) + 1 :].encode(errors="surrogateescape"))

    def _git_dir(self, directory: str) -> str:
        if directory not in self.git_dirs:
            self.git_dirs[directory] = self._find_git_dir(f"{directory}/.git")
        return self.git_dirs[directory]

    def _find_git_dir(self, dot_git: str) -> str:
        if self.tree.is_plain_directory(dot_git):
            return dot_git
        # A submodule's directory is inside the project's. Git in the box would not find one elsewhere.
        said = pointed_to((self.tree.read_plain(dot_git, 1 << 12) or b"").decode(errors="surrogateescape"))
        named = normalize(posixpath.join(posixpath.dirname(dot_git), said)) if said else ""
        return named if is_inside(named, self.project) and self.tree.resolve(named) == named else ""


def _blob(index: bytes, name: bytes) -> bytes:
    """The hash of the first entry with this name, and of no other: a made-up index could have one for each guess."""
    if index.startswith(b"DIRC\0\0\0\4"):
        wanted = name.decode(errors="surrogateescape")
        return next((entry.blob for entry in _entries(index, BLOB, [LARGEST_INDEX_BYTES]) if entry.name == wanted), b"")
    if not index.startswith((b"DIRC\0\0\0\2", b"DIRC\0\0\0\3")):
        return b""
    place = index.find(name + b"\0")
    while place >= 0:
        flags = int.from_bytes(index[place - FLAGS : place], "big")
        if flags & NAME_LENGTH == min(len(name), NAME_LENGTH):
            return index[place - FLAGS - BLOB : place - FLAGS]
        place = index.find(name + b"\0", place + 1)
    return b""


GITLINK = b"\0\0\xe0\0"  # the mode of an entry that is a submodule
MODE, HASH = 24, 40  # where they are in an entry
HASHES = (20, 32)  # the bytes of a hash: SHA-1 or SHA-256, as the repository has it
LONGER = 0x4000  # a flag: two more bytes come before the name
NAMES_ARE_CUT = 4  # the version of an index in which a name has only what differs from the name before
SHARED = "sharedindex."  # the prefix of the larger part of an index that was split in two


def find_gitlinks(tree: Tree, git_dir: str, room: list[int]) -> list[str] | None:
    """The paths of submodules in the checkout. None if the index is larger than the room that is left."""
    own, shared = "index", [name for name in tree.entries(git_dir) if name.startswith(SHARED)]
    found: list[str] = []
    is_nameless = False
    for name in (own, *shared):
        status = tree.status(f"{git_dir}/{name}")  # git follows a symlink there
        room[0] -= status.st_size if status is not None else 0
        if room[0] < 0:
            return None
        index = tree.read(f"{git_dir}/{name}", status.st_size) or b"" if status is not None else b""
        if not index.startswith(b"DIRC") or not (GITLINK in index or is_nameless):
            continue
        entries = [entry for size in HASHES for entry in _entries(index, size, room)]
        if room[0] < 0:
            return None
        # An entry that replaces one of the shared part has no name here.
        found += [entry.name for entry in entries if entry.name and (entry.is_link or is_nameless)]
        is_nameless = is_nameless or any(entry.is_link and not entry.name for entry in entries)
    return found


class _Entry(Record):
    """A file, or a submodule, that git has."""

    name: str
    is_link: bool
    blob: bytes


def _entries(index: bytes, hash_size: int, room: list[int]) -> list[_Entry]:
    """Everything in an index. With the wrong size the names are nonsense, which does no harm.

    What a name has from the one before takes room, too: a few megabytes could spell names beyond all memory.
    """
    version, amount = int.from_bytes(index[4:8], "big"), int.from_bytes(index[8:12], "big")
    found: list[_Entry] = []
    position, name, head = 12, b"", HASH + hash_size
    for _ in range(amount):
        start, flags = position, int.from_bytes(index[position + head : position + head + FLAGS], "big")
        position += head + FLAGS + (2 if version >= 3 and flags & LONGER else 0)
        shared = 0  # characters of the name before
        if version == NAMES_ARE_CUT:
            dropped, position = _number(index, position)
            shared = len(name) - dropped
            room[0] -= max(shared, 0)
        end = index.find(b"\0", position)
        if end < 0 or shared < 0 or room[0] < 0:
            break  # not an index that git would read, or one that is too large
        name = name[:shared] + index[position:end]
        is_link = index[start + MODE : start + MODE + 4] == GITLINK
        found.append(_Entry(name.decode(errors="surrogateescape"), is_link, index[start + HASH : start + head]))
        # Entries begin at multiples of eight bytes, and a name ends with at least one zero.
        position = end + 1 if version == NAMES_ARE_CUT else start + (end - start + 8) // 8 * 8
    return found


def _number(data: bytes, position: int) -> tuple[int, int]:
    """A length as git writes it, and where it ends: seven bits per byte, and each but the last counts one more."""
    byte = data[position] if position < len(data) else 0
    value = byte & 0x7F
    while byte & 0x80 and position + 1 < len(data):
        position += 1
        byte = data[position]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, position + 1
