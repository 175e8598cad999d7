"""Finds the files of the project that hold secrets: by their names, and by what is in those that git does not track.

Nothing is remembered but where something was found by its content. The agent could have an index of git name such a
file, or leave more files than a start looks into; so these are looked at again before all others.
"""

from __future__ import annotations

import os
import stat

from claudebox import files
from claudebox.errors import Problem, quote
from claudebox.facts import Facts, Masked, Secrets
from claudebox.features.secrets import REVEAL, table
from claudebox.features.secrets.table import CONTENT, Kind, kind_of, strictest
from claudebox.host import Host
from claudebox.host.git import Repository, find_configs
from claudebox.host.git.index import Indexes, Loose
from claudebox.host.secrets import PRIVATE_KEY_MARKS, known_token
from claudebox.host.tree import Tree
from claudebox.host.walk import DIRECTORY, FILE, LINK, OTHER, UNREAD, Entry, find_inodes
from claudebox.model import Finding, Preparation
from claudebox.paths import absolute, is_below, is_inside, parents
from claudebox.settings import Settings, Word
from claudebox.settings.table import HIDES
from claudebox.state import Instance, memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 1 << 20  # bytes of a file that is masked; a longer one appears empty
# Files, and their bytes, that a start looks into by their names; further ones appear empty.
MOST_READ, MOST_BYTES = 20_000, 1 << 21
MOST_MASKS = 300  # and hidden directories: bwrap takes longer for each mount than for the one before
MOST_NAMED = 5  # findings
MOST_KEYS = 20  # that are named if one is not there
# Of the real file, and what its keeper needs. Without the right to write, "Permission denied" would come before
# "Read-only file system".
PERMISSIONS, FOR_OWNER = 0o777, 0o600
BY_CONTENT = (CONTENT, "by what is in it")
GIT = (table.TELLING, "passwords in addresses of remotes")
FORM = memory.Form("The key with which made-up values are drawn. No box sees it.")
KEY, FOUND = "key", "file"  # how its lines begin
KEY_BYTES = 32
MOST_FOUND = 2_000  # files that are remembered
CLOSED = "cannot be looked into"
TOO_MANY = "more secrets than can be masked one by one"
LONGEST_PLACE = 3000  # bytes of a path at which something can be mounted
TOO_MANY_FILES = "not all files that git does not track were looked into for keys and tokens: the project is too large"


def find_secrets(
    host: Host,
    settings: Settings,
    repository: Repository,
    state: Instance | None,
    entries: tuple[Entry, ...],
    loose: Loose,
) -> Secrets | None:
    """Find the files that hold secrets, and make their decoys; None if nothing can hold one."""
    tree, project = host.tree, host.cwd
    git_dirs = [entry.path for entry in entries if entry.kind == DIRECTORY and entry.name == ".git"]
    git_dirs += [f"{entry.path}/repo/store/git" for entry in entries if entry.name == ".jj"]
    git_dirs += [entry.path.rpartition("/")[0] for entry in entries if entry.name == "HEAD"]  # without a checkout
    if repository.outside:
        git_dirs.append(repository.outside)
    also = {path: f"{project}/.git" for path in git_dirs if not path.endswith("/.git") or path == repository.outside}
    also |= _telling_links(tree, project, entries)
    named = [*_named(tree, project, entries, also), *((path, GIT) for path in find_configs(tree, git_dirs))]
    key, known, lines = _recall(tree, state, host.person.uid)
    files = loose.files()
    reveals = Reveals(tree, project, host.person.home, settings[REVEAL], settings[HIDES])
    closed = find_closed(tree, entries, project, host.person.uid, reveals)
    if not (named or known or files or closed or settings[REVEAL]):
        return Secrets(also=tuple(also.items())) if also else None
    finder = Finder(tree, loose.indexes, reveals, key)
    finder.closed = frozenset(entry.path for entry in entries if entry.kind == UNREAD)
    again = (path for path in known if is_inside(path, project))
    masked = finder.find([*named, *((path, BY_CONTENT) for path in (*again, *files))])
    crowds = hide_crowds([*(one.path for one in masked), *closed], project)
    masked = [one for one in masked if not any(is_inside(one.path, place) for place in crowds)]
    closed = [one for one in closed if not any(is_inside(one, place) for place in crowds)]
    cut = [Finding(Finding.RISK, "secrets", TOO_MANY_FILES)] if loose.is_cut else []
    files = [path for path in known if tree.lstat(path) is not None]
    files += [one.path for one in masked if one.how == CONTENT and one.path not in files]
    return Secrets(
        tuple(masked),
        (*finder.all_findings(), *cut),
        closed=(*((path, CLOSED) for path in closed), *((path, TOO_MANY) for path in crowds)),
        preparations=_keeping(state, key, files, lines) if masked else (),
        ignored=loose.indexes.ignoring([one.path for one in masked]),
        shown=tuple(finder.shown),
        also=tuple(also.items()),
    )


