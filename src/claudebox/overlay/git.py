"""Finds the files of git that can make a git command on the host run something.

They are read without starting git, which in a hostile repository may run code. These were measured to run code at a
plain `git status`: a `config` or what it includes, `commondir`, the `.git` file of a worktree or submodule.
"""

from __future__ import annotations

import os
import posixpath

from claudebox import files
from claudebox.errors import Problem
from claudebox.host.git import Pairs, find_submodules, is_repository, parse_config, pointed_to
from claudebox.host.git.directory import is_sound
from claudebox.host.tree import Tree
from claudebox.host.walk import DIRECTORY, Entry
from claudebox.model import Guarded
from claudebox.overlay.table import DOT_GIT, GIT, HEAD, OBEYED, UNSEEN
from claudebox.paths import normalize
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CONFIG = OBEYED
HOOKS = "git runs hooks"
POINTER = "git goes where it says"
INCLUDED = "git's configuration includes it"
PROGRAM = "git's configuration names it"
TOO_MANY = "too deep, or one repository too many: nothing in it was looked at"
TOO_MUCH = "git's configuration is too long here: what it names was not looked at"
DETOUR = "git would write where it leads"
UNREADABLE = "cannot be read: what it makes git run is not known"

MOST_INCLUDED = 100
MOST_PARSED = 1 << 19
MOST_REPOSITORIES = 2000
MOST_INFLATED, MOST_YOUNG = 1 << 28, 20_000  # bytes of young objects, and files
PIECE = 1 << 14  # bytes: zlib makes at most a thousand times as many of them
HEX = frozenset("0123456789abcdef")

SHA1_DIGITS = 40
# Keys whose value is a file that git reads and never runs. Whatever else a value names may be run.
ONLY_READ = ("file", "template")
# How keys end whose value git hands to a shell.
COMMANDS = (
    *("cmd", "command", "helper", "editor", "pager", "program", "driver", "textconv", "clean", "smudge", "process"),
    *("hook", "fsmonitor", "askpass", "filter", "browser", "path", "pack", "proxy", "server", "external"),
)


class Account(Record):
    """The user's own configuration, which git obeys besides the repository's files."""

    home: str
    configs: tuple[str, ...] = ()


class Checkout(Record):
    """A directory of git, and where its files are checked out: "" if nowhere."""

    git_dir: str
    work_tree: str


def git_guarded(tree: Tree, entries: Iterable[Entry], account: Account, *, refuses: bool = False) -> list[Guarded]:
    """The files that git obeys in every repository that was found, wherever a `.git` file says that one is.

    `refuses` raises a Problem for what cannot be read, as the start of a box has to. Else it is UNSEEN.
    """
    finder = _Finder(tree, account, refuses=refuses)
    found: list[Guarded] = []
    checkouts: list[Checkout] = []
    for entry in entries:
        if entry.name == DOT_GIT:
            checkout = checkout_of(tree, entry, None if tree.is_dir(entry.path) else finder.text(entry.path))
            found += [] if entry.kind == DIRECTORY else [Guarded(entry.path, GIT, POINTER)]
            checkouts += [checkout] if checkout is not None else []
        elif entry.name == HEAD and is_repository(tree, directory := posixpath.dirname(entry.path)):
            # Git takes `.git` first. Without this, a HEAD would make the user's own files parts of git.
            dot_git = f"{directory}/{DOT_GIT}"
            has_own = tree.is_file(dot_git) or is_sound(tree, dot_git)
            checkouts += [] if has_own else [Checkout(directory, "")]
    seen: set[Checkout] = set()
    while checkouts and len(seen) < MOST_REPOSITORIES:
        checkout = checkouts.pop(0)
        if checkout not in seen:
            seen.add(checkout)
            found += finder.files(checkout)
            checkouts += finder.further(checkout)
    # The rest is held as a whole, and named afterwards.
    found += [Guarded(checkout.git_dir, UNSEEN, TOO_MANY) for checkout in checkouts if checkout not in seen]
    return list(dict.fromkeys([*found, *finder.unseen]))


