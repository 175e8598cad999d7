"""Repositories that git's index holds as a link: `git status` goes into each of them, and obeys its configuration."""

from __future__ import annotations

from claudebox.host.tree import Tree

LARGEST = 1 << 26
GITLINK = b"\0\0\xe0\0"  # the mode of such an entry
MODE, FLAGS, NAME = 24, 60, 62  # where they are in an entry
LONGER = 0x4000  # a flag: two more bytes before the name
NAMES_ARE_CUT = 4  # the version of an index in which a name says only how it differs from the one before


def find_gitlinks(tree: Tree, git_dir: str) -> list[str]:
    """Their paths in the checkout."""
    index = tree.read_plain(f"{git_dir}/index", LARGEST) or b""
    if GITLINK not in index or not index.startswith(b"DIRC"):
        return []
    version, amount = int.from_bytes(index[4:8], "big"), int.from_bytes(index[8:12], "big")
    found: list[str] = []
    position, name = 12, b""
    for _ in range(amount):
        start, flags = position, int.from_bytes(index[position + FLAGS : position + NAME], "big")
        position += NAME + (2 if version >= 3 and flags & LONGER else 0)
        kept = 0
        if version == NAMES_ARE_CUT:
            dropped, position = _number(index, position)
            kept = len(name) - dropped
        end = index.find(b"\0", position)
        if end < 0 or kept < 0:
            break  # not an index that git would read
        name = name[:kept] + index[position:end]
        if index[start + MODE : start + MODE + 4] == GITLINK:
            found.append(name.decode(errors="surrogateescape"))
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