def make_finder(facts: Facts) -> Finder:
    """Who judges files anew while the box runs. What is hidden, its mounts say: by now a path may lead elsewhere."""
    tree, person = Tree(facts.tree.root), facts.host.person
    indexes = Indexes(tree, facts.project, facts.repository.git_dir)
    key, _, _ = _recall(tree, facts.state, person.uid)
    reveals = Reveals(tree, facts.project, person.home, facts.settings[REVEAL])
    return Finder(tree, indexes, reveals, key, is_live=True)


def _recall(tree: Tree, instance: Instance | None, uid: int) -> tuple[bytes, list[str], tuple[str, ...]]:
    """The key with which values are made up, where something was found by its content, and these lines.

    No box sees them. If they are lost, other values are made up, and files are looked at as if for the first time.
    """
    lines = memory.recall(tree, instance.decoys, FORM, uid) if instance is not None else ()
    said = [line.split(" ", 1) for line in lines if " " in line]
    keys = [bytes.fromhex(rest) for what, rest in said if what == KEY]
    files = [memory.unescape(rest) or "" for what, rest in said if what == FOUND]
    return keys[0] if keys else os.urandom(KEY_BYTES), files, lines


def _keeping(
    instance: Instance | None, key: bytes, files: list[str], before: tuple[str, ...]
) -> tuple[Preparation, ...]:
    lines = (f"{KEY} {key.hex()}", *(f"{FOUND} {memory.escape(path)}" for path in files[:MOST_FOUND]))
    if instance is None or lines == before:
        return ()
    # Another worktree's box may start at this moment, and what it has found must not be forgotten.
    note = memory.note(instance.decoys, FORM, lines, is_private=True)
    note = note.replace(before=memory.write(FORM, before) if before else None)
    return Preparation(Preparation.DIRECTORY, instance.directory), note


def _telling_links(tree: Tree, project: str, entries: Iterable[Entry]) -> dict[str, str]:
    """What symlinks of the project lead to in it, if it is there or not, and if the name of the symlink says secret.

    Of several symlinks the strictest counts: the agent can make another one.
    """
    found: dict[str, tuple[list[int], str]] = {}
    for link in (entry.path for entry in entries if entry.kind == LINK):
        target = tree.destination(link) or ""
        if is_below(target, project):
            ends = ("/x", "/x.php") if tree.is_plain_directory(target) else ("", "/x")
            kinds = [kind_of(f"{link}{end}", project) for end in ends]
            how = [table.STRICT.index(kind[0]) if kind else len(table.STRICT) for kind in kinds]
            found[target] = min(found.get(target, (how, link)), (how, link))
    return {target: link for target, (how, link) in found.items() if min(how) < len(table.STRICT)}


def _named(tree: Tree, project: str, entries: Iterable[Entry], also: dict[str, str]) -> list[tuple[str, Kind]]:
    """The files whose names, or those of symlinks to them, say that they may hold a secret."""
    paths = [entry.path for entry in entries if entry.kind in (FILE, OTHER)]
    for target in also:
        paths += [f"{target}/{name}" for name in tree.entries(target)] if tree.is_plain_directory(target) else [target]
    for entry in entries:
        above = entry.path.removesuffix(entry.name)
        inner = [f"{above}{path}" for path in table.IN_SKIPPED if path.startswith(f"{entry.name}/")]
        paths += [path for path in inner if tree.lstat(path) is not None]
    kinds = ((path, table.kind_by_all_names(path, project, also)) for path in dict.fromkeys(paths))
    return [(path, kind) for path, kind in kinds if kind is not None]


