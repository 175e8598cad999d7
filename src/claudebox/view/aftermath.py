"""Reports what a box has left that can run code on the host: briefly, and in full on request."""

from __future__ import annotations

from claudebox.features.guard.changes import Leftover
from claudebox.features.guard.decide import within
from claudebox.host.git.detours import MOST_FOUND
from claudebox.model import Trace
from claudebox.paths import shorten_home
from claudebox.problem import quote
from claudebox.record import Record
from claudebox.view.review import unified
from claudebox.view.text import BOLD, DIM, RED, WIDTH, Style, beside, counted, cut, escape, fill, some

MOST_LISTED = 12
MOST_NAMED = 6
MOST_DETAILS = 3
MOST_LINES = 24
MOST_SHOWN = 100  # an agent may leave thousands
LABEL = len("changed ")
INDENT = LABEL + 4

TITLE = "claudebox: left in the project, and this host may run it:"
DETOURS = "claudebox: taken out of git's directory:"
ORDINARY = "claudebox: changed, and run when you ask for it:"


class Where(Record):
    """The directories that paths are shown relative to."""

    project: str
    home: str

    def name(self, path: str) -> str:
        return escape(shorten_home(within(path, self.project), self.home))


def report(leftovers: list[Leftover], where: Where, style: Style) -> str:
    """The report: a line for each thing that runs by itself, and one line for all others together."""
    grave = [leftover for leftover in leftovers if not leftover.is_ordinary]
    ordinary = [_with_details(leftover, where) for leftover in leftovers if leftover.is_ordinary]
    lines = _rows(TITLE, grave, where, style) if grave else []
    if ordinary:
        more = f" and {len(ordinary) - MOST_NAMED} more" if len(ordinary) > MOST_NAMED else ""
        lines += beside("", f"{ORDINARY} {', '.join(ordinary[:MOST_NAMED])}{more}".split(" "), 2)
    return "".join(f"{line}\n" for line in lines)


def detours(leftovers: list[Leftover], where: Where, style: Style) -> str:
    """What git on the host would have written through, which is moved away without a question."""
    lines = _rows(DETOURS, leftovers, where, style)
    if len(leftovers) >= MOST_FOUND:
        lines.append("There are others. Do not use git here before claudebox starts without a complaint.")
    return "".join(f"{line}\n" for line in lines)


def _rows(title: str, leftovers: list[Leftover], where: Where, style: Style) -> list[str]:
    lines = [style.paint(title, BOLD)]
    for number, leftover in enumerate(leftovers[:MOST_LISTED], 1):
        label = style.paint(leftover.what, RED) + " " * (LABEL - len(leftover.what))
        words = [where.name(leftover.path), *f"({escape(leftover.reason)})".split(" ")]
        details = [style.paint(cut(escape(one), WIDTH - INDENT), DIM) for one in leftover.details]
        lines += beside(f"{number:>3} {label}", words, INDENT)
        lines += [" " * INDENT + detail for detail in some(details, MOST_DETAILS)]
    more = len(leftovers) - MOST_LISTED
    return [*lines, f"  and {more} more"] if more > 0 else lines


def _with_details(leftover: Leftover, where: Where) -> str:
    details = [escape(detail) for detail in leftover.details[:MOST_DETAILS]]
    return where.name(leftover.path) + (f" ({', '.join(details)})" if details else "")


def contents(leftovers: list[Leftover], where: Where, style: Style) -> str:
    """Each leftover with its content, or with the difference to what was there before."""
    lines: list[str] = []
    for number, leftover in enumerate(leftovers[:MOST_SHOWN], 1):
        lines += [style.paint(f"{number:>3} {where.name(leftover.path)}", BOLD)]
        shown = _content(leftover)
        lines += [f"    {cut(escape(line), WIDTH - 4)}" for line in shown[:MOST_LINES]]
        lines += [f"    … {counted(len(shown) - MOST_LINES, 'more line')}"] if len(shown) > MOST_LINES else []
    lines += [f"  and {len(leftovers) - MOST_SHOWN} more"] if len(leftovers) > MOST_SHOWN else []
    return "".join(f"{line}\n" for line in lines)


def _content(leftover: Leftover) -> list[str]:
    new = _text(leftover.new)
    if leftover.new is None or new is None:
        return list(leftover.details) or [leftover.reason]
    old = _text(leftover.old)
    if old is None:
        return new
    return list(unified(old, new, around=1))


def _text(trace: Trace | None) -> list[str] | None:
    if trace is None or trace.content is None:
        return None
    if b"\0" in trace.content:
        return [f"binary, {counted(len(trace.content), 'byte')}"]
    return trace.content.decode(errors="surrogateescape").splitlines()


def moved(
    directory: str,
    names: list[str],
    restored: list[str],
    failed: list[tuple[str, str]],
    where: Where,
    *,
    for_good: bool = False,
) -> str:
    """Where the files are now, and how to get them back."""
    lines = []
    if names:
        place = shorten_home(directory, where.home) if quote(directory) == directory else quote(directory)
        lines += ["Moved, under the same names, to", f"  {place}"]
        lines += (
            [] if for_good else ["To get one of them back:", f"  mv -T {place}/{quote(names[0])} {quote(names[0])}"]
        )
    if restored:
        lines += fill(f"Restored as before the box: {', '.join(map(where.name, restored))}".split(" "), 0)
    lines += [f"{where.name(path)} could not be moved: {escape(reason)}" for path, reason in failed]
    return "".join(f"{line}\n" for line in lines)
