"""What lies in a directory of git, read without git: refs, and what git itself did not write there.

Git makes files and directories while one works, and a socket. It follows a symlink when it writes the message of a
commit, a log or the index: whoever has put one there chooses which file of the user is written. And other programs
obey files that they find beside git's own (`lazygit.yml`), or git does (`commondir`, `info/grafts`). So the list of
what git writes is the rule:

- No symlink, FIFO or device is allowed. Exceptions are files that git only reads, which people link to files of their
  own; a HEAD that names a branch; and symlinks to the same directory in another repository of the same project, as
  `git-new-workdir`, git-annex and the `repo` tool make them. Those are searched like a part of this one.
- An index is as git writes it: no other names, no trees but those of its entries. It is read if it has changed since
  somebody looked.
- Where git or other programs look for names they know (at the top, in `info`, `objects/info`, `branches`, `remotes`),
  only git's own names are allowed. The guard looks at hooks and configurations.
"""

from __future__ import annotations

import os
import posixpath
import stat

from claudebox.host.git import parse_config
from claudebox.host.git.index import HASHES, LARGEST_INDEX_BYTES, is_forged
from claudebox.host.tree import Tree
from claudebox.host.walk import BEYOND, LINK, OTHER, UNREAD, Entry
from claudebox.paths import is_inside, normalize
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_DIRECTORIES = 50_000
MOST_FOUND = 1000
STRANGE = "strange"  # the kind of what is not git's own
FORGED = "forged"  # the kind of an index that git did not make
INDEXES = ("index", "sharedindex.")
ONLY_READ = ("config", "description", "info/exclude", "info/attributes")
# Git gives the files in the other directories of these fresh names, and renames them: it writes through none of them.
# There may be thousands.
OBJECTS = ("objects", "lfs/objects", "annex/objects")
OPERATIONS = ("rebase-merge", "rebase-apply", "sequencer")  # what git notes of a rebase, or many picks, in progress
RERERE = "rr-cache"  # conflicts that git resolves by itself if it is there: it is the user's own, or nobody's
LINKED = ("commondir", "gitdir", "locked")  # in the directory of a linked worktree

GITS_OWN = {
    "": frozenset(
        "HEAD index config hooks objects refs logs info packed-refs shallow description branches remotes worktrees "
        "modules lfs reftable annex svn lost-found rebase-merge rebase-apply sequencer AUTO_MERGE MERGE_AUTOSTASH "
        "MERGE_MODE MERGE_RR NOTES_MERGE_PARTIAL NOTES_MERGE_REF NOTES_MERGE_WORKTREE EDIT_DESCRIPTION "
        "ADD_EDIT.patch addp-hunk-edit.diff gc.log gc.pid fsmonitor--daemon fsmonitor--daemon.ipc".split()
    ),
    "info": frozenset("exclude sparse-checkout refs".split()),
    "objects/info": frozenset("packs commit-graph commit-graphs".split()),
    # Where git once kept addresses, which it still obeys. `git init` makes one of them, empty.
    "branches": frozenset(),
    "remotes": frozenset(),
}
OWN_BEGINNINGS = ("BISECT_", "sharedindex.", "index.", "next-index-", "tmp_")
OWN_ENDS = ("_HEAD", "_MSG", "_EDITMSG", ".lock")


def find_detours(tree: Tree, git_dirs: Iterable[str], roots: Iterable[str], since: int) -> list[Entry]:
    """Everything in these directories that git did not write, up to a limit for each.

    `roots` is where agents can write. A directory that cannot be listed, and one too many, are found themselves. An
    index is read if it has changed `since`, in nanoseconds.
    """
    git_dirs = dict.fromkeys(git_dirs)
    search = _Search(tree, tuple(roots), frozenset(git_dirs), since)
    for git_dir in git_dirs:  # each has room of its own: nothing in one keeps another from being looked at
        search.enter(git_dir, "")
        most = len(search.found) + MOST_FOUND
        while search.waiting and len(search.found) < most:
            search.look(*search.waiting.pop())
        if len(search.found) >= most:
            search.found.append(Entry(git_dir, BEYOND))
            search.waiting.clear()
    return sorted(search.found, key=lambda entry: entry.path)