class Finder:
    """Judges files of the project, and knows what has to be said of them."""

    def __init__(self, tree: Tree, indexes: Indexes, reveals: Reveals, key: bytes, *, is_live: bool = False) -> None:
        from claudebox.features.secrets import masking

        self.is_live = is_live  # then nobody reads what it has to say, and an index may take seconds
        self.tree, self.indexes, self.reveals, self.project = tree, indexes, reveals, indexes.project
        self.masking, self.masker = masking, masking.Masker(key)
        self.read, self.bytes = 0, 0
        # Of the last file that was judged, if it was read whole: its content, and its inode or 0.
        self.content: bytes | None = None
        self.inode = 0
        self.closed: frozenset[str] = frozenset()  # directories that the box does not see
        self.decoys: set[bytes] = set()
        self.shown: list[str] = []  # what the box sees as it is, although the name says secret
        self.findings: dict[str, Finding] = {}

    def judge(self, path: str, kind: Kind | None = None, here: int = -1) -> Masked | None:
        """The file as the box may see it; None if it need not be masked. Never raises, whatever the file holds.

        While a box runs, it is open: what is at its path may be another one by now.
        """
        how, reason = kind or kind_of(path, self.project) or BY_CONTENT
        self.content, self.inode = None, 0
        status = os.fstat(here) if self.is_live else self.tree.lstat_anew(path)
        if status is None or stat.S_ISDIR(status.st_mode) or self.reveals.is_hidden(path):
            return None
        if not self.is_live and self.tree.resolve(path) != path:
            return None  # a symlink is not followed: it may lead to somebody else's secret
        mode = status.st_mode & PERMISSIONS | FOR_OWNER
        masked = Masked(path, how, reason, status.st_ino, status.st_dev, b"", mode)
        self.read += 1
        if not stat.S_ISREG(status.st_mode):
            return self._unless_shown(masked, b"")  # a password manager may write into a FIFO, whenever it is read
        is_flood = how != CONTENT and (self.read > MOST_READ or self.bytes > MOST_BYTES)
        content = None
        if not is_flood:
            limit = LONGEST + 1
            content = _read(here, limit) if self.is_live else self.tree.read_plain(path, limit, status.st_ino)
        if content is None or len(content) > LONGEST:
            why = "too many to look into" if is_flood else "cannot be read" if content is None else "too large to mask"
            return self._unless_shown(masked.replace(reason=f"{reason}; {why}"), b"")
        self.bytes += len(content)
        self.content, self.inode = content, status.st_ino
        if not content.strip() or content in self.decoys:
            return None  # a copy that an agent has made of what it saw
        if how == CONTENT and not self.masking.may_hold_secret(content, path):
            return None
        if how == CONTENT and path.rpartition(".")[2].lower() in table.CODE and not _is_sure(content):
            return None  # the agent may have written it yesterday, and has to go on with it
        return self._unless_shown(masked, content) if how == table.EMPTY else self._masked(masked, content)

    def _masked(self, masked: Masked, content: bytes) -> Masked | None:
        how = table.TELLING if masked.how == table.ALL and content.startswith(b"#!") else masked.how
        decoy = self.masker.mask(content, how, masked.path)
        if decoy is None:
            return None
        if shown := self.reveals.keys.get(masked.path, {}):
            for key in self.reveals.check_keys(masked.path, decoy.names, content):
                text = f"enters as it is ({masked.reason}): {shown[key].origin.shown}"
                self._say(Finding.SECRET, f"{self._name(masked.path)}:{key}", text)
            decoy = self.masker.mask(content, how, masked.path, frozenset(shown)) or decoy
        self.decoys.add(decoy.content)
        reason = masked.reason if decoy.content else f"{masked.reason}; cannot be masked"
        return self._unless_shown(masked.replace(decoy=decoy.content, reason=reason), content)

    def _unless_shown(self, masked: Masked, content: bytes) -> Masked | None:
        """None if the user wants to show the file, or if git has this very content: the agent can read it there."""
        path, name = masked.path, self._name(masked.path)
        reveal = self.reveals.shows(path)
        if reveal is not None:
            self._say(Finding.SECRET, name, f"enters as it is ({masked.reason}): {reveal.origin.shown}")
            return None
        if content and self.indexes.has(path, content):
            is_sure = masked.how != table.ALL and _is_sure(content)
            kind = Finding.SECRET if is_sure else Finding.NOTE
            self._say(kind, name, f"not masked ({masked.reason}): git has it as it is")
            self.shown.append(path)
            return None
        if content and not self.is_live and self.indexes.tracks(path):
            text = f"masked ({masked.reason}), although git has it: a commit in the box would have the made-up values"
            self._say(Finding.NOTE, name, text)
        return masked

    def find(self, found: Iterable[tuple[str, Kind]]) -> list[Masked]:
        """Judge what a walk has found, and all other names of what has to be masked, by the strictest of them."""
        masked: dict[str, Masked] = {}
        kinds: dict[str, Kind] = {}
        for path, kind in found:
            kinds[path] = strictest((kinds.get(path), kind)) or kind
        for path, kind in kinds.items():
            if one := self.judge(path, kind):
                masked[path] = one
        several: dict[int, Masked] = {}
        for one in sorted(masked.values(), key=lambda one: table.STRICT.index(one.how), reverse=True):
            if self._names_of(one) > 1:
                several[one.inode] = one
        if several:
            names = sum(map(self._names_of, several.values()))
            wanted = self.tree, self.project, frozenset(several), names, self.closed
            links = find_inodes(*wanted) or find_inodes(*wanted)  # somebody may just have moved something
            if links is None:
                name = self._name(next(iter(several.values())).path)
                what = f"{name} holds a secret and has another name, a hard link, that was not found"
                raise Problem(what, f"find . -samefile {quote(name)}")
            for path, inode in links.items():
                if one := self._unless_shown(several[inode].replace(path=path), b""):
                    masked[path] = one
        return list(masked.values())

    def _names_of(self, masked: Masked) -> int:
        status = self.tree.lstat(masked.path)
        return status.st_nlink if status is not None and stat.S_ISREG(status.st_mode) else 1

    def _say(self, kind: str, name: str, text: str) -> None:
        self.findings.setdefault(name, Finding(kind, name, text))

    def _name(self, path: str) -> str:
        return path.removeprefix(self.project + "/")

    def all_findings(self) -> tuple[Finding, ...]:
        """What has to be said, the grave first, and not more than somebody reads."""
        graver = sorted(self.findings.values(), key=lambda one: one.kind != Finding.SECRET)
        more = len(graver) - MOST_NAMED
        rest = [Finding(Finding.SECRET, "secrets", f"{more} more")] if more > 0 else []
        return (*graver[:MOST_NAMED], *rest, *self.reveals.unused())


