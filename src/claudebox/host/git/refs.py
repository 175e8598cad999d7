"""Reads which commit is checked out, and where refs are, without git: git obeys a repository."""

from __future__ import annotations

import os
import posixpath

from claudebox.host.git.detours import OPERATIONS
from claudebox.host.tree import Tree
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

HEX = frozenset("0123456789abcdef")
LONGEST_LOG = 1 << 24
MOST_REFS = 50_000  # in files of their own
LONGEST = 1 << 16  # bytes of such a file
MOST_NOTES = 1000  # files of operations in progress
MOST_LED = 5  # symbolic refs that git follows
LARGEST = 1 << 26  # bytes of a file with refs


class Head(Record):
    """A branch and its commit; "" for what is not known."""

    branch: str = ""
    commit: str = ""


def read_head(tree: Tree, git_dir: str) -> Head:
    text = os.fsdecode(_text(tree, f"{git_dir}/HEAD").strip().encode("latin-1"))
    branch = text.removeprefix("ref: ") if text.startswith("ref: refs/heads/") else ""
    if not branch:
        return Head("", _commit(text))
    if ".." in branch.split("/"):
        return Head()
    loose = _commit(_text(tree, f"{common_dir(git_dir)}/{branch}"))
    return Head(branch, loose or read_refs(tree, git_dir).tips.get(branch, ""))


def common_dir(git_dir: str) -> str:
    """Where the refs and objects are: linked worktrees share those of their repository."""
    above, name = posixpath.split(posixpath.dirname(git_dir))
    return above if name == "worktrees" else git_dir


class Refs(Record):
    """Where refs are at one moment, as git's files have it: most boxes move none, so nothing is parsed before."""

    loose: dict[str, str]  # commits by name
    packed: bytes
    tables: bytes  # which files have refs in the newer format, whose content nobody reads here
    is_whole: bool

    @property
    def tips(self) -> dict[str, str]:
        lines = (line.split(maxsplit=1) for line in self.packed.decode(errors="surrogateescape").split("\n"))
        found: dict[str, str] = {}
        for name, commit in ((words[1], _commit(words[0])) for words in lines if len(words) > 1):
            if commit:  # a name may stand there twice, and git takes one of them
                found[name if found.get(name, commit) == commit else f"{name} {commit}"] = commit
        return found | self.loose


def read_refs(tree: Tree, git_dir: str, largest: int = LARGEST) -> Refs:
    """All refs of a repository with its worktrees: also what is checked out without a branch, and each stash.

    A branch may lead to any file beside HEAD that is called like it, such as ORIG_HEAD, so those count, too; and what
    the files of an operation in progress name, which `git rebase --abort` may go back to.
    """
    common = common_dir(git_dir)
    places = [common, *(f"{common}/worktrees/{name}" for name in tree.entries(f"{common}/worktrees"))]
    paths = [f"{place}/{name}" for place in places for name in tree.entries(place) if name.isupper()]
    waiting = [f"{place}/refs" for place in places]
    while waiting and len(paths) < MOST_REFS:
        try:
            with os.scandir(tree.root + waiting.pop()) as listing:
                for entry in listing:
                    path = entry.path[len(tree.root) :]
                    (waiting if entry.is_dir(follow_symlinks=False) else paths).append(path)
        except OSError:
            continue
    texts = {path[len(common) + 1 :]: _led(tree, common, _text(tree, path)) for path in paths}
    found = {name: commit for name, text in texts.items() if (commit := _commit(text))}
    under_way = [f"{place}/{name}" for place in places for name in OPERATIONS]
    notes = [path for path in paths if posixpath.basename(path).isupper()]  # MERGE_HEAD has several
    notes += [f"{one}/{name}" for one in under_way for name in tree.entries(one)]
    for path in notes[:MOST_NOTES]:
        name = path[len(common) + 1 :]
        texts[name] = text = _text(tree, path)
        found |= {f"{name} {commit}": commit for word in text.split() if (commit := _commit(word))}
    stashes = (tree.read_plain(f"{common}/logs/refs/stash", LONGEST_LOG) or b"").decode(errors="replace")
    commits = (_commit(line.partition(" ")[2]) for line in stashes.split("\n"))
    found |= {f"refs/stash@{{{commit}}}": commit for commit in commits if commit}
    packed = tree.read_plain(f"{common}/packed-refs", largest) or b""
    tables = tree.read_plain(f"{common}/reftable/tables.list") or b""
    is_read = len(notes) < MOST_NOTES and all(len(text) < LONGEST for text in texts.values())
    return Refs(found, packed, tables, is_read and len(paths) < MOST_REFS and len(packed) < largest)


def read_all_refs(tree: Tree, git_dirs: Iterable[str]) -> dict[str, Refs]:
    """The refs of several repositories, by their directories. Linked worktrees share those of theirs."""
    found: dict[str, Refs] = {}
    room = LARGEST  # for all of them: an agent can leave a thousand repositories for the next start
    for git_dir in dict.fromkeys(map(common_dir, git_dirs)):
        found[git_dir] = read_refs(tree, git_dir, max(room, 0))
        room -= len(found[git_dir].packed)
    return found


def has_refs(tree: Tree, git_dir: str, prefix: str) -> bool:
    """Whether something is called `prefix/…`. In doubt it is: who asks can look."""
    refs = read_refs(tree, git_dir)
    return bool(refs.tables) or not refs.is_whole or any(name.startswith(f"{prefix}/") for name in refs.tips)


def _text(tree: Tree, path: str) -> str:
    """A file of git, in which a word ends at a zero byte, too."""
    return (tree.read_plain(path, LONGEST) or b"").replace(b"\0", b"\n").decode("latin-1")


def _led(tree: Tree, common: str, text: str) -> str:
    """What git finds where a symbolic ref leads: that may be any file of its directory. Refs are read anyway."""
    for _ in range(MOST_LED):
        name = text[4:].lstrip().partition("\n")[0].rstrip()
        if not text.startswith("ref:") or name.startswith("refs/") or ".." in name.split("/"):
            break
        text = _text(tree, f"{common}/{name}")
    return text


def _commit(text: str) -> str:
    """The name of a commit, as git reads it: in letters of any size, up to the first space."""
    word = "".join(text.split(maxsplit=1)[:1]).lower()
    return word if len(word) in (40, 64) and HEX.issuperset(word) else ""
