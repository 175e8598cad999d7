"""Reads from git's index what git has of a file, without starting git.

The agent can write an index and objects. But an object is named by the hash of its content, and whoever can make one
knows that content already: so what the repository has is no secret. Names in the index only say where to look first.
"""

from __future__ import annotations

import posixpath
import stat

from claudebox.errors import suppress
from claudebox.host.git import pointed_to
from claudebox.host.tree import Tree
from claudebox.paths import is_inside, normalize, parents

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    _Entry = tuple[str, int, int, int]  # name, flags, where it begins, and how much of the name is the last one's

LARGEST_INDEX_BYTES, WORD = 1 << 26, 1 << 32
NAME_LENGTH = 0xFFF  # these bits of an entry's flags
BLOB, FLAGS = 20, 2
PACK_HEAD, PACK_NAMES, MOST_PACKS = b"\xfftOc\0\0\0\2", 8 + 256 * 4, 200


class Indexes:
    """The indexes of the repositories of a project, each read once."""

    def __init__(self, tree: Tree, project: str, git_dir: str) -> None:
        self.tree = tree
        self.project = project
        self.git_dirs = {project: git_dir}
        self.found: dict[str, dict[str, bytes]] = {}
        self.room = LARGEST_INDEX_BYTES  # of all of them

    def repository(self, path: str) -> str:
        """The checkout that a file belongs to, "" if it is in none."""
        inside = (above for above in parents(path) if is_inside(above, self.project))
        return next((above for above in inside if self.git_dir(above)), "")

    def has(self, path: str, content: bytes) -> bool:
        """Whether the repository has this content, of whatever file: then the agent can read it there."""
        git_dir = self.git_dir(self.repository(path) or self.project)
        if not git_dir:
            return False
        common = (self.tree.read_plain(f"{git_dir}/commondir", 1 << 12) or b"").decode(errors="surrogateescape").strip()
        objects = f"{normalize(posixpath.join(git_dir, common))}/objects"
        # An agent can have a repository lead to one that it cannot read.
        is_own = git_dir == self.git_dirs[self.project] or is_inside(objects, self.project)
        blob = _git_blob(content)
        loose = f"{objects}/{blob.hex()[:2]}"
        if not is_own or self.tree.resolve(objects) != objects:
            return False
        if self.tree.lstat_anew(f"{loose}/{blob.hex()[2:]}") is not None and self.tree.resolve(loose) == loose:
            return True
        packs = [name for name in self.tree.entries(f"{objects}/pack") if name.endswith(".idx")]
        is_plain = self.tree.resolve(f"{objects}/pack") == f"{objects}/pack"
        return is_plain and any(_is_packed(self.tree, f"{objects}/pack/{name}", blob) for name in packs[:MOST_PACKS])

    def tracks(self, path: str) -> bool:
        checkout = self.repository(path)
        return bool(checkout) and path[len(checkout) + 1 :] in self.tracked(checkout)

    def has_seen(self, path: str, length: int, status: os.stat_result) -> bool:
        """Whether git has looked at this very file: the index has its inode, size and time.

        An agent can add the name of a file that does not exist yet, but cannot know its numbers. A file with other
        numbers has changed since, or git never saw it.
        """
        known = self.tracked(path[: length - 1]).get(path[length:], b"")
        seconds, part, inode, size = (int.from_bytes(known[at : at + 4], "big") for at in (8, 12, 20, 36))
        second, nanoseconds = divmod(status.st_mtime_ns, 10**9)
        is_same = (seconds, inode, size) == (second % WORD, status.st_ino % WORD, status.st_size % WORD)
        return bool(known) and is_same and part in (0, nanoseconds)

    def tracked(self, checkout: str) -> dict[str, bytes]:
        """The files of a checkout that git tracks, in order, each with its status. Without a readable index: none."""
        if checkout not in self.found:
            index = self.tree.read_plain(f"{self.git_dir(checkout)}/index", LARGEST_INDEX_BYTES) or b""
            self.room -= len(index)
            self.found[checkout] = _statuses(index) if self.room > 0 else {}
        return self.found[checkout]

    def ignoring(self, paths: Iterable[str]) -> bytes:
        """Patterns that keep git from adding these files, each from the root of its repository."""
        lines = []
        for path in paths:
            checkout = self.repository(path)
            if checkout and not is_inside(path, f"{checkout}/.git"):
                lines.append("/" + "".join(map(_literal, path[len(checkout) + 1 :])))
        return "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")

    def git_dir(self, directory: str) -> str:
        """The directory of git of a checkout; "" if this is none."""
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


def _git_blob(content: bytes) -> bytes:
    """The hash under which git stores a file with this content."""
    try:
        from _sha1 import sha1 as digest  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha1 as digest
    return bytes(digest(b"blob %d\0" % len(content) + content).digest())  # noqa: S324  (git's choice)