def _read(here: int, limit: int) -> bytes | None:
    """Read a file by a descriptor that has only its name, without waiting for a lease."""
    try:
        with open(os.open(f"/proc/self/fd/{here}", files.READ & ~os.O_NOFOLLOW), "rb") as file:
            return file.read(limit)
    except OSError:
        return None


def _is_sure(content: bytes) -> bool:
    """Whether there is a private key or a token in it, rather than something that is only called so."""
    text = content.decode(errors="replace")
    return any(mark in text for mark in PRIVATE_KEY_MARKS) or bool(known_token(text))


def find_closed(tree: Tree, entries: Iterable[Entry], project: str, uid: int, reveals: Reveals) -> list[str]:
    """Directories that are too deep, or cannot be listed now, but by the agent, their owner, or step by step."""
    found = []
    for entry in entries:
        status = tree.lstat(entry.path) if entry.kind == UNREAD else None
        is_others = status is not None and status.st_uid != uid
        if entry.kind != UNREAD or (is_others and not tree.entries(entry.path)):
            continue
        place = entry.path
        while len(place.encode(errors="surrogateescape")) > LONGEST_PLACE:
            place = place.rpartition("/")[0]
        if place != project and reveals.shows(place) is None:
            found.append(place)
    return list(dict.fromkeys(found))