def checkout_of(tree: Tree, entry: Entry, said: str | None = None) -> Checkout | None:
    """The checkout to which a `.git` belongs. `said` is what it says, if it is a file that somebody has read."""
    work_tree = posixpath.dirname(entry.path)
    is_pointer = said is not None or not tree.is_dir(entry.path)
    target = pointed_to((tree.text(entry.path) or "") if said is None else said) if is_pointer else DOT_GIT
    real = tree.resolve(posixpath.join(work_tree, target)) if target else None
    return Checkout(real, work_tree) if real is not None and tree.is_plain_directory(real) else None


class _Finder:
    """Finds what git obeys in one repository after the other, and reads each configuration once for all."""

    def __init__(self, tree: Tree, account: Account, *, refuses: bool) -> None:
        self.tree = tree
        self.account = account
        self.refuses = refuses
        self.unseen: list[Guarded] = []
        self._pairs: dict[str, Pairs | None] = {}
        self._room = MOST_PARSED

    def text(self, path: str) -> str:
        """What a file says; "" if it does not exist, or cannot be read and nobody starts a box now."""
        try:
            return os.fsdecode(self.tree.content(path) or b"")
        except Problem as problem:
            self._note(path, problem)
            return ""

    def names(self, directory: str) -> list[str]:
        try:
            return self.tree.names(directory)
        except Problem as problem:
            self._note(directory, problem)
            return []

    def _note(self, path: str, problem: Problem) -> None:
        if self.refuses:
            raise problem
        self.unseen.append(Guarded(path, UNSEEN, UNREADABLE))

    def files(self, checkout: Checkout) -> Iterator[Guarded]:
        git_dir = checkout.git_dir
        for name, reason in (("config", CONFIG), ("config.worktree", CONFIG), ("hooks", HOOKS), ("commondir", POINTER)):
            yield Guarded(f"{git_dir}/{name}", GIT, reason)
        yield from self._hook_targets(f"{git_dir}/hooks")
        yield from self._named_in(checkout)

    def _hook_targets(self, hooks: str) -> Iterator[Guarded]:
        """The scripts to which hooks lead that are symlinks."""
        for name in self.names(hooks):
            path = f"{hooks}/{name}"
            if self.tree.is_link(path):
                yield Guarded(normalize(posixpath.join(hooks, self.tree.link_target(path))), GIT, HOOKS)

    def further(self, checkout: Checkout) -> list[Checkout]:
        """The common directory, worktrees and submodules of a checkout, which have directories of their own."""
        tree, git_dir = self.tree, checkout.git_dir
        here, found, unseen = self.names(git_dir), [], list[str]()
        common = pointed_to(self.text(f"{git_dir}/commondir"), "") if "commondir" in here else ""
        if common and (real := tree.resolve(posixpath.join(git_dir, common))) is not None:
            found.append(Checkout(real, checkout.work_tree))
        for name in self.names(f"{git_dir}/worktrees") if "worktrees" in here else ():
            linked = f"{git_dir}/worktrees/{name}"
            # If it is checked out in the project, its `.git` file there says so.
            found += [Checkout(linked, "")] if tree.is_plain_directory(linked) else []
        modules = tree.resolve(f"{git_dir}/modules") if "modules" in here else None
        for module in find_submodules(tree, modules, self.names, unseen) if modules else ():
            found.append(Checkout(module, self._work_tree(module)))
        self.unseen += [Guarded(path, UNSEEN, TOO_MANY) for path in unseen]
        return found

    def _named_in(self, checkout: Checkout) -> Iterator[Guarded]:
        """Files that the configuration includes, hooks, and whatever else of the project it names."""
        git_dir, home = checkout.git_dir, self.account.home
        base = checkout.work_tree or git_dir
        waiting = [*self.account.configs, f"{git_dir}/config", f"{git_dir}/config.worktree"]
        seen = set(waiting)
        while waiting and len(seen) < MOST_INCLUDED:
            config = waiting.pop(0)
            pairs = self._parsed(config)
            if pairs is None:
                yield Guarded(git_dir, UNSEEN, TOO_MUCH)
            for name, value in pairs or ():
                if is_include(name):
                    path = _absolute(value, posixpath.dirname(config), home)
                    waiting += [] if path in seen else [path]
                    seen.add(path)
                    yield Guarded(path, GIT, INCLUDED)
                elif name == "core.hookspath":
                    yield Guarded(_absolute(value, base, home), GIT, HOOKS)
                    yield from self._hook_targets(_absolute(value, base, home))
                elif not name.endswith(ONLY_READ):
                    yield from self._programs(value, base, is_command=name.endswith(COMMANDS) or "alias." in name)

    def _programs(self, value: str, base: str, *, is_command: bool) -> Iterator[Guarded]:
        """Files that a value names. Of a value that is no command (a branch, a name), a mere word names none."""
        for word in value.split():
            if "/" not in word and not is_command:
                continue
            path = _absolute(word.strip("\"'!;()"), base, self.account.home)
            if self.tree.is_file(path):
                yield Guarded(path, GIT, PROGRAM)

    def _work_tree(self, git_dir: str) -> str:
        """Where a submodule is checked out."""
        named = dict(self._parsed(f"{git_dir}/config") or ()).get("core.worktree", "")
        return normalize(posixpath.join(git_dir, named)) if named else ""

    def _parsed(self, config: str) -> Pairs | None:
        """Parse as long as there is room: an agent can leave a thousand repositories for the next start."""
        if config not in self._pairs:
            text = self.text(config)
            self._pairs[config] = parse_config(text) if len(text) < self._room else None
            self._room -= min(len(text), self._room)
        return self._pairs[config]


