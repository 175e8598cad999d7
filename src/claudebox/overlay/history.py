"""What commits carry that this host runs, and what a checkout has left that commits had before.

Both are told by the names of objects, which an agent cannot forge. For what commits carry, every ref counts that is not
where it was: branches, tags, stashes, what is checked out, what an operation in progress names, and whatever else has a
name. What a commit before the box had at the same path is no news, unless a box has brought that, too.
"""

from __future__ import annotations

import os
import stat
import time
from itertools import islice, takewhile

from claudebox import files
from claudebox.host.git import find_repository
from claudebox.host.git.directory import LARGEST, Refs, common_dir, read_head
from claudebox.host.tree import OTHERS_CAN_WRITE, Tree
from claudebox.model import Plan
from claudebox.overlay import changes
from claudebox.overlay.changes import DELETED, DIRECTORY, Change, read_in_layer, read_in_project, walk_below
from claudebox.overlay.comparison import reason_of, reasons_below
from claudebox.overlay.kept import MORE, read_introduced, record
from claudebox.overlay.places import MODULE, MODULES
from claudebox.overlay.store import TIPS, Layer
from claudebox.overlay.table import DOT_GIT, GIT, why
from claudebox.overlay.ways import WAYS
from claudebox.paths import within
from claudebox.process.git_objects import (
    FILE,
    LINK,
    MISSING,
    NOTHING,
    PROGRAM,
    SUBMODULE,
    CannotTell,
    History,
    hash_of,
    open_objects,
)
from claudebox.record import Record
from claudebox.text import some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set

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

    def __bool__(self) -> bool:
        return bool(self.paths or self.troubles)


def find_all_carried(plan: Plan, before: Picture, now: dict[str, Refs], introduced: Set[bytes]) -> Carried:
    """What commits carry in several repositories, of which some refs were and now are elsewhere."""
    found: list[Carried] = []
    links: dict[str, str] = {}  # by their own names, since no ref may have them
    until = time.monotonic() + MOST_SECONDS
    guarded = [one for one in (*plan.guard.held, *plan.guard.loose, *plan.guard.absent) if one.group in (GIT, WAYS)]
    for git_dir in sorted(now, key=lambda path: path.count("/")):  # a repository comes before its submodules
        old, new = before.refs[git_dir], now[git_dir]
        where, seconds = _repository(git_dir, plan.project), min(SECONDS, until - time.monotonic())
        if old != new and (old.tables != new.tables or not (old.is_whole and new.is_whole)):
            found.append(Carried((), (f"not all branches{where} were looked at: too many, or in a newer format",)))
        roots = [root for own, root in before.repositories.items() if common_dir(own) == git_dir]
        held = reasons_below(guarded, roots) | ({"": MODULE} if before.modules.keys() & {*roots} else {})
        found.append(find_carried(plan.bwrap, git_dir, old.tips, links | new.tips, introduced, held, where, seconds))
        links |= {link: link for link in found[-1].links}
    paths = sorted((one for each in found for one in each.paths), key=_nearness)
    troubles = tuple(one for each in found for one in each.troubles)
    return Carried(tuple(paths), troubles, frozenset().union(*(each.entries for each in found)))


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
) -> Carried:
    """What the refs of a repository have that are new or have moved. `introduced` is what boxes brought before."""
    known = {*old.values()}
    moved = [name for name in new if new[name] not in known]
    if not moved:
        return Carried()
    # Where a ref was that has moved comes first: most of what is new begins there.
    tips = [bytes.fromhex(tip) for tip in (*(old[name] for name in moved if name in old), *old.values())]
    try:
        with open_objects(bwrap, git_dir, new[moved[0]], max(seconds, 0)) as objects:
            search = _Search(History(objects, tips), tips[:1], introduced, held, git_dir if where else "")
            for name in sorted(moved, key=lambda name: (name not in old, "remotes" in name, name)):
                search.look(_label(name) + where, bytes.fromhex(new[name]), may_lack=name == new[name])
            return search.result()
    except CannotTell as error:
        return Carried((), (f"new commits{where} were not looked at: {error}",))


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
            trouble = str(error) if not may_lack or str(error) != MISSING.format(tip.hex()) else ""
        for path, commits in numbers.items():
            some = _some(list(map(str, commits)))
            text = f"commit{'s' if len(commits) > 1 else ''} {some} of {label}" if commits else label
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
        return Carried(tuple(sorted(paths, key=_nearness)), tuple(troubles), entries, frozenset(self.links))


