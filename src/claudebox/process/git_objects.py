"""Reads commits and directories of a repository, each checked against its name; git hands them out in a bare box.

An agent can write every file of a repository. But the name of an object is the hash of its content: with the name of a
commit from before the box, its whole history can be checked, and an object that was replaced since is refused. Replace
refs, grafts and git's own caches do not count. Git runs in a box without network, home, configuration or anything that
it could write; should it lie, the names of the objects show it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import time
from contextlib import contextmanager, suppress
from heapq import heappop, heappush
from threading import Timer

from claudebox.host import pinned, read_host
from claudebox.host.git.directory import common_dir
from claudebox.host.programs import trusted_program
from claudebox.record import Record
from claudebox.state.reach import reach_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MOST_COMMITS = 20_000
MOST_CACHED, MOST_COMPARED, DEEPEST = 5000, 100_000, 200  # directories
DIRECTORY, LINK, PROGRAM, FILE, SUBMODULE = 0o40000, 0o120000, 0o100755, 0o100644, 0o160000
OCTAL = frozenset(b"01234567")
SHA1 = 20  # bytes of a name; those of SHA-256 are longer
NOTHING = 0, b""
MISSING = "object {:.12} is missing"

Directory = dict[bytes, tuple[int, bytes]]  # mode and object of each name


class CannotTell(Exception):
    """An object is missing or damaged, or there is more than anybody would wait for."""


class Commit(Record):
    """A state of the files, with what it was made from."""

    tree: bytes
    parents: tuple[bytes, ...]
    date: int


def hash_of(kind: bytes, content: bytes, size: int = SHA1) -> bytes:
    import hashlib  # not before it is needed: every box looks at refs, and this takes as long as all of that

    digest = hashlib.sha1 if size == SHA1 else hashlib.sha256
    return digest(b"%s %d\0" % (kind, len(content)) + content, usedforsecurity=False).digest()


class Objects:
    """The objects of a repository, for some seconds. `ask` says of what kind one is, and its content."""

    def __init__(self, ask: Callable[[bytes], tuple[bytes, bytes]], seconds: float = 60) -> None:
        self.ask = ask
        self.commits: dict[bytes, Commit] = {}
        self.directories: dict[bytes, Directory] = {}
        self.until = time.monotonic() + seconds

    def read(self, name: bytes) -> tuple[bytes, bytes]:
        kind, content = self.ask(name)
        if hash_of(kind, content, len(name)) != name:
            raise CannotTell(f"object {name.hex()[:12]} is not what its name says")
        return kind, content

    def commit(self, name: bytes) -> Commit:
        """A commit, or the one that a tag names."""
        if name not in self.commits:
            kind, content = self.read(name)
            try:
                while kind == b"tag":
                    kind, content = self.read(bytes.fromhex(content[7:].split(b"\n")[0].decode()))
                self.commits[name] = _commit(content if kind == b"commit" else b"")
            except (ValueError, IndexError):
                raise CannotTell(f"object {name.hex()[:12]} is no commit") from None
        return self.commits[name]

    def directory(self, name: bytes) -> Directory:
        """The entries of a directory; none if there is no name, or it is something else."""
        if name and name not in self.directories:
            kind, content = self.read(name)
            if len(self.directories) > MOST_CACHED:
                self.directories.clear()
            try:
                self.directories[name] = _directory(content, len(name)) if kind == b"tree" else {}
            except ValueError:
                raise CannotTell(f"object {name.hex()[:12]} is no directory") from None
        return self.directories[name] if name else {}

    def find(self, commit: bytes, path: str) -> tuple[int, bytes]:
        """The mode and the object that a commit has at a path; NOTHING if there is none."""
        found = DIRECTORY, self.commit(commit).tree
        for part in os.fsencode(path).split(b"/"):
            found = self.directory(found[1] if found[0] == DIRECTORY else b"").get(part, NOTHING)
        return found

    def had(self, commits: Iterable[bytes], path: str, entry: tuple[int, bytes]) -> bool:
        """Whether one of these commits had this at a path, as far as they can be read."""
        for commit in commits:
            with suppress(CannotTell):
                if self.find(commit, path) == entry:
                    return True
        return False

    def differences(self, tree: bytes, olds: tuple[bytes, ...]) -> Iterator[tuple[bytes, tuple[int, bytes]]]:
        """Paths that are otherwise below a directory than below each of some older ones, with what is there now.

        What is nearest to the root comes first; directories that are equal are not read.
        """
        waiting = [(b"", tree, olds or (b"",))]
        for number, (above, inner, older) in enumerate(waiting):
            here, *before = [self.directory(name) for name in (inner, *older)]
            if time.monotonic() > self.until or above.count(b"/") > DEEPEST or number > MOST_COMPARED:
                raise CannotTell("there are too many files")
            for name in set.intersection(*({name for name, _ in here.items() ^ one.items()} for one in before)):
                entries = [one.get(name, NOTHING) for one in (here, *before)]
                below = [one[1] if one[0] == DIRECTORY else b"" for one in entries]
                if any(below):
                    waiting.append((above + name + b"/", below[0], tuple(below[1:])))
                if any(one[0] not in (0, DIRECTORY) for one in entries):
                    yield above + name, entries[0] if entries[0][0] != DIRECTORY else NOTHING


class History:
    """What some tips lead to, the newest first, as far as somebody asks."""

    def __init__(self, objects: Objects, tips: Iterable[bytes]) -> None:
        self.objects = objects
        self.tips = [*dict.fromkeys(tips)][::-1]
        self.known = set(self.tips)
        self.size = len(self.tips[0]) if self.tips else SHA1
        self.order: list[bytes] = []
        self.newest: list[tuple[int, bytes]] = []

    def go_on(self) -> bool:
        """Read one more tip, and the parents of the newest commit. False if there are none, or too many."""
        if not (self.tips or self.newest) or len(self.order) >= MOST_COMMITS:
            return False
        following = [self.tips.pop()] if self.tips else []
        if self.newest:
            parents = self.objects.commits[heappop(self.newest)[1]].parents
            following += [one for one in parents if one not in self.known]
        for name in following:
            self.known.add(name)
            with suppress(CannotTell):  # a shallow history ends somewhere
                heappush(self.newest, (-self.objects.commit(name).date, name))
                self.order.append(name)
        return True

    def walk(self) -> Iterator[bytes]:
        number = 0
        while number < len(self.order) or self.go_on():
            if number < len(self.order):
                yield self.order[number]
                number += 1

    def find_new(self, tip: bytes) -> tuple[list[bytes], str]:
        """The commits that only this tip leads to, the oldest first; and why these are not all, "" if they are.

        For each of them one of the history is read, too, so that a branch which began further back soon meets it. Dates
        of commits are anybody's choice: they only save time.
        """
        found: dict[bytes, int] = {}
        waiting, trouble = [tip], ""
        while waiting and len(found) < MOST_COMMITS:
            name = waiting.pop()
            if name not in self.known and name not in found:
                try:
                    commit = self.objects.commit(name)
                    found[name] = commit.date
                    waiting += commit.parents[::-1]
                except CannotTell as error:
                    trouble = str(error)
                self.go_on()
        oldest = min((date for name, date in found.items() if name not in self.known), default=1 << 63)
        while (self.tips or (self.newest and -self.newest[0][0] >= oldest)) and self.go_on():
            pass  # some may be known by a longer way
        new = [name for name in found if name not in self.known][::-1]
        return new, trouble or (f"there are more than {MOST_COMMITS:,}" if waiting else "")


def _commit(content: bytes) -> Commit:
    pairs = [line.split(b" ") for line in content.partition(b"\n\n")[0].split(b"\n")]
    tree, *parents = [bytes.fromhex(pair[1].decode()) for pair in pairs if pair[0] in (b"tree", b"parent")]
    dates = [pair[-2] for pair in pairs if pair[0] == b"committer"]
    return Commit(tree, tuple(parents), int(dates[0]) if dates[0].isdigit() and len(dates[0]) < 16 else 0)


def _directory(content: bytes, size: int) -> Directory:
    found: Directory = {}
    position = 0
    while position < len(content):
        end = content.index(b"\0", position)
        mode, _, name = content[position:end].partition(b" ")
        position = end + 1 + size
        if name in found:
            raise ValueError
        found[name] = _mode(mode), content[end + 1 : position]
    return found


def _mode(text: bytes) -> int:
    """The mode as git takes it: the kind is in the highest four bits, and of the others only one counts, of a file."""
    mode = int(text, 8) if OCTAL.issuperset(text) else 0
    kind = mode & 0o170000
    if kind not in (DIRECTORY, LINK, SUBMODULE, FILE & 0o170000):
        raise ValueError
    return kind if kind != FILE & 0o170000 else PROGRAM if mode & 0o100 else FILE


LARGEST = 1 << 24  # bytes of an object: a directory with 400,000 names
MOST_MEMORY = 1 << 31
BOX = "--unshare-all --die-with-parent --new-session --cap-drop ALL --clearenv --dev /dev".split()
SYSTEM = [word for path in ("/usr", "/bin", "/lib", "/lib64", "/nix/store") for word in ("--ro-bind-try", path, path)]
# A repository of our own, of which only the objects are the agent's.
BARE = "--dir /git/refs --symlink refs/heads/none /git/HEAD --remount-ro /".split()
SHA256 = b"[core]\nrepositoryformatversion=1\n[extensions]\nobjectformat=sha256\n"
GIT = "--git-dir=/git -c core.packedGitWindowSize=16m -c core.packedGitLimit=256m cat-file --batch".split()


def _program(name: str) -> str:
    """Where it is, behind all symlinks: the box has the directories of the system alone."""
    host = read_host()
    found = trusted_program(host, name, reach_of(host))
    return os.path.realpath(pinned.PROGRAMS.get(name) or found or f"/usr/bin/{name}")


@contextmanager
def open_objects(bwrap: str, git_dir: str, tip: str, seconds: float) -> Iterator[Objects]:
    """The objects of a repository, for some seconds: then nobody can tell any more. `tip` is the name of one."""
    bwrap, git = bwrap or _program("bwrap"), _program("git")
    config, end = os.pipe()
    os.write(end, b"" if len(tip) == 2 * SHA1 else SHA256)
    os.close(end)
    mounts = ["--file", str(config), "/git/config", "--ro-bind", f"{common_dir(git_dir)}/objects", "/git/objects"]
    try:
        process = subprocess.Popen(
            [bwrap, *BOX, *SYSTEM, *mounts, *BARE, git, *GIT],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(config,),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY)),
        )
    except OSError as error:
        raise CannotTell(f"{bwrap}: {error.strerror}") from None
    finally:
        os.close(config)
    limit = Timer(seconds, process.kill)
    limit.start()
    try:
        yield Objects(lambda name: _ask(process, name), seconds)
    finally:
        limit.cancel()
        process.kill()
        with process:
            pass


def _ask(process: subprocess.Popen[bytes], name: bytes) -> tuple[bytes, bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        os.write(process.stdin.fileno(), b"%s\n" % name.hex().encode())
        _, kind, *rest = process.stdout.readline(100).split()
        size = int(rest[0]) if rest else 0
        content = process.stdout.read(size + 1)[:-1] if rest and size <= LARGEST else b""
    except (OSError, ValueError):
        raise CannotTell("git took too long, or could not be started") from None
    if not rest or len(content) != size:
        raise CannotTell(f"object {name.hex()[:12]} is too large" if rest else MISSING.format(name.hex()))
    return kind, content
