"""Reports what a box has left that this host may obey: a line for each reason, and everything on request.

There are as many lines as reasons, whatever the agent has left. In a line the names of the table that lie in the
project's root come first and are never left out, so that many others push nothing grave out of sight.
"""

from __future__ import annotations

from claudebox.errors import quote
from claudebox.features.guard.changes import Leftover
from claudebox.features.guard.commits import Carried, Carry, changing
from claudebox.features.guard.decide import within
from claudebox.features.guard.table import held_names
from claudebox.model import Trace
from claudebox.paths import shorten_home
from claudebox.record import Record
from claudebox.text import BOLD, DIM, RED, WIDTH, YELLOW, Style, beside, counted, cut, escape, fill, some, width
from claudebox.view.review import unified

MOST_NAMED = 3
MOST_DETAILS = 3
MOST_LINES = 24
MOST_SHOWN = 100  # an agent may leave thousands
LONGEST_NAME = 60
SHORT = 12  # digits of a commit
LABEL = len("changed ")
INDENT = LABEL + 4

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
        label = self.style.paint(what, RED if row[0].is_grave else YELLOW) + " " * (LABEL - len(what))
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
            known.setdefault(found[0], []).append(path) if found else others.append(path)
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
                lines.append(f"  {one.what:<{LABEL}}{self.name(one.path)}")
                lines += [f"    {escape(detail)}" for detail in (*one.details, *mend)]
        return "".join(f"{line}\n" for line in lines)

    def contents(self, listed: list[Row]) -> str:
        """Each leftover with its content, or with the difference to what was there before."""
        members = [(number, one) for number, row in enumerate(listed, 1) for one in row]
        lines: list[str] = []
        for number, one in members[:MOST_SHOWN]:
            lines += [self.style.paint(f"{number:>3} {self.name(one.path)}", BOLD)]
            old, new = _text(one.old), _text(one.new)
            shown = list(unified(old, new, around=1)) if old and new else new or list(one.details) or [one.reason]
            lines += [f"    {cut(escape(line), WIDTH - 4)}" for line in shown[:MOST_LINES]]
            lines += [f"    … {counted(len(shown) - MOST_LINES, 'more line')}"] if len(shown) > MOST_LINES else []
        lines += [f"  and {len(members) - MOST_SHOWN} more"] if len(members) > MOST_SHOWN else []
        return "".join(f"{line}\n" for line in lines)

    def moved(self, directory: str, names: list[str], restored: list[str], back: str) -> str:
        """Where the files are now, and how to get one of them back."""
        lines = []
        if names:
            place = shorten_home(directory, self.home) if quote(directory) == directory else quote(directory)
            lines += ["Moved, under the same names, to", f"  {place}"]
            lines += ["To get one of them back:", f"  mv -T {place}/{quote(back)} {quote(back)}"] if back else []
        if restored:
            known = some([_short(self.name(path)) for path in restored], MOST_NAMED)
            lines += fill(f"As before the box again: {', '.join(known)}".split(" "), 0)
        return "".join(f"{line}\n" for line in lines)

    def not_moved(self, failed: dict[str, str]) -> str:
        return "".join(f"{self.name(path)} was not moved: {escape(reason)}\n" for path, reason in failed.items())


def _short(name: str) -> str:
    """A name that fits in a line, with its beginning and its end."""
    if width(name) <= LONGEST_NAME:
        return name
    end = name[-LONGEST_NAME // 2 :]
    while width(end) > LONGEST_NAME // 2:
        end = end[1:]
    return cut(name, LONGEST_NAME // 2) + end


def _text(trace: Trace | None) -> list[str]:
    if trace is None or trace.content is None:
        return []
    if b"\0" in trace.content:
        return [f"binary, {counted(len(trace.content), 'byte')}"]
    return trace.content.decode(errors="surrogateescape").splitlines()