def _absolute(value: str, base: str, home: str) -> str:
    path = home + value[1:] if value.startswith("~/") else value
    return normalize(posixpath.join(base, path))


def is_include(name: str) -> bool:
    return name == "include.path" or (name.startswith("includeif.") and name.endswith(".path"))


def git_directories(guarded: Iterable[Guarded]) -> list[str]:
    """Every directory of git that the guard knows: each has a configuration."""
    return [posixpath.dirname(one.path) for one in guarded if one.reason == CONFIG and one.path.endswith("/config")]


def find_replaced(objects: Iterable[str], since: int) -> tuple[list[str], bool]:
    """Objects in files of their own, changed `since`, that are not what their names say; and whether that is all.

    Git on the host would check them out as they are.
    """
    found: list[str] = []
    room, left = MOST_INFLATED, MOST_YOUNG
    for directory in (f"{one}/{number:02x}" for one in objects for number in range(256)):
        try:
            with os.scandir(directory) as listing:
                entries = [entry for entry in listing if len(entry.name) in (38, 62) and HEX.issuperset(entry.name)]
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.stat(follow_symlinks=False).st_ctime_ns < since:
                    continue
                left -= 1
                used = _inflate(entry.path, directory[-2:] + entry.name, room) if left >= 0 else -1
            except OSError:
                used = 0
            if used < 0:
                return found, False
            room -= used
            found += [] if used else [entry.path]
    return found, True


def _inflate(path: str, name: str, room: int) -> int:
    """The size of an object in a file; 0 if it is not what its name says, -1 if there is no room for it.

    Raises OSError if it is no file.
    """
    import hashlib
    import zlib

    digest = (hashlib.sha1 if len(name) == SHA1_DIGITS else hashlib.sha256)(usedforsecurity=False)
    reader, size = zlib.decompressobj(), 0
    with open(os.open(path, files.READ), "rb") as file:
        while not reader.eof and (piece := file.read(PIECE)):
            try:
                part = reader.decompress(piece)
            except zlib.error:
                return 0
            digest.update(part)
            size += len(part)
            if size >= room:
                return -1
    return size if reader.eof and digest.hexdigest() == name else 0
