"""Decides which files of the project the box sees with made-up values, which as they are, and what is said of it."""

from __future__ import annotations

import stat

from claudebox.facts import Masked, Secrets
from claudebox.features.secrets.decoys import looks_revealing, make_decoy
from claudebox.features.secrets.invention import Invent, Inventor
from claudebox.features.secrets.keys import throw_away_pair
from claudebox.features.secrets.table import KEY, LOOKS, NOTED, QUOTED, STRICTEST, SURE, Candidate, original
from claudebox.features.secrets.values import is_name
from claudebox.host.git.index import Indexes
from claudebox.host.tree import Tree
from claudebox.host.walk import find_inodes
from claudebox.model import Finding
from claudebox.paths import absolute, is_below, is_inside
from claudebox.problem import Problem, quote
from claudebox.settings.values import Settings, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 1 << 18  # bytes that are read of a file; of a longer one the box sees nothing
LONGEST_DOCUMENT = 1 << 20  # bytes of a file that can only be read as a whole
DOCUMENTS = (".json", ".tfstate", ".backup", ".har")
LONGEST_TRACKED = 1 << 24  # bytes of a file that is compared with what git has
MOST_CANDIDATES = 20_000
MOST_BYTES = 1 << 23  # of all candidates: some seconds, if an agent has filled them
LINES_COST = 4  # how much longer a byte takes of what is read line by line than of a document
MOST_DECOYS = 50  # each one is a descriptor; further files are seen empty
MOST_MASKS = 300  # bwrap takes longer for each mount than for the one before
MOST_NAMED = 5
MOST_KEYS = 20
MOST_PAIRED = 20  # keys, and certificates, that are compared with each other
CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
MOST_MENTIONED = 3
MOST_LOOKS = 100  # files that are read only to mention them
# Of the real file. Without the right to write, "Permission denied" would come before "Read-only file system".
PERMISSIONS = 0o777
READABLE = 0o400  # if that has no permissions at all