def changing(texts: tuple[str, ...]) -> str:
    """Which commits, and the verb for what they do."""
    return f"{_some(texts)} {'change' if len(texts) > 1 or texts[0].startswith('commits ') else 'changes'}"


def _some(texts: list[str] | tuple[str, ...]) -> str:
    return ", ".join(some(texts, MOST_NAMED))


def _label(name: str) -> str:
    kind, _, rest = name.removeprefix("refs/").partition("/")
    rest = rest if len(rest) <= LONGEST_NAME else f"{rest[:LONGEST_NAME]}…"
    return f"{KINDS[kind]}{rest}" if kind in KINDS else "a stash" if kind.startswith("stash") else name.split(" ")[0]


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
    leaves = [one for one in found if one.what != DIRECTORY or one.kind == DELETED]
    named = [one for one in leaves if one.reason and (reason := why(one.path)) and reason.is_grave]
    apart = [one for one in named if not f"{one.path}/".startswith(odd)]
    introduced = read_introduced(layer.reports)
    if not (tips and git_dir and apart) or not introduced.isdisjoint((MORE, os.fsencode(common_dir(git_dir)))):
        return []
    try:
        with (
            files.Open(os.open(layer.upper, files.DIRECTORY)) as upper,
            files.Open(files.open_directory(layer.project)) as lower,
            open_objects(bwrap, git_dir, tips[0], SECONDS_OF_A_CHECKOUT) as objects,
        ):
            head = bytes.fromhex(read_head(Tree(), git_dir).commit)
            past = _Past(History(objects, map(bytes.fromhex, tips)), head, introduced)
            return [change for change in apart if past.has(change, upper, lower)]
    except (OSError, CannotTell):
        return []


def _is_odd(change: Change) -> bool:
    """Whether no checkout does this: what others can write, or something in the place of a directory or a file."""
    is_other = change.kind != DELETED and (change.gone > 0 or (change.what == DIRECTORY and change.old is not None))
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
            entry = LINK if is_link else _mode(change.mode), self._name(content)
            is_right = now == entry and self._had(change.path, *entry)
            is_right &= record(change.path, *entry) not in self.introduced
        return is_right and all(
            self._had(path, mode, self._name(content))
            and (change.kind != DELETED or record(path, *NOTHING) not in self.introduced)
            for path, mode, content in _gone(lower, change)
        )

    def _name(self, content: bytes | None) -> bytes:
        return hash_of(b"blob", content, self.history.size) if content is not None else b""

    def _had(self, path: str, mode: int, name: bytes) -> bool:
        return self.history.objects.had(self.history.walk(), path, (mode, name))


def _gone(lower: int, change: Change) -> Iterator[tuple[str, int, bytes | None]]:
    """The files of this host that the change removes or replaces, as git would keep them."""
    gone = [(change.path, change.old.mode)] if change.old is not None else []
    if change.what == DIRECTORY:
        parent, _, name = change.path.rpartition("/")
        with files.Open(files.open_below(lower, parent)) as here:
            gone = [(path, status.st_mode) for path, status in walk_below(here, name, change.path)]
    for path, mode in gone:
        if stat.S_ISLNK(mode):
            yield path, LINK, os.fsencode(os.readlink(path, dir_fd=lower))
        elif not stat.S_ISDIR(mode):
            yield path, _mode(mode), read_in_project(lower, path)


def _mode(mode: int) -> int:
    return PROGRAM if mode & stat.S_IXUSR else FILE
