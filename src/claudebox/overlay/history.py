"""What commits carry that this host runs, and what a checkout has left that commits had before.

Both are told by the names of objects. An agent can write every file of a repository, but the name of an object is the
hash of its content: with the name of a commit from before the box, its whole history can be checked, and an object that
was replaced since is refused. Replace refs, grafts and git's own caches do not count. Git hands the objects out in a
box without network, home, configuration or anything that it could write; should it lie, the names show it.

For what commits carry, every ref counts that is not where it was: branches, tags, stashes, what is checked out, what an
operation in progress names, and whatever else has a name. What a commit before the box had at the same path is no news,
unless a box has brought that, too.
"""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import time
from contextlib import contextmanager, suppress
from heapq import heappop, heappush
from itertools import islice, takewhile
from threading import Timer

from claudebox import files
from claudebox.host import pinned, read_host
from claudebox.host.git import find_repository
from claudebox.host.git.directory import Refs, common_dir, hash_size, read_head
from claudebox.host.programs import trusted_program
from claudebox.host.tree import OTHERS_CAN_WRITE, Tree
from claudebox.model import Plan
from claudebox.overlay import changes
from claudebox.overlay.changes import DELETED, Change, read_in_layer, read_in_project, walk_below
from claudebox.overlay.comparison import reason_of, reasons_below
from claudebox.overlay.kept import MORE, read_introduced, record
from claudebox.overlay.places import MODULE, MODULES
from claudebox.overlay.store import TIPS, Layer
from claudebox.overlay.table import DOT_GIT, GIT, why
from claudebox.overlay.ways import WAYS
from claudebox.paths import within
from claudebox.record import Record
from claudebox.state.reach import reach_of
from claudebox.text import some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Set

    from claudebox.overlay.comparison import Held, Picture

SECONDS, MOST_SECONDS = 10, 30  # for one repository, for all
SECONDS_OF_A_CHECKOUT = 2
MOST_NAMED, LONGEST_NAME = 3, 60  # in one line; characters of a branch's name
MOST_SEARCHED = 1000  # commits of the past: an amended commit, or one of a rebase, is among the newest
KINDS = {"heads": "branch ", "tags": "tag ", "remotes": "branch "}


class Carry(Record):
    """A path that this host runs, and what changes it. Names in it are the agent's."""

    path: str
    reason: str
    texts: tuple[str, ...]
    commit: str  # the first of them
    git_dir: str = ""  # of which repository, if it is not the project's own

    @property
    def text(self) -> str:
        return f"{changing(self.texts)} {self.path}"


class Carried(Record):
    """What new commits carry, nearest to the root first; why that may not be all; and every file that they brought."""

    paths: tuple[Carry, ...] = ()
    troubles: tuple[str, ...] = ()
    entries: frozenset[bytes] = frozenset()
    links: frozenset[str] = frozenset()  # commits of submodules that they name
    missing: frozenset[str] = frozenset()  # commits that are not wholly there, to be looked at when they are

    def __bool__(self) -> bool:
        return bool(self.paths or self.troubles)


def find_all_carried(
    plan: Plan, before: Picture, now: dict[str, Refs], introduced: Set[bytes], come: Set[str] = frozenset()
) -> Carried:
    """What commits carry in several repositories, of which some refs were and now are elsewhere.

    What has perhaps come since it was missing is as new as what a ref has just got.
    """
    found: list[Carried] = []
    links = {link: link for link in come}  # by their own names, since no ref may have them
    seen: set[str] = set()
    until = time.monotonic() + MOST_SECONDS
    guarded = [one for one in (*plan.guard.held, *plan.guard.loose, *plan.guard.absent) if one.group in (GIT, WAYS)]
    for git_dir in sorted(now, key=lambda path: path.count("/")):  # a repository comes before its submodules
        old, new = before.refs[git_dir], now[git_dir]
        where, seconds = _repository(git_dir, plan.project), min(SECONDS, until - time.monotonic())
        if old != new and (old.tables != new.tables or not (old.is_whole and new.is_whole)):
            found.append(Carried((), (f"not all branches{where} were looked at: too many, or in a newer format",)))
        roots = [root for own, root in before.repositories.items() if common_dir(own) == git_dir]
        held = reasons_below(guarded, roots) | ({"": MODULE} if before.modules.keys() & {*roots} else {})
        tips = {name: tip for name, tip in old.tips.items() if tip not in come}
        tips_now = {link: link for link in links.keys() - {*new.tips.values()}} | new.tips
        found.append(find_carried(plan.bwrap, git_dir, tips, tips_now, introduced, held, where, seconds, come))
        seen |= links.keys() - found[-1].missing
        links |= {link: link for link in found[-1].links}
    paths = sorted((one for each in found for one in each.paths), key=_nearness)
    troubles = tuple(one for each in found for one in each.troubles)
    entries = frozenset[bytes]().union(*(each.entries for each in found))
    missing = (links.keys() | set[str]().union(*(each.missing for each in found))) - seen
    return Carried(tuple(paths), troubles, entries, missing=frozenset(missing))