class Search:
    """A search through the project, with what it has found."""

    def __init__(
        self, tree: Tree, project: str, git_dir: str, home: str, settings: Settings, inventor: Inventor
    ) -> None:
        self.inventor = inventor
        self.tree = tree
        self.home = home
        self.project = project
        self.indexes = Indexes(tree, project, git_dir)
        self.keys: dict[str, dict[str, Word]] = {}  # by the path of a file, those that are shown as they are
        self.reveals = {reveal: self._revealed(reveal) for reveal in settings.reveal if not self._names_key(reveal)}
        self.hidden = [place for hide in settings.hide for place in self._places(hide)]
        self.used: set[Word] = set()
        self.left = MOST_BYTES
        self.judged: set[str] = set()  # where something was found
        self.masked: dict[str, Masked] = {}
        self.revealed: list[tuple[str, str, Word]] = []
        self.tracked: list[tuple[str, str, str]] = []
        self.private_keys: list[bytes] = []
        self.certificates: list[tuple[Masked, bytes]] = []  # files with nothing else in them
        self.mentioned: list[tuple[str, bool]] = []  # not masked although it may hold a password; whether git has it
        self.looks_left = MOST_LOOKS
        self.moved: dict[str, str] = {}  # where a file is that was masked elsewhere before, and where that was
        self.kept: list[tuple[str, str]] = []  # the same, of those that are masked although somebody reveals the place

    def _places(self, reveal: Word) -> tuple[str, ...]:
        named = absolute(reveal.text, self.project, self.home)
        return tuple(dict.fromkeys((named, self.tree.resolve(named) or named)))

    def _revealed(self, reveal: Word) -> tuple[str, ...]:
        """What is shown as it is. In the project no symlink is followed: an agent may have made it since."""
        places = self._places(reveal)
        if is_below(places[0], self.project) and len(places) > 1:
            self._refuse_link(reveal, *places)
        return places

    def _refuse_link(self, reveal: Word, named: str, real: str) -> None:
        name = real.removeprefix(f"{self.project}/")
        raise Problem(
            f"{reveal.origin.shown}: {named.removeprefix(self.project + '/')} is a symlink or behind one, which an "
            f"agent may have made, and leads to {name}",
            f"if that is what you want to show: --reveal {quote(name)}",
        )

    def _names_key(self, reveal: Word) -> bool:
        """Whether it is `FILE:KEY`, for one value of a file. A file of that very name comes first."""
        file, colon, key = reveal.text.rpartition(":")
        named = absolute(file, self.project, self.home) if file else ""
        if not (colon and key and named) or self.tree.lstat(absolute(reveal.text, self.project, self.home)) is not None:
            return False
        if self.tree.lstat(named) is None:
            return False
        real = self.tree.resolve(named) or named
        if is_below(named, self.project) and real != named:
            self._refuse_link(reveal, named, real)
        self.keys.setdefault(real, {})[key] = reveal
        return True

    def is_hidden(self, path: str) -> bool:
        """Whether the user hides it, which is stronger than anything here."""
        return any(is_inside(path, place) for place in self.hidden)

    def _reveal(self, path: str) -> Word | None:
        """Who reveals a file. A moved one is revealed only if its old place is, too: an agent may have moved it."""
        was = self.moved.get(path, "")
        if was and self._reveal(was) is None:
            return None
        return self._names(path)

    def _names(self, path: str) -> Word | None:
        return next(
            (one for one, places in self.reveals.items() if any(is_inside(path, place) for place in places)), None
        )

    def look(self, found: Iterable[Candidate]) -> None:
        found = tuple(found)
        self.moved = {one.path: one.was for one in found if one.was}
        # A file may have several names, by symlinks. An agent can make one for which less of the file is secret.
        found = {(one.path, one.style): one for one in found if not self.is_hidden(one.path)}.values()
        if len(found) > MOST_CANDIDATES:
            raise Problem(
                f"{len(found)} files of the project may hold secrets, by their names: too many to look into",
                "hide where they are: --hide DIRECTORY",
            )
        for candidate in sorted(found, key=lambda one: STRICTEST.index(one.style) if one.style in STRICTEST else -1):
            if candidate.path not in self.judged:
                self._judge(candidate)
            self._check_limits()
        self._follow_keys()
        self._follow_hard_links()
        self._check_limits()

    def _check_limits(self) -> None:
        """Give up early: an agent can leave more files than can be looked into in a reasonable time."""
        if len(self.masked) > MOST_MASKS:
            raise Problem(
                f"more than {MOST_MASKS} files of the project hold secrets: too many to mask one by one",
                "hide where they are: --hide DIRECTORY\n      or show them as they are: --reveal DIRECTORY",
            )
        if self.left < 0:
            raise Problem(
                "the files of the project that may hold secrets, by their names, are too large to look into",
                "hide where they are: --hide DIRECTORY",
            )

    def _judge(self, candidate: Candidate) -> None:
        masked = self._mask(candidate) if candidate.style != NOTED else None
        if masked is None:
            self._mention(candidate)
            return
        self.judged.add(candidate.path)
        reveal = self._reveal(candidate.path)
        if reveal is not None:
            self.used.add(reveal)
            self.revealed.append((candidate.path, candidate.reason, reveal))
        elif not self._is_known_to_git(candidate, masked):
            self.masked[candidate.path] = self._kept_masked(masked)

    def _kept_masked(self, masked: Masked) -> Masked:
        """The file, with its old place if it would be shown by its new one: then the old one is remembered."""
        was = self.moved.get(masked.path, "")
        if not was or (self._names(masked.path) is None and masked.path not in self.keys):
            return masked
        self.kept.append((masked.path, was.removesuffix(f"/{masked.inode}")))
        return masked.replace(was=was)

    def _mask(self, candidate: Candidate) -> Masked | None:
        """The file as the box sees it; None if there is nothing secret in it."""
        path, status = candidate.path, self.tree.lstat(candidate.path)
        if candidate.inode and (status is None or status.st_ino != candidate.inode):
            raise changed_meanwhile(path)
        if status is None or stat.S_ISDIR(status.st_mode) or self.tree.resolve(path) != path:
            return None  # a symlink is not followed: it may lead to somebody else's secret
        unreadable = Masked(path, candidate.style, candidate.reason, status.st_ino, status.st_dev, None, 0)
        if not stat.S_ISREG(status.st_mode):
            return unreadable  # a password manager may write the secrets into a FIFO, whenever it is read
        named = original(path)
        is_document = named.lower().endswith(DOCUMENTS)
        is_document = is_document or candidate.style == KEY  # which is only searched for marks
        longest = LONGEST_DOCUMENT if is_document else LONGEST
        content = self.tree.read_plain(path, longest + 1, status.st_ino)
        if content is None:
            return unreadable  # the agent, who is its owner in the box, can change that
        name, is_cut = named.rpartition("/")[2], len(content) > longest
        self.left -= 0 if is_cut else len(content) * (1 if is_document else LINES_COST)
        revealed = {} if path in self.moved else self.keys.get(path, {})
        invent = self.inventor.for_file(path, frozenset(revealed))
        decoy = make_decoy(content[:longest], candidate.style, name, is_cut=is_cut, invent=invent)
        if revealed:
            hidden = make_decoy(
                content[:longest], candidate.style, name, is_cut=is_cut, invent=self.inventor.for_file(path)
            )
            self._check_keys(candidate, revealed, invent, shows_more=decoy != hidden)
        mode = status.st_mode & PERMISSIONS or READABLE
        if decoy is None:
            if candidate.style == KEY and CERTIFICATE in content:
                self.certificates.append((unreadable.replace(mode=mode), content))
            return None
        if candidate.style == KEY:
            self.private_keys.append(content)
        return unreadable.replace(decoy=decoy, mode=mode)

    def _check_keys(self, candidate: Candidate, revealed: dict[str, Word], invent: Invent, *, shows_more: bool) -> None:
        """Note the values that are shown as they are. One that is not there is a mistake."""
        name = candidate.path.removeprefix(self.project + "/")
        for key, word in revealed.items():
            if key not in invent.names:
                there = [one for one in invent.names if is_name(one)][:MOST_KEYS]
                hint = f"it has: {', '.join(there)}" if there else f"all of it: --reveal {quote(name)}"
                raise Problem(f"{word.origin.shown}: {name} has no value called {key}", hint)
            if word not in self.used and shows_more:
                self.used.add(word)
                self.revealed.append((f"{candidate.path}:{key}", candidate.reason, word))

    def _mention(self, candidate: Candidate) -> None:
        """Note a file that is not masked although something in it looks like a password."""
        if candidate.style not in (SURE, NOTED) or len(self.mentioned) >= MOST_MENTIONED or not self.looks_left:
            return
        self.looks_left -= 1
        content = self.tree.read_plain(candidate.path, LONGEST + 1) or b""
        name = candidate.path.rpartition("/")[2]
        self.left -= len(content) * LINES_COST
        style = QUOTED if candidate.style == NOTED else LOOKS
        if len(content) <= LONGEST and self._reveal(candidate.path) is None and make_decoy(content, style, name):
            self.mentioned.append((candidate.path, bool(self.indexes.blob(candidate.path))))

    def _is_known_to_git(self, candidate: Candidate, masked: Masked) -> bool:
        """Whether git has this very content: then the agent can read it there, and a mask would hide nothing.

        What git has, in this or another content, is noted for the findings.
        """
        if masked.decoy is None or not self.indexes.blob(candidate.path):
            return False
        content = self.tree.read_plain(candidate.path, LONGEST_TRACKED, masked.inode) or b""
        has = self.indexes.has(candidate.path, content)
        why = looks_revealing(content) if has else "changed"
        if why or not candidate.is_guess:
            self.tracked.append((candidate.path, candidate.reason, why))
        return has

    def _follow_keys(self) -> None:
        """Show the certificate of a worthless key instead of that of the real one: no server starts with both."""
        for masked, content in self.certificates[:MOST_PAIRED]:
            pairs = (throw_away_pair(key, content) for key in self.private_keys[:MOST_PAIRED])
            shown = next((pair for pair in pairs if pair is not None), None)
            is_ours = shown is not None and self._reveal(masked.path) is None and not self.indexes.blob(masked.path)
            if is_ours and masked.path not in self.masked:
                self.masked[masked.path] = masked.replace(decoy=shown, reason="certificate of a masked key")

    def _follow_hard_links(self) -> None:
        """Mask the other names of a masked file, too: under them it would be seen as it is."""
        several, names = {}, 0
        for masked in self.masked.values():
            status = self.tree.lstat(masked.path)
            if status is not None and status.st_nlink > 1:
                names += status.st_nlink if masked.inode not in several else 0
                several[masked.inode] = masked
        if not several:
            return
        found = find_inodes(self.tree, self.project, frozenset(several), names)
        if found is None:
            name = next(iter(several.values())).path.removeprefix(self.project + "/")
            raise Problem(
                f"{name} holds secrets and has another name, a hard link; the project is too large to look for it, "
                "has a directory that cannot be listed, or is being changed by another box",
                f"if it need not be masked: --reveal {quote(name)}",
            )
        for path, inode in found.items():
            if self._reveal(path) is None:
                self.masked.setdefault(path, several[inode].replace(path=path))


