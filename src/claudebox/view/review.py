"""Shows what a layer holds: briefly, as a list, and as a diff. Everything in it was named and written by the agent."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from claudebox.features.review.commits import Commits
from claudebox.features.review.judge import Item
from claudebox.layers.changes import ADDED, CHANGED, DELETED, DIRECTORY, LINK, MODE, Change, Never
from claudebox.text import (
    BOLD,
    DIM,
    GREEN,
    RED,
    WIDTH,
    YELLOW,
    Style,
    bytes_text,
    counted,
    cut,
    escape,
    some,
    table_row,
)

LABEL = 14
MOST_NAMED = 12
HUGE = 1 << 20  # bytes
LONGEST_DIFF = 1 << 20  # bytes of a file that are compared line by line
NO_END = "\\ No newline at end of file"
# Steps that difflib may take: at worst, it looks at every pair of equal lines once for each line. This many take it a
# few seconds.
MOST_STEPS = 30_000_000
POPULAR_SINCE = 200  # lines: from there on, difflib leaves out those that are more than one in a hundred
MEANWHILE = "changed on this host meanwhile: lands only if you choose it"


def summary(number: str, items: list[Item], never: tuple[Never, ...], style: Style) -> str:
    """What would land, never without what would be deleted."""
    lines = [style.paint(f"claudebox: review {number}: {counts(items)}", BOLD)]
    lines += _row("deleted", [_deleted(item.change) for item in items if item.change.kind == DELETED], style, RED)
    replaced = [_replaced(item.change) for item in items if item.change.gone and item.change.kind != DELETED]
    lines += _row("replaced", replaced, style, RED)
    apart = [item for item in items if item.reason and not _is_room(item.change)]
    for reason in dict.fromkeys(item.reason for item in apart):
        names = [_name(item.change) for item in apart if item.reason == reason]
        lines += _row("host runs" if reason == apart[0].reason else "", names, style, RED, f"({escape(reason)})")
    lines += _row("conflict", [_name(item.change) for item in items if item.change.is_conflict], style, YELLOW)
    lines += [" " * LABEL + MEANWHILE] if any(item.change.is_conflict for item in items) else []
    lines += _row("big, binary", [_sized(item.change) for item in items if _is_large(item.change)], style, "")
    lines += _row("never lands", [f"{escape(one.path)} ({escape(one.reason)})" for one in never], style, YELLOW)
    return "".join(f"{line}\n" for line in lines)


def counts(items: list[Item]) -> str:
    changes = [item.change for item in items if item.change.what != DIRECTORY or item.change.kind == DELETED]
    parts = [
        (sum(change.kind == ADDED for change in changes), "added"),
        (sum(change.kind == CHANGED for change in changes), "changed"),
        (sum(change.gone or 1 for change in changes if change.kind == DELETED), "deleted"),
        (sum(change.gone for change in changes if change.kind != DELETED), "deleted to make room"),
    ]
    said = [f"{amount} {word}" for amount, word in parts if amount]
    if modes := sum(item.change.kind == MODE for item in items):
        said.append(counted(modes, "mode of a directory", "modes of directories"))
    return ", ".join(said) or (_directories(len(items)) if items else "no files")


def landed_text(changes: list[Change]) -> str:
    """How many files have landed. A directory is worth a word only if there is nothing else."""
    landed = [change for change in changes if change.what != DIRECTORY or change.kind == DELETED]
    number = sum(change.gone or 1 if change.kind == DELETED else 1 for change in landed)
    if number:
        return f"Landed: {number}.\n"
    return f"Landed: {_directories(len(changes))}.\n" if changes else "Nothing landed.\n"


def checkout_text(changes: list[Change]) -> str:
    names = [_name(change) for change in changes if not _is_room(change)]
    return f"claudebox: landed, as commits had it before the box: {', '.join(some(names, MOST_NAMED))}\n"


def _directories(number: int) -> str:
    return counted(number, "directory", "directories")


def _row(label: str, names: list[str], style: Style, colour: str, why: str = "") -> list[str]:
    words = ", ".join(some(names, MOST_NAMED)).split(" ") + ([why] if why else [])
    return table_row(label, [part for word in words for part in word.split(" ")], LABEL, style, colour) if names else []


def _is_room(change: Change) -> bool:
    """Whether it is a directory that is new, so that only what is in it matters."""
    return change.what == DIRECTORY and change.kind == ADDED and change.old is None


def _name(change: Change) -> str:
    return escape(change.path) + ("/" if change.what == DIRECTORY else "")


def _deleted(change: Change) -> str:
    if change.what != DIRECTORY:
        return _name(change)
    return f"{_name(change)} ({counted(change.gone, 'file')})"


def _replaced(change: Change) -> str:
    return f"{escape(change.path)}/ (by a {change.what}; {counted(change.gone, 'file')} deleted)"


def _is_large(change: Change) -> bool:
    return change.kind in (ADDED, CHANGED) and (change.is_binary or change.size >= HUGE)


def _sized(change: Change) -> str:
    return f"{_name(change)} {bytes_text(change.size)}"


def listing(items: list[Item], style: Style) -> str:
    """Every change with its number. What is ticked lands if nothing else is said."""
    lines = []
    for number, item in enumerate(items, 1):
        mark = "[x]" if item.is_safe else "[ ]"
        words = [_kind(item.change), _name(item.change)]
        words += [f"-> {escape(item.change.target)}"] if item.change.what == LINK and item.change.target else []
        words += [f"({counted(item.change.gone, 'file')} deleted)"] if item.change.gone else []
        words += [f"({item.reason})"] if item.reason else []
        words += ["(changed on this host meanwhile)"] if item.change.is_conflict else []
        text = cut(" ".join(words), WIDTH - 10)
        lines.append(f"{number:>5} {mark} {text if item.is_safe else style.paint(text, RED)}")
    return "".join(f"{line}\n" for line in lines)


def _kind(change: Change) -> str:
    return f"{'mode' if change.kind == MODE else change.kind:<8}"


def heading(item: Item, style: Style) -> Iterator[str]:
    """What is said of a change in any case, whichever program shows the difference."""
    yield style.paint(f"{item.change.kind} {_name(item.change)}{_details(item.change)}", BOLD)
    if item.reason:
        yield style.paint(f"  this host: {item.reason}", RED)


def diff(item: Item, old: bytes | None, new: bytes | None, style: Style) -> Iterator[str]:
    """The difference that a change makes, line by line. None stands for what does not exist or is not a file."""
    change = item.change
    yield from heading(item, style)
    if change.what == LINK and change.kind != DELETED:
        yield style.paint(f"+-> {escape(change.target)}", GREEN)
        return
    if change.what == DIRECTORY or change.kind == MODE:
        return
    if change.is_binary or b"\0" in (old or b"")[:LONGEST_DIFF] or max(len(old or b""), change.size) > LONGEST_DIFF:
        yield style.paint(f"  {'binary' if change.is_binary else 'large'}: {bytes_text(change.size)}", DIM)
        return
    if new is None and change.kind != DELETED:
        yield style.paint(f"  cannot be read: {bytes_text(change.size)}", RED)
        return
    yield from _unified(_lines(old), _lines(new), style)


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


def _unified(old: list[str], new: list[str], style: Style) -> Iterator[str]:
    for line in unified(old, new):
        colour = {"+": GREEN, "-": RED, "@": DIM}.get(line[:1], "")
        # A tab is what it looks like; everything else that cannot be seen is spelled out.
        text = escape(line.replace("\t", "    "))
        yield style.paint(text, colour) if colour else text


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
        lines.append(f"{' ' * LABEL}here as {posixpath.join('refs/claudebox', number)}/…")
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