class _Search:
    def __init__(self, tree: Tree, roots: tuple[str, ...], git_dirs: frozenset[str], since: int) -> None:
        self.tree = tree
        self.roots = roots
        self.git_dirs = git_dirs
        self.since = since
        self.found: list[Entry] = []
        self.waiting: list[tuple[str, str]] = []
        self.seen: set[str] = set()

    def enter(self, directory: str, part: str) -> None:
        """Look at a directory later. `part` is its name in the directory of git that it belongs to."""
        if directory in self.seen or not self._is_inside(directory) or (part and directory in self.git_dirs):
            return  # a directory of git in another one, of a worktree, is looked at by itself
        self.seen.add(directory)
        if len(self.seen) == MOST_DIRECTORIES:
            self.found.append(Entry(directory, BEYOND))
        if len(self.seen) < MOST_DIRECTORIES:
            self.waiting.append((directory, part))

    def look(self, directory: str, part: str) -> None:
        try:
            with os.scandir(self.tree.root + directory) as listing:
                entries = list(listing)
        except PermissionError:
            self.found.append(Entry(directory, UNREAD))  # git needs no list to write a file whose name it knows
            return
        except OSError:
            return
        for entry in entries:
            name = f"{part}/{entry.name}" if part else entry.name
            if name == "hooks" or (part in OBJECTS and entry.name not in ("info", "pack") and not entry.is_symlink()):
                continue
            path = f"{directory}/{entry.name}"
            if entry.is_symlink():
                self._follow(path, name)
            elif part in GITS_OWN and not self._is_gits(path, part):
                self.found.append(Entry(path, STRANGE))
            elif entry.is_dir(follow_symlinks=False):
                self.enter(path, name)
            elif not entry.is_file(follow_symlinks=False) and not self._is_socket(path):
                self.found.append(Entry(path, OTHER))
            elif not part and entry.name.startswith(INDEXES) and self._is_forged(directory, entry.name):
                self.found.append(Entry(path, FORGED))

    def _is_socket(self, path: str) -> bool:
        status = self.tree.lstat(path)
        return status is None or stat.S_ISSOCK(status.st_mode)

    def _is_forged(self, git_dir: str, name: str) -> bool:
        path = f"{git_dir}/{name}"
        status = self.tree.lstat(path)
        if status is None or status.st_ctime_ns < self.since or not status.st_size or name.endswith(".lock"):
            return False  # nobody reads a lock
        index = self.tree.read_plain(path, LARGEST_INDEX_BYTES)
        return index is not None and is_forged(index, hash_size(self.tree, git_dir))

    def _is_gits(self, path: str, part: str) -> bool:
        if path in self.seen or path in self.git_dirs:
            return True
        directory, name = posixpath.split(path)
        if name in (own := GITS_OWN[part]) or (own and (name.startswith(OWN_BEGINNINGS) or name.endswith(OWN_ENDS))):
            return True
        above = posixpath.dirname(directory)
        if posixpath.basename(above) != "worktrees" or name not in LINKED:
            return False
        # `git worktree repair` writes where `gitdir` says: there has to be a checkout that says the same.
        named = normalize(posixpath.join(directory, (self.tree.text(path) or "").rstrip("\n")))
        is_usual = self._is_inside(named) or directory in (self.tree.text(named) or "")
        return {"commondir": named == posixpath.dirname(above), "gitdir": is_usual}.get(name, True)

    def _follow(self, path: str, name: str) -> None:
        real = self.tree.resolve(path)
        is_same = real is not None and real.endswith(f"/{name}") and self._is_inside(real)
        if real is not None and is_same and self.tree.is_plain_directory(real):
            self.enter(real, name)
        elif name not in ONLY_READ and not (name == "HEAD" and self._names_branch(path)):
            self.found.append(Entry(path, LINK))

    def _names_branch(self, path: str) -> bool:
        """Whether git takes a symlink for the name of a branch. It makes such a HEAD: `core.preferSymlinkRefs`."""
        target = self.tree.link_target(path)
        return target.startswith("refs/") and ".." not in target

    def _is_inside(self, path: str) -> bool:
        return any(is_inside(path, root) for root in self.roots)


HEX = frozenset("0123456789abcdef")
LONGEST_LOG = 1 << 24
MOST_REFS = 50_000  # in files of their own
LONGEST = 1 << 16  # bytes of a file of an operation in progress
LONGEST_REF = 1 << 10  # bytes of a file that git takes for a ref
MOST_NOTES = 1000  # files beside HEAD, and of operations in progress, of which more is read
MOST_LED = 5  # symbolic refs that git follows
LARGEST = 1 << 26  # bytes of a file with refs