def changed_meanwhile(path: str) -> Problem:
    return Problem(
        f"{path} was moved while claudebox looked for secrets",
        "start it again; if that does not help, end the other box that works there",
    )


def judge(search: Search, found: Iterable[Candidate]) -> Secrets:
    search.look(found)
    decoys = 0
    masked = []
    for one in search.masked.values():
        decoys += one.decoy is not None
        masked.append(one if decoys <= MOST_DECOYS else one.replace(decoy=None))
    return Secrets(tuple(masked), tuple(_findings(search)), ignored=_ignored(search.indexes, masked))


def _findings(search: Search) -> list[Finding]:
    def name(path: str) -> str:
        return path.removeprefix(search.project + "/")

    found = [
        Finding(Finding.SECRET, name(path), f"enters as it is ({reason}): {reveal.origin.shown}")
        for path, reason, reveal in search.revealed[:MOST_NAMED]
    ]
    if (more := len(search.revealed) - MOST_NAMED) > 0:
        found.append(Finding(Finding.SECRET, "--reveal", f"lets more such files in: {more}"))
    for path, reason, why in search.tracked[:MOST_NAMED]:
        if why == "changed":
            text = f"masked ({reason}), although git has it: a commit in the box would have the made-up values"
            found.append(Finding(Finding.NOTE, name(path), text))
        else:
            text = f"not masked ({reason}): git has it as it is"
            found.append(Finding(Finding.SECRET if why else Finding.NOTE, name(path), text))
    if (more := len(search.tracked) - MOST_NAMED) > 0:
        found.append(Finding(Finding.NOTE, "git", f"has more files that may hold secrets: {more}"))
    for path, was in search.kept[:MOST_NAMED]:
        text = f"masked, although --reveal names it: it was moved here from {name(was)}, and a copy would be shown"
        found.append(Finding(Finding.NOTE, name(path), text))
    for path, has_git in search.mentioned:
        text = "not masked, and something in it looks like a password: "
        text += "git has it as it is" if has_git else f"to keep it out, --hide {quote(name(path))}"
        found.append(Finding(Finding.NOTE, name(path), text))
    found += [
        Finding(Finding.NOTE, reveal.text, f"{reveal.origin.shown} would show it, but nothing in it is masked")
        for reveal in (*search.reveals, *(word for keys in search.keys.values() for word in keys.values()))
        if reveal not in search.used
    ]
    return found


def _ignored(indexes: Indexes, masked: list[Masked]) -> bytes:
    """Patterns that keep git from adding masked files, each from the root of its repository."""
    lines = []
    for one in masked:
        checkout = indexes.repository(one.path)
        if checkout and not is_inside(one.path, f"{checkout}/.git"):
            lines.append("/" + "".join(map(_literal, one.path[len(checkout) + 1 :])))
    return "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")


def _literal(character: str) -> str:
    """A character of a pattern. For a newline, which a pattern cannot have, `?` stands, which is any character."""
    return f"\\{character}" if character in "*?[\\ !#" else "?" if character in "\n\r" else character