def may_have_come(git_dir: str, commit: str, since: int) -> bool:
    """Whether a repository may have a commit that was missing when the box started: cheap, and said too often."""
    objects, tree = f"{common_dir(git_dir)}/objects", Tree()
    packs = tree.lstat(f"{objects}/pack")
    is_packed = packs is not None and packs.st_ctime_ns >= since
    return is_packed or tree.lstat(f"{objects}/{commit[:2]}/{commit[2:]}") is not None


def _nearness(one: Carry) -> tuple[int, str]:
    return one.path.count("/"), one.path


def _repository(git_dir: str, project: str) -> str:
    """Which repository it is; "" for the project's own."""
    if module := git_dir.partition("/modules/")[2]:
        return f" of submodule {module}"
    if git_dir == common_dir(find_repository(Tree(), project).git_dir):
        return ""
    return f" of {within(git_dir, project).removesuffix(f'/{DOT_GIT}')}"


def find_carried(
    bwrap: str,
    git_dir: str,
    old: dict[str, str],
    new: dict[str, str],
    introduced: Set[bytes],
    held: Held,
    where: str = "",
    seconds: float = SECONDS,
    come: Set[str] = frozenset(),
) -> Carried:
    """What the refs of a repository have that are new or have moved. `introduced` is what boxes brought before.

    Of those that have perhaps come, it was said already that they were missing.
    """
    known = {*old.values()}
    moved = [name for name in new if new[name] not in known]
    if not moved:
        return Carried()
    # Where a ref was that has moved comes first: most of what is new begins there.
    tips = [bytes.fromhex(tip) for tip in (*(old[name] for name in moved if name in old), *old.values())]
    try:
        with open_objects(bwrap, git_dir, max(seconds, 0)) as objects:
            before = list(islice(filter(objects.has_commit, tips), 1))  # a ref may name what there is not
            search = _Search(History(objects, tips), before, introduced, held, git_dir if where else "")
            for name in sorted(moved, key=lambda name: (name not in old, "remotes" in name, name)):
                search.look(_label(name) + where, bytes.fromhex(new[name]), may_lack=new[name] in {name, *come})
            return search.result()
    except CannotTell as error:
        unseen = frozenset(new[name] for name in moved)
        return Carried((), (f"new commits{where} were not looked at: {error}",), missing=unseen)


class _Search:
    """Finds what new commits of a repository carry."""

    def __init__(self, history: History, before: list[bytes], introduced: Set[bytes], held: Held, git_dir: str) -> None:
        self.history = history
        self.objects = history.objects
        self.before = before
        self.introduced = introduced
        self.held = held
        self.git_dir = git_dir
        self.links: set[str] = set()
        self.reasons: dict[str, str] = {}
        self.done: set[bytes] = set()
        self.found: dict[str, list[str]] = {}  # which commits, by path
        self.first: dict[str, bytes] = {}
        self.entries: dict[bytes, bool] = {}  # whether it is new
        self.troubles: list[str] = []
        self.missing: set[str] = set()

    def look(self, label: str, tip: bytes, *, may_lack: bool = False) -> None:
        numbers: dict[str, list[int]] = {}
        try:
            if self.objects.read(tip)[0] in (b"tree", b"blob"):
                return  # git notes a tree during a merge, and a tag may be of anything
            # All at once first: many commits must not hide what they bring.
            for path in self._grave(tip, self.before):
                numbers[path] = []
            new, trouble = self.history.find_new(tip)
            for number, name in enumerate(new, 1):
                for path in self._grave(name, self.objects.commit(name).parents) if name not in self.done else ():
                    numbers.setdefault(path, []).append(number)
                    self.first.setdefault(path, name)
                self.done.add(name)
        except CannotTell as error:
            trouble = str(error)
        self.missing |= {tip.hex()} if trouble.endswith(LACKS) else set()
        trouble = "" if may_lack and trouble == MISSING.format(tip.hex()) else trouble
        for path, commits in numbers.items():
            which = _some(list(map(str, commits)))
            text = f"commit{'s' if len(commits) > 1 else ''} {which} of {label}" if commits else label
            if commits or trouble:
                self.found.setdefault(path, []).append(text)
                self.first.setdefault(path, tip)
        self.troubles += [f"not all commits of {label} were looked at: {trouble}"] if trouble else []

    def _grave(self, name: bytes, olds: Iterable[bytes]) -> Iterator[str]:
        tree, *others = [self.objects.commit(one).tree for one in (name, *olds)]
        for where, entry in self.objects.differences(tree, tuple(others)):
            path = os.fsdecode(where)
            self.links |= {entry[1].hex()} if entry[0] == SUBMODULE else set()
            said = by_name.text if (by_name := why(path)) and by_name.is_grave else self._why(name, olds, path, entry)
            if said and self._is_new(path, entry):
                self.reasons[path] = said
                yield path

    def _why(self, commit: bytes, olds: Iterable[bytes], path: str, entry: tuple[int, bytes]) -> str:
        """Why this host would obey what a commit has at a path, whatever its name."""
        said = reason_of(path, self.held, lambda at: self.objects.find(commit, at) != NOTHING, removes=entry[0] == LINK)
        is_module = path.endswith(MODULES) and path.partition("/")[2][:9] in ("", "__init__.")
        is_first = is_module and "" in self.held and all(self.objects.find(one, path) == NOTHING for one in olds)
        return said or (MODULE if is_first else "")

    def _is_new(self, path: str, entry: tuple[int, bytes]) -> bool:
        """Whether no commit before the box had this at this path; or a box had brought it there."""
        line = record(path, *entry)
        if line not in self.entries:
            past = self.before if entry == NOTHING else islice(self.history.walk(), MOST_SEARCHED)
            in_time = takewhile(lambda _: time.monotonic() < self.objects.until - SECONDS / 2, past)
            self.entries[line] = line in self.introduced or not self.objects.had(in_time, path, entry)
        return self.entries[line]

    def result(self) -> Carried:
        paths = [
            Carry(path, self.reasons[path], tuple(texts), self.first[path].hex(), self.git_dir)
            for path, texts in self.found.items()
        ]
        more = len(self.troubles) - MOST_NAMED
        troubles = [*self.troubles[:MOST_NAMED], *([f"nor all of {more} other refs"] if more > 0 else [])]
        entries = frozenset(line for line, is_new in self.entries.items() if is_new)
        which = frozenset(self.links), frozenset(self.missing)
        return Carried(tuple(sorted(paths, key=_nearness)), tuple(troubles), entries, *which)


