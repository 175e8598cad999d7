"""Shows what a box has left on this host, and what waits in a layer: briefly, as a list, and as a difference.

All of it was named and written by an agent. Of what was left there are as many lines as reasons, whatever the agent has
left. In a line the names of the table that lie in the project's root come first and are never left out, so that many
others push nothing grave out of sight.
"""

from __future__ import annotations

import os

from claudebox import files
from claudebox.errors import quote
from claudebox.overlay.changes import (
    ADDED,
    CHANGED,
    DELETED,
    DIRECTORY,
    FILE,
    LINK,
    MODE,
    MOST_SHOWN,
    Change,
    Never,
    read_in_layer,
    read_in_project,
)
from claudebox.overlay.comparison import Leftover
from claudebox.overlay.history import Carried, Carry, changing
from claudebox.overlay.store import Layer
from claudebox.overlay.table import held_names
from claudebox.paths import shorten_home, within
from claudebox.record import Record
from claudebox.text import (
    BOLD,
    DIM,
    GREEN,
    RED,
    WIDTH,
    YELLOW,
    Style,
    beside,
    bytes_text,
    counted,
    cut,
    escape,
    fill,
    some,
    table_row,
    width,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from claudebox.overlay.bundle import Commits

MOST_NAMED = 3
MOST_DETAILS = 3
MOST_LINES = 24
MOST_CONTENTS = 100  # an agent may leave thousands
LONGEST_NAME = 60
SHORT = 12  # digits of a commit
FIRST = len("changed ")  # characters of a row before its names
INDENT = FIRST + 4

EVERYTHING = "All of it:"
TITLE = "claudebox: the box has left this, and this host may run it unasked:"
OTHERS = "claudebox: the box has left this, which a tool may obey when you use it:"
TAKEN = "claudebox: taken out of git's directory, since git did not write it:"
CARRIED = "claudebox: commits carry what this host or CI runs:"
CHOICE = "Keep leaves it there. Quarantine moves it away, and puts back what was there.\n"
UNDO = "To undo: rm what is new; after that, for what has changed, git restore PATH\n"
PUSHED = "A push takes them along. To see one:"
MOVED_BACK = "To be rid of them: git branch -D BRANCH, or git branch -f BRANCH COMMIT"


Row = list[Leftover]  # what was left for one reason


def rows(leftovers: list[Leftover]) -> list[Row]:
    """One for each reason, the gravest first, as the leftovers are."""
    found: dict[tuple[bool, str], Row] = {}
    for one in leftovers:
        found.setdefault((one.is_grave, one.reason), []).append(one)
    return list(found.values())


class View(Record):
    """How leftovers are shown: relative to the project and the home."""

    project: str
    home: str
    style: Style

    def name(self, path: str) -> str:
        return escape(shorten_home(within(path, self.project), self.home))

    def report(self, listed: list[Row], title: str = "") -> str:
        """The rows with their numbers; with a title of their own, nobody is asked about them, and none has a number."""
        lines: list[str] = []
        for number, row in enumerate(listed, 1):
            heading = title or (TITLE if row[0].is_grave else OTHERS)
            lines += [self.style.paint(heading, BOLD)] if self.style.paint(heading, BOLD) not in lines else []
            lines += self._row("   " if title else f"{number:>3}", row)
        return "".join(f"{line}\n" for line in lines)

    def all_rows(self, leftovers: list[Leftover], commits: Carried, told: str) -> str:
        """A line for each reason; `told` says what has become of what was taken away."""
        strange, listed = ([one for one in leftovers if one.is_strange == is_so] for is_so in (True, False))
        return self.report(rows(strange), TAKEN) + told + self.report(rows(listed)) + self.carried(commits)

    def carried(self, commits: Carried) -> str:
        """What commits carry, whether or not it lies in the project as well: a line for each reason."""
        reasons: dict[str, list[Carry]] = {}
        for one in commits.paths:
            reasons.setdefault(one.reason, []).append(one)
        texts = [escape(text) for text in some(commits.troubles, MOST_NAMED)]
        for reason, members in reasons.items():
            which = escape(changing(tuple(dict.fromkeys(text for one in members for text in one.texts))))
            texts.append(" ".join([which, *self._names([one.path for one in members]), f"({escape(reason)})"]))
        lines = [line for text in texts for line in beside("    ", text.split(" "), 6)]
        for one in commits.paths[:1]:
            where = f"--git-dir {quote(one.git_dir)} " if one.git_dir else ""
            show = f"git {where}show {one.commit[:SHORT]} -- {quote(one.path)}"
            fits = width(escape(show)) <= WIDTH - 2
            lines += [PUSHED, f"  {escape(show if fits else show.partition(' -- ')[0])}", MOVED_BACK]
        return "".join(f"{line}\n" for line in (self.style.paint(CARRIED, BOLD), *lines) if commits)

    def _row(self, number: str, row: Row) -> list[str]:
        what = row[0].what if len({one.what for one in row}) == 1 else "changed"
        label = self.style.paint(what, RED if row[0].is_grave else YELLOW) + " " * (FIRST - len(what))
        details = some(list(dict.fromkeys(detail for one in row for detail in one.details)), MOST_DETAILS)
        shown = [self.style.paint(cut(escape(one), WIDTH - INDENT), DIM) for one in details]
        mend = f"to undo: {escape(row[0].mend)}" if row[0].mend else ""
        shown += fill(mend.split(" "), INDENT, break_words=False) if mend else []
        words = [
            *self._names([within(one.path, self.project) for one in row]),
            *f"({escape(row[0].reason)})".split(" "),
        ]
        return [*beside(f"{number} {label}", words, INDENT), *(" " * INDENT + one for one in shown)]

    def _names(self, paths: list[str]) -> list[str]:
        """The names of a row, as words: `.vscode/ (3 files), .envrc.a (and 8 more .envrc*) and 12 more below vendor/`.

        What the table has one name for is one unit. Those in the root are never left out: there are few such names.
        """
        known: dict[str, list[str]] = {}
        others: list[str] = []
        for path in paths:
            found = held_names(path.partition("/")[0])
            if found:
                known.setdefault(found[0], []).append(path)
            else:
                others.append(path)
        room = max(MOST_NAMED - len(known), 0)
        texts = [self._unit(name, members) for name, members in known.items()]
        words = ", ".join((*texts, *(_short(self.name(path)) for path in others[:room]))).split(" ")
        if left := others[room:]:
            tops = {name.rpartition("/")[0].partition("/")[0] for name in left}
            below = f" below {_short(escape(tops.pop()))}/" if len(tops) == 1 and "" not in tops else ""
            words += f"and {len(left)} more{below}".split(" ")
        return words

    def _unit(self, name: str, members: list[str]) -> str:
        tops = {path.partition("/")[0] for path in members}
        if len(members) > 1 and len(tops) == 1:
            return f"{escape(tops.pop())}/ ({len(members)} files)"
        more = f" (and {len(members) - 1} more {name})" if len(members) > 1 else ""
        # The shortest one is the likeliest that something runs: not `.husky2`, but `.husky`.
        return _short(self.name(min(members, key=lambda path: len(path.partition("/")[0])))) + more

    def whole(self, leftovers: list[Leftover], commits: Carried) -> str:
        """Everything, each with its path on a line of its own."""
        lines = [EVERYTHING, *([CARRIED] if commits else [])]
        lines += [f"  {escape(text)}" for text in (*commits.troubles, *(one.text for one in commits.paths))]
        for row in rows(leftovers):
            lines.append(f"{escape(row[0].reason)}:")
            for one in row:
                mend = [f"to undo: {one.mend}"] if one.mend else []
                lines.append(f"  {one.what:<{FIRST}}{self.name(one.path)}")
                lines += [f"    {escape(detail)}" for detail in (*one.details, *mend)]
        return "".join(f"{line}\n" for line in lines)

    def contents(self, listed: list[Row]) -> str:
        """Each leftover with its content, or with the difference to what was there before."""
        members = [(number, one) for number, row in enumerate(listed, 1) for one in row]
        lines: list[str] = []
        for number, one in members[:MOST_CONTENTS]:
            lines += [self.style.paint(f"{number:>3} {self.name(one.path)}", BOLD)]
            contents = [trace.content if trace and trace.content else b"" for trace in (one.old, one.new)]
            old, new = (content.decode(errors="surrogateescape").splitlines() for content in contents)
            shown = list(unified(old, new, around=1)) if old and new else new or list(one.details) or [one.reason]
            lines += [f"    {cut(escape(line), WIDTH - 4)}" for line in shown[:MOST_LINES]]
            lines += [f"    … {counted(len(shown) - MOST_LINES, 'more line')}"] if len(shown) > MOST_LINES else []
        lines += [f"  and {len(members) - MOST_CONTENTS} more"] if len(members) > MOST_CONTENTS else []
        return "".join(f"{line}\n" for line in lines)

    def moved(self, directory: str, names: list[str], restored: list[str], back: str, failed: dict[str, str]) -> str:
        """Where the files are now, how to get one of them back, and why others were not moved."""
        lines = []
        if names:
            place = shorten_home(directory, self.home) if quote(directory) == directory else quote(directory)
            lines += ["Moved, under the same names, to", f"  {place}"]
            lines += ["To get one of them back:", f"  mv -T {place}/{quote(back)} {quote(back)}"] if back else []
        if restored:
            known = some([_short(self.name(path)) for path in restored], MOST_NAMED)
            lines += fill(f"As before the box again: {', '.join(known)}".split(" "), 0)
        lines += [f"{self.name(path)} was not moved: {escape(reason)}" for path, reason in failed.items()]
        return "".join(f"{line}\n" for line in lines)


def _short(name: str) -> str:
    """A name that fits in a line, with its beginning and its end."""
    if width(name) <= LONGEST_NAME:
        return name
    end = name[-LONGEST_NAME // 2 :]
    while width(end) > LONGEST_NAME // 2:
        end = end[1:]
    return cut(name, LONGEST_NAME // 2) + end


# What waits in a layer.

LABEL = 14
MOST_IN_A_ROW = 12
HUGE = 1 << 20  # bytes
NO_END = "\\ No newline at end of file"
# Steps that difflib may take: at worst, it looks at every pair of equal lines once for each line. This many take it a
# few seconds.
MOST_STEPS = 30_000_000
POPULAR_SINCE = 200  # lines: from there on, difflib leaves out those that are more than one in a hundred
MEANWHILE = "changed on this host meanwhile: lands only if you choose it"


def summary(number: str, changes: Sequence[Change], never: Iterable[Never], style: Style) -> str:
    """What would land, never without what would be deleted."""
    lines = [style.paint(f"claudebox: review {number}: {counts(changes)}", BOLD)]
    deleted = [one for one in changes if one.kind == DELETED]
    names = [_name(one) + (f" ({counted(one.gone, 'file')})" if one.what == DIRECTORY else "") for one in deleted]
    lines += _row("deleted", names, style, RED)
    replaced = [one for one in changes if one.gone and one.kind != DELETED]
    texts = [f"{escape(one.path)}/ (by a {one.what}; {counted(one.gone, 'file')} deleted)" for one in replaced]
    lines += _row("replaced", texts, style, RED)
    reasons: dict[str, list[str]] = {}
    for one in changes:
        if one.reason and not _is_room(one):
            reasons.setdefault(one.reason, []).append(_name(one))
    for place, (reason, names) in enumerate(reasons.items()):
        lines += _row("" if place else "host runs", names, style, RED, f"({escape(reason)})")
    conflicts = [_name(one) for one in changes if one.is_conflict]
    lines += [*_row("conflict", conflicts, style, YELLOW), " " * LABEL + MEANWHILE] if conflicts else []
    large = [one for one in changes if one.kind in (ADDED, CHANGED) and one.size >= HUGE]
    lines += _row("big", [f"{_name(one)} {bytes_text(one.size)}" for one in large], style, "")
    lines += _row("never lands", [f"{escape(one.path)} ({escape(one.reason)})" for one in never], style, YELLOW)
    return "".join(f"{line}\n" for line in lines)


def counts(changes: Sequence[Change]) -> str:
    """How many files, with those of deleted directories. A new directory counts only if there is nothing else."""
    counting = [one for one in changes if one.what != DIRECTORY or one.kind == DELETED]
    parts = [
        (sum(one.kind == ADDED for one in counting), "added"),
        (sum(one.kind == CHANGED for one in counting), "changed"),
        (sum(one.gone or 1 for one in counting if one.kind == DELETED), "deleted"),
        (sum(one.gone for one in counting if one.kind != DELETED), "deleted to make room"),
    ]
    said = [f"{amount} {word}" for amount, word in parts if amount]
    if modes := sum(one.kind == MODE for one in changes):
        said.append(counted(modes, "mode of a directory", "modes of directories"))
    return ", ".join(said) or (counted(len(changes), "directory", "directories") if changes else "no files")


def landed_text(changes: Sequence[Change]) -> str:
    return f"Landed: {counts(changes)}.\n" if changes else "Nothing landed.\n"


def checkout_text(changes: Sequence[Change]) -> str:
    names = [_name(change) for change in changes if not _is_room(change)]
    return f"claudebox: landed, as commits had it before the box: {', '.join(some(names, MOST_IN_A_ROW))}\n"


def _row(label: str, names: list[str], style: Style, colour: str, why: str = "") -> list[str]:
    words = ", ".join(some(names, MOST_IN_A_ROW)).split(" ") + ([why] if why else [])
    return table_row(label, [part for word in words for part in word.split(" ")], LABEL, style, colour) if names else []


def _is_room(change: Change) -> bool:
    """Whether it is a directory that is new, so that only what is in it matters."""
    return change.makes_room and change.old is None


def _name(change: Change) -> str:
    return escape(change.path) + ("/" if change.what == DIRECTORY else "")


def listing(changes: Sequence[Change], style: Style) -> str:
    """Every change with its number. What is ticked lands if nothing else is said."""
    lines = []
    for number, change in enumerate(changes, 1):
        mark = "[x]" if change.is_safe else "[ ]"
        words = [f"{'mode' if change.kind == MODE else change.kind:<8}", _name(change)]
        words += [f"-> {escape(change.target)}"] if change.what == LINK and change.target else []
        words += [f"({counted(change.gone, 'file')} deleted)"] if change.gone else []
        words += [f"({change.reason})"] if change.reason else []
        words += ["(changed on this host meanwhile)"] if change.is_conflict else []
        text = cut(" ".join(words), WIDTH - 10)
        lines.append(f"{number:>5} {mark} {text if change.is_safe else style.paint(text, RED)}")
    return "".join(f"{line}\n" for line in lines)


def diff_lines(layer: Layer, changes: Iterable[Change], style: Style) -> Iterator[str]:
    """The difference that these changes make, line by line."""
    with (
        files.Open(os.open(layer.upper, files.DIRECTORY)) as upper,
        files.Open(files.open_directory(layer.project)) as lower,
    ):
        for one in changes:
            old = read_in_project(lower, one.path) if one.old is not None and one.what != DIRECTORY else None
            is_new = one.kind in (ADDED, CHANGED) and one.what == FILE
            yield from _diff(one, old, read_in_layer(upper, one) if is_new else None, style)


def _diff(change: Change, old: bytes | None, new: bytes | None, style: Style) -> Iterator[str]:
    """None stands for what does not exist or is not a file."""
    yield style.paint(f"{change.kind} {_name(change)}{_details(change)}", BOLD)
    if change.reason:
        yield style.paint(f"  this host: {change.reason}", RED)
    if change.what == LINK and change.kind != DELETED:
        yield style.paint(f"+-> {escape(change.target)}", GREEN)
        return
    if change.what == DIRECTORY or change.kind == MODE:
        return
    is_binary = any(b"\0" in (content or b"") for content in (old, new))
    if is_binary or max(len(old or b""), change.size) > MOST_SHOWN:
        yield style.paint(f"  {'binary' if is_binary else 'large'}: {bytes_text(change.size)}", DIM)
        return
    if new is None and change.kind != DELETED:
        yield style.paint(f"  cannot be read: {bytes_text(change.size)}", RED)
        return
    for line in unified(_lines(old), _lines(new)):
        colour = {"+": GREEN, "-": RED, "@": DIM}.get(line[:1], "")
        # A tab is what it looks like; everything else that cannot be seen is spelled out.
        text = escape(line.replace("\t", "    "))
        yield style.paint(text, colour) if colour else text


def _details(change: Change) -> str:
    old = change.old
    if change.kind in (CHANGED, MODE) and old is not None and old.mode & 0o777 != change.mode and change.what != LINK:
        return f" (mode {old.mode & 0o777:03o} -> {change.mode:03o})"
    if change.kind == ADDED and change.mode & 0o111 and change.what not in (DIRECTORY, LINK):
        return f" (mode {change.mode:03o})"
    return f" ({counted(change.gone, 'file')} deleted)" if change.gone else ""


def _lines(content: bytes | None) -> list[str]:
    """The lines of a file. If the last one does not end, that is a line of its own, as git shows it."""
    if not content:
        return []
    *lines, last = content.decode(errors="surrogateescape").split("\n")
    return [*lines, last, NO_END] if last else lines


def commits_text(commits: Commits, number: str, style: Style) -> str:
    lines = []
    for branch in commits.branches:
        amount_text = counted(branch.commits, "commit")
        said = {
            "further": f"{amount_text} further",
            "new": f"new, {amount_text}",
            "apart": f"{amount_text}, and the host's went another way: it stays where it is",
            "elsewhere": f"{amount_text} further, but checked out elsewhere: it stays where it is",
        }[branch.kind]
        lines += _row("commits", [f"{escape(branch.name)}: {said}"], style, "")
    if commits.branches:
        lines.append(f"{' ' * LABEL}here as refs/claudebox/{number}/…")
    if commits.head:
        lines += _row("checked out", [escape(commits.head)], style, "")
    return "".join(f"{line}\n" for line in lines)


def unified(old: list[str], new: list[str], around: int = 3) -> Iterator[str]:
    """The lines of the difference, without the names of the files.

    Where it would take too long to find out which lines stayed, all of them were replaced.
    """
    if _steps(old, new) > MOST_STEPS:
        yield f"@@ -1,{len(old)} +1,{len(new)} @@"
        yield from (f"-{line}" for line in old)
        yield from (f"+{line}" for line in new)
        return
    import difflib

    for number, line in enumerate(difflib.unified_diff(old, new, lineterm="", n=around)):
        if number >= 2:  # a line of the file may look like a name, too: `++i` becomes `+++i`
            yield line


def _steps(old: list[str], new: list[str]) -> int:
    counts: dict[str, int] = {}
    for line in new:
        counts[line] = counts.get(line, 0) + 1
    most = len(new) // 100 + 1 if len(new) >= POPULAR_SINCE else len(new)
    pairs = sum(counts[line] for line in old if counts.get(line, most + 1) <= most)
    return pairs * min(len(old), len(new))