def _is_packed(tree: Tree, path: str, blob: bytes) -> bool:
    """Whether the list of a pack has an object: 256 amounts, by the first byte of names, and the names in order."""
    status = tree.lstat(path)
    if status is None or not stat.S_ISREG(status.st_mode):
        return False  # a FIFO would never end
    with suppress(OSError), open(tree.root + path, "rb") as file:
        head = file.read(PACK_NAMES)
        first, last = (int.from_bytes(head[at : at + 4], "big") for at in (4 + 4 * blob[0], 8 + 4 * blob[0]))
        low, high = first if blob[0] else 0, last
        while head.startswith(PACK_HEAD) and low < high:
            middle = (low + high) // 2
            file.seek(PACK_NAMES + BLOB * middle)
            name = file.read(BLOB)
            if name == blob:
                return True
            low, high = (middle + 1, high) if name < blob else (low, middle)
    return False


def _literal(character: str) -> str:
    """A character of a pattern. For a newline, which a pattern cannot have, `?` stands, which is any character."""
    return f"\\{character}" if character in "*?[\\ !#" else "?" if character in "\n\r" else character


def _statuses(index: bytes) -> dict[str, bytes]:
    """What an index says of each file. It may have 100,000, and is read at every start."""
    amount = int.from_bytes(index[8:12], "big")
    if amount > MANY and index.startswith(VERSIONS[0]):
        import re  # which takes as long as to read some thousand entries one by one

        # The first bytes of an entry are a time, which is hardly ever zero.
        found = re.compile(rb"(?s:(.{40}).{22})([^\0]+)\0+").findall(index, 12)[:amount]
        if len(found) == amount:
            names = b"\0".join([name for _, name in found]).decode(errors="surrogateescape").split("\0")
            return dict(zip(names, [status for status, _ in found], strict=True))
    entries = _entries(index, BLOB)[0] if index.startswith(VERSIONS) else []
    return {name: index[start : start + HASH] for name, _, start, _ in entries}


# Directories whose content tools make; the walk enters them, but nobody writes down a secret there.
BUILDS = frozenset("build dist out vendor coverage htmlcov bin obj deps bazel-out cmake-build-debug".split())
# Endings of files that are no text.
NO_TEXT = frozenset(
    "7z a avi bin bmp bz2 class db dll dylib eot exe gif gz ico jar jpeg jpg mo mov mp3 mp4 o ogg otf pdf png pyc so "
    "sqlite svg tar tgz tiff ttf wasm wav webm webp whl woff woff2 xz zip zst map lock".split()
)
MANY = 2_000  # entries of an index
MOST_COMPARED = 50_000  # names in directories of which git does not track everything
MOST_LOOSE, MOST_LOOSE_BYTES, MOST_LOOKED_AT = 1_000, 4 << 20, 10_000
LARGEST_LOOSE = 1 << 16


class Loose:
    """Collects the small files that git does not track. If they are too many, the youngest are those to look into.

    Without git, these are all files. An agent can add the name of a future file to an index. So in directories that
    have changed `since` the last box started, git must have seen the file itself.
    """

    def __init__(self, indexes: Indexes, since: int = 0) -> None:
        self.indexes, self.since = indexes, since  # nanoseconds; 0 if no box was ever started
        self.found: list[tuple[int, int, str]] = []  # time of the last change, size and path
        self.is_cut = False
        self.room = MOST_COMPARED
        # By directory: what git tracks in its checkout, and where its own part of such a path begins.
        self.tracked: dict[str, tuple[list[str], int]] = {}
        self.built: set[str] = set()

    def files(self) -> list[str]:
        files, room = [], MOST_LOOSE_BYTES
        for _, size, path in sorted(self.found, reverse=True)[:MOST_LOOSE]:
            room -= size
            files += [path] if room >= 0 else []
        self.is_cut |= len(files) < len(self.found)
        return files

    def look(self, directory: str, listing: list[os.DirEntry[str]], names: list[str]) -> None:
        above, _, own = directory.rpartition("/")
        if self.is_cut or above in self.built or (own in BUILDS and above in self.tracked):
            self.built.add(directory)
            return
        if directory not in self.tracked:
            is_checkout = (above not in self.tracked or ".git" in names) and bool(self.indexes.git_dir(directory))
            self.tracked[directory] = (
                (list(self.indexes.tracked(directory)), len(directory) + 1)
                if is_checkout
                else self.tracked.get(above, ([], 0))
            )
        tracked, length = self.tracked[directory]
        inner = f"{directory}/"[length:]
        status = self.indexes.tree.lstat(directory) if self.since else None
        is_young = status is not None and status.st_ctime_ns >= self.since
        missing = _missing(tracked, inner, listing, names) if tracked else listing
        self.room -= len(names) if missing else 0
        self.is_cut = self.room < 0
        known = set(listing).difference(missing) if is_young else set()
        for entry in (*missing, *known):
            if entry.name.rpartition(".")[2].lower() not in NO_TEXT and entry.is_file(follow_symlinks=False):
                self._add(entry, directory, length if entry in known else 0)

    def _add(self, entry: os.DirEntry[str], directory: str, length: int) -> None:
        """Add a file, unless git tracks it: then there is the length of the path of its checkout."""
        path = f"{directory}/{entry.name}"
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return
        is_seen = length and (status.st_ctime_ns < self.since or self.indexes.has_seen(path, length, status))
        if 0 < status.st_size <= LARGEST_LOOSE and not is_seen:
            self.is_cut |= len(self.found) >= MOST_LOOKED_AT
            self.found += [] if self.is_cut else [(status.st_ctime_ns, status.st_size, path)]