def changing(texts: tuple[str, ...]) -> str:
    """Which commits, and the verb for what they do."""
    return f"{_some(texts)} {'change' if len(texts) > 1 or texts[0].startswith('commits ') else 'changes'}"


def _some(texts: list[str] | tuple[str, ...]) -> str:
    return ", ".join(some(texts, MOST_NAMED))


def _label(name: str) -> str:
    kind, _, rest = name.removeprefix("refs/").partition("/")
    rest = rest if len(rest) <= LONGEST_NAME else f"{rest[:LONGEST_NAME]}…"
    if kind in KINDS:
        return f"{KINDS[kind]}{rest}"
    log = {"HEAD@": "HEAD's log", "stash@": "a stash", "stash": "a stash"}
    return log.get(kind.partition("{")[0], name.split(" ")[0])


def find_base(bwrap: str, git_dir: str, before: Iterable[str], tip: str) -> str:
    """After which commit those begin that only this tip leads to; "" if there are none.

    Raises CannotTell."""
    with open_objects(bwrap, git_dir, SECONDS) as objects:
        new, trouble = History(objects, map(bytes.fromhex, before)).find_new(bytes.fromhex(tip))
        if trouble:
            raise CannotTell(trouble)
        parents = objects.commit(new[0]).parents if new else ()
        return parents[0].hex()[:12] if parents else "--root" if new else ""


def find_checkout(layer: Layer, found: tuple[Change, ...], bwrap: str) -> list[Change]:
    """What a checkout in the box has left in a layer: those of the changes that are set apart and bring nothing new.

    The commit that is checked out now has exactly what comes, and both what comes and what goes was in commits before
    the first box of the layer: nothing is new, and nothing is lost. Where a file goes, that commit has to be one of
    them. What boxes have committed does not count, nor does a repository that a box has made.
    """
    tips = (Tree().read_plain(f"{layer.directory}/{TIPS}", LARGEST) or b"").decode().split()
    git_dir = find_repository(Tree(), layer.project).git_dir
    odd = tuple(f"{change.path}/" for change in found if _is_odd(change))
    # A new directory lands with what is in it.
    leaves = [one for one in found if one.what != changes.DIRECTORY or one.kind == DELETED]
    named = [one for one in leaves if one.reason and (reason := why(one.path)) and reason.is_grave]
    apart = [one for one in named if not f"{one.path}/".startswith(odd)]
    introduced = read_introduced(layer.reports)
    if not (tips and git_dir and apart) or not introduced.isdisjoint((MORE, os.fsencode(common_dir(git_dir)))):
        return []
    try:
        with (
            files.Open(os.open(layer.upper, files.DIRECTORY)) as upper,
            files.Open(files.open_directory(layer.project)) as lower,
            open_objects(bwrap, git_dir, SECONDS_OF_A_CHECKOUT) as objects,
        ):
            head = bytes.fromhex(read_head(Tree(), git_dir).commit)
            past = _Past(History(objects, map(bytes.fromhex, tips)), head, introduced)
            return [change for change in apart if past.has(change, upper, lower)]
    except (OSError, CannotTell):
        return []