def is_sound(tree: Tree, git_dir: str) -> bool:
    """Whether git is certain to use this directory. If anything is wrong in it, git tries the one around it."""
    head = _text(tree, f"{git_dir}/HEAD", 255)
    parts = [tree.status(f"{git_dir}/{name}") for name in ("objects", "refs")]
    is_whole = all(part and part.st_mode & stat.S_IXUSR for part in parts) and tree.lacks(f"{git_dir}/commondir")
    return is_whole and (head.startswith("ref: refs/") or (head[:1].isalnum() and bool(_commit(head))))


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


def hash_size(tree: Tree, git_dir: str) -> int:
    """The bytes of a name of an object. A file of a ref may have digits of any number."""
    config = dict(parse_config(tree.text(f"{common_dir(git_dir)}/config") or ""))
    return HASHES[config.get("extensions.objectformat") == "sha256"]


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
    So does what HEAD's log names, for `git checkout -`.
    """
    common = common_dir(git_dir)
    places = [common, *(f"{common}/worktrees/{name}" for name in tree.entries(f"{common}/worktrees"))]
    paths = [f"{place}/{name}" for place in places for name in tree.entries(place) if name.isupper()]
    under_way = [f"{place}/{name}" for place in places for name in OPERATIONS]
    paths += [f"{directory}/{name}" for directory in under_way for name in tree.entries(directory)]
    waiting = [f"{place}/refs" for place in places]
    while waiting and len(paths) < MOST_REFS:
        try:
            with os.scandir(tree.root + waiting.pop()) as listing:
                for entry in listing:
                    if len(paths) >= MOST_REFS:
                        break
                    path = entry.path[len(tree.root) :]
                    (waiting if entry.is_dir(follow_symlinks=False) else paths).append(path)
        except OSError:
            continue
    found: dict[str, str] = {}
    is_read = True
    for number, path in enumerate(paths):
        name = path[len(common) + 1 :]
        longest = LONGEST_REF if number > MOST_NOTES or "refs/" in name else LONGEST
        text = _led(tree, common, _text(tree, path, longest))
        is_read &= len(text) < longest
        for commit in filter(None, map(_commit, text.split())):  # MERGE_HEAD has several
            found[f"{name} {commit}" if name in found else name] = commit
    stashes = (tree.read_plain(f"{common}/logs/refs/stash", LONGEST_LOG) or b"").decode(errors="replace")
    commits = (_commit(line.partition(" ")[2]) for line in stashes.split("\n"))
    found |= {f"refs/stash@{{{commit}}}": commit for commit in commits if commit}
    for place in places:
        log = tree.read_plain(f"{place}/logs/HEAD", LONGEST_LOG) or b""
        is_read &= len(log) < LONGEST_LOG
        named = {*found.values()}
        logged = dict.fromkeys(_logged(log.decode("latin-1")))
        found |= {f"HEAD@{{{commit}}}": commit for commit in logged if commit not in named}
    packed = tree.read_plain(f"{common}/packed-refs", largest) or b""
    tables = tree.read_plain(f"{common}/reftable/tables.list") or b""
    is_read &= len(stashes) < LONGEST_LOG and len(paths) < MOST_REFS
    return Refs(found, packed, tables, is_read and len(packed) < largest)


def read_all_refs(tree: Tree, git_dirs: Iterable[str]) -> dict[str, Refs]:
    """The refs of several repositories, by their directories. Linked worktrees share those of theirs."""
    found: dict[str, Refs] = {}
    room = LARGEST  # for all of them: an agent can leave a thousand repositories for the next start
    for git_dir in dict.fromkeys(map(common_dir, git_dirs)):
        found[git_dir] = read_refs(tree, git_dir, max(room, 0))
        room -= len(found[git_dir].packed)
    return found


def _text(tree: Tree, path: str, longest: int = LONGEST) -> str:
    """A file of git, in which a word ends at a zero byte, too."""
    return (tree.read_plain(path, longest) or b"").replace(b"\0", b"\n").decode("latin-1")


def _logged(log: str) -> Iterator[str]:
    """The commits of HEAD's log: where it was, and what a line says was left, to which `git checkout -` goes back."""
    for line in log.split("\n"):
        names, _, text = line.partition("\t")
        left = text.partition("moving from ")[2]
        for commit in map(_commit, (names, names.partition(" ")[2], left)):
            if commit.strip("0"):
                yield commit


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