def _missing(
    tracked: list[str], inner: str, listing: list[os.DirEntry[str]], names: list[str]
) -> list[os.DirEntry[str]]:
    """What is in a directory and not tracked. If an agent wrote the index unsorted, more files count as untracked."""
    from bisect import bisect_left

    place = bisect_left(tracked, inner)
    if tracked[place : place + len(names)] == sorted(map(inner.__add__, names)):
        return []  # the common case, without a step of Python for each name, and without a set of 100,000 paths
    paths = [(entry, inner + entry.name) for entry in listing]
    return [entry for entry, path in paths if path not in tracked[(at := bisect_left(tracked, path)) : at + 1]]


HASH, DIRECTORY = 40, 0o40000  # where it is in an entry; the mode of a directory
HASHES = (20, 32)  # the bytes of a hash: SHA-1 or SHA-256, as the repository has it
LONGER = 0x4000  # a flag: two more bytes come before the name
ASSUME_UNCHANGED, STAGE = 0x8000, 0x3000
SKIP_WORKTREE, INTENT = 0x4000 << 16, 0x2000 << 16  # in those two bytes
NAMES_ARE_CUT = 4  # the version of an index in which a name has only what differs from the name before


def find_hidden(index: bytes) -> set[str] | None:
    """The files that git was told not to look at; None if that cannot be read here."""
    if not index.startswith(b"DIRC") or len(index) < HASH:
        return None if index else set()
    for size in HASHES:
        entries, _ = _entries(index, size)
        if len(entries) == int.from_bytes(index[8:12], "big"):
            return {name for name, flags, *_ in entries if flags & (ASSUME_UNCHANGED | SKIP_WORKTREE)}
    return None


ODD = ("/../", "/./", "//", "/.git/", "/git~1/")  # parts that git never makes, and would write through
VERSIONS = (b"DIRC\0\0\0\2", b"DIRC\0\0\0\3", b"DIRC\0\0\0\4")
TREES, BLOCKS, END = b"TREE", b"IEOT", b"EOIE"
# The last is libgit2's. There is none of an index that is split in two: what is in both would have to be put together.
EXTENSIONS = frozenset((TREES, BLOCKS, END, b"REUC", b"UNTR", b"FSMN", b"sdir", b"NAME"))


def is_forged(index: bytes, hash_size: int) -> bool:
    """Whether git would not have written this index so: it restores files, and commits, by what it reads there.

    Git reads more than it writes. So all of it has to be as git writes it, up to the hash at the end.
    """
    entries, position = _entries(index, hash_size)
    is_whole = index.startswith(VERSIONS) and len(entries) == int.from_bytes(index[8:12], "big")
    end, last, extensions = position, len(index) - hash_size, dict[bytes, bytes]()
    while position + 8 <= last and (kind := index[position : position + 4]) not in extensions:
        start, position = position + 8, position + 8 + int.from_bytes(index[position + 4 : position + 8], "big")
        extensions[kind] = index[start:position]
    # A directory that a sparse index stands for ends with a slash.
    names = "".join(f"/{name.removesuffix('/')}/\0" for name, *_ in entries).lower()
    is_known = is_whole and position == last and EXTENSIONS.issuperset(extensions)
    if not is_known or any(part in names for part in ODD):
        return True
    if END in extensions and int.from_bytes(extensions[END][:4], "big") != end:
        return True
    if BLOCKS in extensions and not _are_blocks(extensions[BLOCKS], entries):
        return True
    return TREES in extensions and not _are_trees(extensions[TREES], _trees(index, entries, hash_size), hash_size)