def _is_odd(change: Change) -> bool:
    """Whether no checkout does this: what others can write, or something in the place of a directory or a file."""
    is_other = change.kind != DELETED and (
        change.gone > 0 or (change.what == changes.DIRECTORY and change.old is not None)
    )
    return change.is_conflict or is_other or (change.what != changes.LINK and bool(change.mode & OTHERS_CAN_WRITE))


class _Past(Record):
    """What commits had before the first box of a layer, and what is checked out now."""

    history: History
    head: bytes
    introduced: frozenset[bytes]

    def has(self, change: Change, upper: int, lower: int) -> bool:
        is_link, now = change.what == changes.LINK, self.history.objects.find(self.head, change.path)
        if change.kind == DELETED:
            is_right = any(name == self.head for name in self.history.walk()) and now == NOTHING
        else:
            content = os.fsencode(change.target) if is_link else read_in_layer(upper, change)
            entry = LINK if is_link else _git_mode(change.mode), self._name(content)
            is_right = now == entry and self._had(change.path, *entry)
            is_right &= record(change.path, *entry) not in self.introduced
        return is_right and all(
            self._had(path, mode, self._name(content))
            and (change.kind != DELETED or record(path, *NOTHING) not in self.introduced)
            for path, mode, content in _gone(lower, change)
        )

    def _name(self, content: bytes | None) -> bytes:
        return hash_of(b"blob", content, self.history.objects.size) if content is not None else b""

    def _had(self, path: str, mode: int, name: bytes) -> bool:
        return self.history.objects.had(self.history.walk(), path, (mode, name))


def _gone(lower: int, change: Change) -> Iterator[tuple[str, int, bytes | None]]:
    """The files of this host that the change removes or replaces, as git would keep them."""
    gone = [(change.path, change.old.mode)] if change.old is not None else []
    if change.what == changes.DIRECTORY:
        parent, _, name = change.path.rpartition("/")
        with files.Open(files.open_below(lower, parent)) as here:
            gone = [(path, status.st_mode) for path, status in walk_below(here, name, change.path)]
    for path, mode in gone:
        if stat.S_ISLNK(mode):
            yield path, LINK, os.fsencode(os.readlink(path, dir_fd=lower))
        elif not stat.S_ISDIR(mode):
            yield path, _git_mode(mode), read_in_project(lower, path)


def _git_mode(mode: int) -> int:
    return PROGRAM if mode & stat.S_IXUSR else FILE


# Reading objects.

MOST_COMMITS = 20_000
MOST_CACHED, MOST_COMPARED, DEEPEST = 5000, 100_000, 200  # directories
DIRECTORY, LINK, PROGRAM, FILE, SUBMODULE = 0o40000, 0o120000, 0o100755, 0o100644, 0o160000
OCTAL = frozenset(b"01234567")
SHA1 = 20  # bytes of a name; those of SHA-256 are longer
NOTHING = 0, b""
LACKS = " is missing"
MISSING = f"object {{:.12}}{LACKS}"

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

    def __init__(self, ask: Callable[[bytes], tuple[bytes, bytes]], seconds: float = 60, size: int = SHA1) -> None:
        self.ask, self.size = ask, size
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

    def has_commit(self, name: bytes) -> bool:
        with suppress(CannotTell):
            self.commit(name)
        return name in self.commits

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
CAT_FILE = "--git-dir=/git -c core.packedGitWindowSize=16m -c core.packedGitLimit=256m cat-file --batch".split()


def _program(name: str) -> str:
    """Where it is, behind all symlinks: the box has the directories of the system alone."""
    host = read_host()
    found = trusted_program(host, name, reach_of(host))
    return os.path.realpath(pinned.PROGRAMS.get(name) or found or f"/usr/bin/{name}")


@contextmanager
def open_objects(bwrap: str, git_dir: str, seconds: float) -> Iterator[Objects]:
    """The objects of a repository, for some seconds: then nobody can tell any more."""
    size = hash_size(Tree(), git_dir)
    bwrap, git = bwrap or _program("bwrap"), _program("git")
    config, end = os.pipe()
    os.write(end, b"" if size == SHA1 else SHA256)
    os.close(end)
    mounts = ["--file", str(config), "/git/config", "--ro-bind", f"{common_dir(git_dir)}/objects", "/git/objects"]
    try:
        process = subprocess.Popen(
            [bwrap, *BOX, *SYSTEM, *mounts, *BARE, git, *CAT_FILE],
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
        yield Objects(lambda name: _ask(process, name), seconds, size)
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
