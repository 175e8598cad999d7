"""Finds which new commits carry what this host runs, whether the work tree has it or not.

Every ref counts that is not where it was: branches, tags, stashes, what is checked out, what an operation in progress
names, and whatever else has a name. What a commit before the box had at the same path is no news, unless a box has
brought that, too.
"""

from __future__ import annotations

import os
import time
from itertools import islice

from claudebox.features.guard.decide import within
from claudebox.features.guard.table import DOT_GIT, why
from claudebox.host.git import find_repository
from claudebox.host.git.directory import LARGEST, Refs, common_dir, read_refs
from claudebox.host.tree import Tree
from claudebox.layers.introduced import record
from claudebox.model import Plan
from claudebox.process.git_objects import NOTHING, CannotTell, History
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set

SECONDS, MOST_SECONDS = 10, 30  # for one repository, for all
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

    def __bool__(self) -> bool:
        return bool(self.paths or self.troubles)


def look_at_refs(tree: Tree, git_dirs: Iterable[str]) -> dict[str, Refs]:
    """Where the refs of repositories are. Linked worktrees share those of theirs."""
    found: dict[str, Refs] = {}
    room = LARGEST  # for all of them: an agent can leave a thousand repositories for the next start
    for git_dir in dict.fromkeys(map(common_dir, git_dirs)):
        found[git_dir] = read_refs(tree, git_dir, max(room, 0))
        room -= len(found[git_dir].packed)
    return found


def carried(plan: Plan, before: dict[str, Refs], introduced: Set[bytes]) -> Carried:
    """What commits carry in the repositories whose refs have moved since."""
    found: list[Carried] = []
    until = time.monotonic() + MOST_SECONDS
    for git_dir in sorted(before, key=lambda path: path.count("/")):
        old, new = before[git_dir], read_refs(Tree(), git_dir)
        if new != old:
            where, seconds = _repository(git_dir, plan.project), min(SECONDS, until - time.monotonic())
            if old.tables != new.tables or not (old.is_whole and new.is_whole):
                found.append(Carried((), (f"not all branches{where} were looked at: too many, or in a newer format",)))
            found.append(find_carried(plan.bwrap, git_dir, old.tips, new.tips, introduced, where, seconds))
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
    where: str = "",
    seconds: float = SECONDS,
) -> Carried:
    """What the refs of a repository have that are new or have moved. `introduced` is what boxes brought before."""
    known = {*old.values()}
    moved = [name for name in new if new[name] not in known]
    if not moved:
        return Carried()
    from claudebox.process.git_objects import open_objects

    # Where a ref was that has moved comes first: most of what is new begins there.
    tips = [bytes.fromhex(tip) for tip in (*(old[name] for name in moved if name in old), *old.values())]
    try:
        with open_objects(bwrap, git_dir, new[moved[0]], max(seconds, 0)) as objects:
            search = _Search(History(objects, tips), tips[:1], introduced, git_dir if where else "")
            for name in sorted(moved, key=lambda name: (name not in old, "remotes" in name, name)):
                search.look(_label(name) + where, bytes.fromhex(new[name]))
            return search.result()
    except CannotTell as error:
        return Carried((), (f"new commits{where} were not looked at: {error}",))


class _Search:
    """Finds what new commits of a repository carry."""

    def __init__(self, history: History, before: list[bytes], introduced: Set[bytes], git_dir: str) -> None:
        self.history = history
        self.objects = history.objects
        self.before = before
        self.introduced = introduced
        self.git_dir = git_dir
        self.done: set[bytes] = set()
        self.found: dict[str, list[str]] = {}  # which commits, by path
        self.first: dict[str, bytes] = {}
        self.entries: dict[bytes, bool] = {}  # whether it is new
        self.troubles: list[str] = []

    def look(self, label: str, tip: bytes) -> None:
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
            reason = why(path)
            if reason is not None and reason.is_grave and self._is_new(path, entry):
                yield path

    def _is_new(self, path: str, entry: tuple[int, bytes]) -> bool:
        """Whether no commit before the box had this at this path; or a box had brought it there."""
        line = record(path, *entry)
        if line not in self.entries:
            past = self.before if entry == NOTHING else islice(self.history.walk(), MOST_SEARCHED)
            self.entries[line] = line in self.introduced or not any(self._had(one, path, entry) for one in past)
        return self.entries[line]

    def _had(self, commit: bytes, path: str, entry: tuple[int, bytes]) -> bool:
        try:
            return time.monotonic() < self.objects.until - SECONDS / 2 and self.objects.find(commit, path) == entry
        except CannotTell:
            return False

    def result(self) -> Carried:
        paths = [
            Carry(path, reason.text, tuple(texts), self.first[path].hex(), self.git_dir)
            for path, texts in self.found.items()
            if (reason := why(path)) is not None
        ]
        more = len(self.troubles) - MOST_NAMED
        troubles = [*self.troubles[:MOST_NAMED], *([f"nor all of {more} other refs"] if more > 0 else [])]
        entries = frozenset(line for line, is_new in self.entries.items() if is_new)
        return Carried(tuple(sorted(paths, key=_nearness)), tuple(troubles), entries)


def changing(texts: tuple[str, ...]) -> str:
    """Which commits, and the verb for what they do."""
    return f"{_some(texts)} {'change' if len(texts) > 1 or texts[0].startswith('commits ') else 'changes'}"


def _some(texts: list[str] | tuple[str, ...]) -> str:
    more = f" and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return f"{', '.join(texts[:MOST_NAMED])}{more}"


def _label(name: str) -> str:
    kind, _, rest = name.removeprefix("refs/").partition("/")
    rest = rest if len(rest) <= LONGEST_NAME else f"{rest[:LONGEST_NAME]}…"
    return f"{KINDS[kind]}{rest}" if kind in KINDS else "a stash" if kind.startswith("stash") else name.split(" ")[0]
