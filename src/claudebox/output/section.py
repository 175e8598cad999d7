"""What a feature shows of a box. Each view takes its part of every section, and knows no feature.

The text is as it is: the views escape it, wrap it and cut it.
"""

from __future__ import annotations

from claudebox.record import Record
from claudebox.text import some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Line = tuple[str, tuple[str, ...]]  # a label, and the words beside it

# Titles of the audit, and chapters of SANDBOX.md. Sections that share one are shown together.
OUTSIDE = "Stays outside"
FILES = "Files"
NETWORK = "Network"
TOOLS = "Tools"
ASK = "Ask the user for"

# Labels of the first screen. A feature's rows come after one of these.
WRITABLE = "writable"
VARIABLES = "variables"
READ_ONLY = "read-only"


class Row(Record):
    """A row of the first screen: items, of which some may be left out, and words that belong to all of them."""

    label: str
    items: tuple[str, ...] = ()
    words: str = ""
    most: int = 6  # lines
    is_usual: bool = False  # it says little about this box, and is left out where there is no room
    after: str = VARIABLES


class Section(Record):
    """One thing to know about a box. Every field may be empty."""

    # The audit.
    title: str = ""
    legend: str = ""
    lines: tuple[Line, ...] = ()
    # The first screen.
    rows: tuple[Row, ...] = ()
    mounts: tuple[str, ...] = ()  # the paths of those that these rows name, so that no other does
    adds: tuple[tuple[str, str], ...] = ()  # to a row of every box: its label, and a few words
    # JSON: a field and its value. Objects of the same name become one.
    key: str = ""
    value: object = None
    # SANDBOX.md: chapters, and what they say.
    told: tuple[tuple[str, str], ...] = ()
    # The command to paste.
    comment: str = ""
    start: str = ""  # the beginning of a command line that starts the box
    pasted: tuple[tuple[str, object], ...] = ()  # fields of its JSON


def by_label(lines: Iterable[Line]) -> tuple[Line, ...]:
    """The same words in one line for each label."""
    groups: dict[str, tuple[str, ...]] = {}
    for label, words in lines:
        groups[label] = (*groups.get(label, ()), *words)
    return tuple(groups.items())


def fields(record: Record, *names: str) -> dict[str, object]:
    """These fields of a record for JSON; `rule` is what its origin is called."""
    values = record.__dict__
    return {name: values["origin"].shown if name == "rule" else values[name] for name in names}


def named(paths: Iterable[str], most: int = 20) -> list[str]:
    """Paths for SANDBOX.md, and how many more there are: they are data and must not look like instructions."""
    return some([f"`{plain(path)}`" for path in paths], most)


def plain(text: str) -> str:
    return "".join(character for character in text if character.isprintable() and character != "`")