def _are_blocks(data: bytes, entries: list[_Entry]) -> bool:
    """Whether blocks of entries, which git reads at the same time, begin where these entries do."""
    words = [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]
    number = 0
    for start, amount in zip(words[1::2], words[2::2], strict=False):
        if [entry[2:] for entry in entries[number : number + 1]] != [(start, 0)]:
            return False
        number += amount
    return words[:1] == [1] and len(data) % 8 == 4 and number == len(entries)


def _trees(index: bytes, entries: list[_Entry], hash_size: int) -> dict[str, tuple[int, bytes]]:
    """For each directory, the number of its entries and the hash of the object that git makes of them."""
    from hashlib import sha1, sha256

    inside: dict[str, dict[str, tuple[int, bytes]]] = {"": {}}
    found: dict[str, tuple[int, bytes]] = {}
    for name, flags, start, _ in entries:
        blob = index[start + HASH : start + HASH + hash_size]
        path, entry = name.removesuffix("/"), (int.from_bytes(index[start + 24 : start + 28], "big"), blob)
        if entry[0] == DIRECTORY:
            found[path] = 1, blob
        if flags & (STAGE | INTENT) or (path != name) != (entry[0] == DIRECTORY):
            entry = 0, b""  # git makes no tree with it
        is_known = False
        while path and not is_known:
            above, _, last = path.rpartition("/")
            is_known = above in inside
            here = inside.setdefault(above, {})
            here[last] = (0, b"") if last in here else entry
            path, entry = above, (DIRECTORY, b"")
    for directory in sorted(inside, key=len, reverse=True):  # what is in it comes first
        rows, amount = [], 0
        for name, (mode, blob) in inside[directory].items():
            below, inner = found.get(f"{directory}/{name}" if directory else name, (1, blob))
            rows.append(b"%o %s\0%s" % (mode, name.encode(errors="surrogateescape"), inner))
            amount += below
        digest = (sha1 if hash_size == BLOB else sha256)(b"".join((b"tree %d\0" % sum(map(len, rows)), *rows)))
        found[directory] = amount, digest.digest()
    return found


def _are_trees(data: bytes, trees: dict[str, tuple[int, bytes]], hash_size: int) -> bool:
    """Whether what git would take for the trees of a commit, without making them, are those of the entries."""
    position, above = 0, [("", 1)]  # directories that are not at their end, and how many more are in them
    try:
        while above:
            path, more = above.pop()
            if more:
                above.append((path, more - 1))
                end = data.index(b"\0", position)
                path += data[position:end].decode(errors="surrogateescape")
                position = data.index(b"\n", end) + 1
                amount, inner = data[end + 1 : position - 1].split(b" ")
                above.append((f"{path}/" if path else "", int(inner) if inner.isdigit() else -1))
                if amount != b"-1":
                    known, tree = trees.get(path, (-1, b""))
                    if (amount, data[position : position + hash_size]) != (b"%d" % known, tree):
                        return False
                    position += hash_size
    except ValueError:
        return False
    return position == len(data)


def _entries(index: bytes, hash_size: int) -> tuple[list[_Entry], int]:
    """The entries of an index, and where they end.

    That is at what is wrong: with another size of hashes, the first entry. What a name has from the one before takes
    room, too: a few megabytes could spell names beyond all memory.
    """
    version, amount = int.from_bytes(index[4:8], "big"), int.from_bytes(index[8:12], "big")
    found: list[_Entry] = []
    position, name, head, room = 12, b"", HASH + hash_size, LARGEST_INDEX_BYTES
    for _ in range(amount):
        start, flags = position, int.from_bytes(index[position + head : position + head + FLAGS], "big")
        position += head + FLAGS
        length = flags & NAME_LENGTH
        if flags & LONGER:
            flags |= int.from_bytes(index[position : position + 2], "big") << 16
            position += 2
        shared = 0  # characters of the name before
        if version == NAMES_ARE_CUT:
            dropped, position = _number(index, position)
            shared = len(name) - dropped
            room -= max(shared, 0)
        end = index.find(b"\0", position)
        if end < 0 or shared < 0 or room < 0:
            break  # not an index that git would write, or one that is too large
        if length != min(shared + end - position, NAME_LENGTH):
            break  # the hashes have another size
        name = name[:shared] + index[position:end]
        found.append((name.decode(errors="surrogateescape"), flags, start, shared))
        # Entries begin at multiples of eight bytes, and a name ends with at least one zero.
        position = end + 1 if version == NAMES_ARE_CUT else start + (end - start + 8) // 8 * 8
    return found, position


def _number(data: bytes, position: int) -> tuple[int, int]:
    """A length as git writes it, and where it ends: seven bits per byte, and each but the last counts one more."""
    byte = data[position] if position < len(data) else 0
    value = byte & 0x7F
    while byte & 0x80 and position + 1 < len(data):
        position += 1
        byte = data[position]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, position + 1
