"""Repositories that git's index holds as a link: `git status` goes into each of them, and obeys its configuration."""

from __future__ import annotations

from claudebox.host.tree import Tree

GITLINK = b"\0\0\xe0\0"  # the mode of such an entry
MODE, HASH = 24, 40  # where they are in an entry
HASHES = (20, 32)  # how long one is, in repositories of either kind
FLAGS = 2
LONGER = 0x4000  # a flag: two more bytes before the name
NAMES_ARE_CUT = 4  # the version of an index in which a name says only how it differs from the one before
SHARED = "sharedindex."  # the greater part of an index that was split in two


def find_gitlinks(tree: Tree, git_dir: str, room: list[int]) -> list[str] | None:
    """Their paths in the checkout. None if there is no room left for the index."""
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
        entries = [entry for size in HASHES for entry in _entries(index, size)]
        # One that takes the place of another in the shared part has no name here.
        found += [name for name, is_link in entries if name and (is_link or is_nameless)]
        is_nameless = is_nameless or ("", True) in entries
    return found


def _entries(index: bytes, hash_size: int) -> list[tuple[str, bool]]:
    """Name, and whether it is a link. Read with the wrong size, there is no sense in it, and no harm either."""
    version, amount = int.from_bytes(index[4:8], "big"), int.from_bytes(index[8:12], "big")
    found: list[tuple[str, bool]] = []
    position, name, head = 12, b"", HASH + hash_size
    for _ in range(amount):
        start, flags = position, int.from_bytes(index[position + head : position + head + FLAGS], "big")
        position += head + FLAGS + (2 if version >= 3 and flags & LONGER else 0)
        kept = 0
        if version == NAMES_ARE_CUT:
            dropped, position = _number(index, position)
            kept = len(name) - dropped
        end = index.find(b"\0", position)
        if end < 0 or kept < 0:
            break  # not an index that git would read
        name = name[:kept] + index[position:end]
        found.append((name.decode(errors="surrogateescape"), index[start + MODE : start + MODE + 4] == GITLINK))
        # Entries begin at multiples of eight bytes, and a name ends with at least one zero.
        position = end + 1 if version == NAMES_ARE_CUT else start + (end - start + 8) // 8 * 8
    return found


def _number(data: bytes, position: int) -> tuple[int, int]:
    """As git writes a length: seven bits a byte, of which each but the last counts one more."""
    byte = data[position] if position < len(data) else 0
    value = byte & 0x7F
    while byte & 0x80 and position + 1 < len(data):
        position += 1
        byte = data[position]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, position + 1