def hide_crowds(paths: list[str], project: str) -> list[str]:
    """Directories that are hidden as a whole, because too much in them would be masked or hidden one by one."""
    amounts: dict[str, int] = {}
    for path in paths:
        for above in parents(path):
            if is_below(above, project):
                amounts[above] = amounts.get(above, 0) + 1
    hidden: list[str] = []
    while (excess := len(paths) + len(hidden) - MOST_MASKS) > 0:
        if not amounts or len(hidden) > MOST_MASKS:
            what = f"more than {MOST_MASKS} files and directories in {project} itself hold secrets, or cannot be listed"
            raise Problem(what, "move them into a directory")
        enough = [one for one, amount in amounts.items() if amount > excess]
        place = max(enough, key=len) if enough else max(amounts, key=lambda one: (amounts[one], -len(one)))
        hidden.append(place)
        paths = [one for one in paths if not is_inside(one, place)]
        amounts = {one: amount for one, amount in amounts.items() if not is_inside(one, place)}
    return hidden


class Reveals:
    """The wishes of the user, and which of them had something to show."""

    def __init__(
        self, tree: Tree, project: str, home: str, reveals: tuple[Word, ...], hides: tuple[Word, ...] = ()
    ) -> None:
        self.tree, self.project, self.home = tree, project, home
        self.keys: dict[str, dict[str, Word]] = {}  # by the path of a file, those that are shown as they are
        self.files = {reveal: self._revealed(reveal) for reveal in reveals if not self._names_key(reveal)}
        self.hidden = [place for hide in hides for place in self._places(hide)]
        self.used: set[Word] = set()

    def _places(self, word: Word) -> tuple[str, ...]:
        named = absolute(word.text, self.project, self.home)
        return tuple(dict.fromkeys((named, self.tree.resolve(named) or named)))

    def _revealed(self, reveal: Word) -> tuple[str, ...]:
        """What is shown as it is. In the project no symlink is followed: an agent may have made it since."""
        places = self._places(reveal)
        if is_below(places[0], self.project) and len(places) > 1:
            name = places[0].removeprefix(f"{self.project}/")
            what = f"{reveal.origin.shown}: {name} is a symlink or behind one, which an agent may have made"
            raise Problem(what, "name the file itself, if you know which one it is")
        return places

    def _names_key(self, reveal: Word) -> bool:
        """Whether it is `FILE:KEY`, for one value of a file. A file of that very name comes first."""
        file, colon, key = reveal.text.rpartition(":")
        if not (colon and key and file) or self.tree.lstat(absolute(reveal.text, self.project, self.home)) is not None:
            return False
        if self.tree.lstat(absolute(file, self.project, self.home)) is None:
            return False
        self.keys.setdefault(self._revealed(reveal.replace(text=file))[-1], {})[key] = reveal
        return True

    def is_hidden(self, path: str) -> bool:
        """Whether the user hides it, which is stronger than anything else."""
        return any(is_inside(path, place) for place in self.hidden)

    def shows(self, path: str) -> Word | None:
        """Who shows the file."""
        found = (word for word, places in self.files.items() if any(is_inside(path, place) for place in places))
        word = next(found, None)
        self.used.update(() if word is None else (word,))
        return word

    def check_keys(self, path: str, names: tuple[str, ...], content: bytes) -> list[str]:
        """Which values are shown. Raises a Problem if one is not there; one that is not masked is shown anyway."""
        shown = self.keys.get(path, {})
        for key, word in shown.items():
            if key not in (*names, *_words(content)):
                what = f"{word.origin.shown}: {path.removeprefix(self.project + '/')} has no value called {key}"
                has = f"it has: {', '.join(names[:MOST_KEYS])}" if names else "none of its values has a name"
                raise Problem(what, has)
        self.used.update(word for key, word in shown.items() if key in names)
        return [key for key in shown if key in names]

    def unused(self) -> list[Finding]:
        words = (*self.files, *(word for keys in self.keys.values() for word in keys.values()))
        text = "would show it, but nothing in it is masked"
        return [Finding(Finding.NOTE, one.text, f"{one.origin.shown} {text}") for one in words if one not in self.used]


def _words(content: bytes) -> list[str]:
    text = content.decode(errors="replace")
    return "".join(one if one.isalnum() or one in "_-." else " " for one in text).split()
