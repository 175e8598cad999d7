"""What an explanation consists of."""

from __future__ import annotations

from claudebox.model import Origin
from claudebox.record import Record

PATH = "path"
VARIABLE = "variable"
ADDRESS = "address"
PORT = "port"
NIX = "nix"
PACKAGE = "package"

IN = "in"
OUT = "out"
HIDDEN = "hidden"  # something shows it, something else covers it
OTHER = "other"  # what is there in the box is not what this host has there
MADE = "made"  # by the box, which has one of its own
MASKED = "masked"  # it is in the box, with made-up values
DEPENDS = "depends"  # on something that is not known before


class Because(Record):
    """One reason, and who gave it."""

    text: str
    origin: Origin | None = None


class Change(Record):
    """What it would take: an option to type, or in words what to do or why nothing helps."""

    effect: str
    option: tuple[str, ...] = ()


class Answer(Record):
    """What holds for one thing."""

    kind: str
    subject: str
    state: str
    verdict: str
    because: tuple[Because, ...]
    changes: tuple[Change, ...]
    access: str = ""  # of a path: ro or rw
    place: str = ""  # of a path: where it is in the box


class Explanation(Record):
    """An answer for each thing that a word can mean."""

    thing: str
    answers: tuple[Answer, ...]


def named(origin: Origin) -> str:
    return origin.shown if origin.is_said else f"rule `{origin.shown}`"


def with_reason(text: str, origin: Origin) -> Because:
    return Because(f"{text} ({origin.reason})" if origin.reason else text, origin)


def undo(origin: Origin, said: str = "", effect: str = "") -> list[Change]:
    """The way back for what somebody asked for."""
    if not origin.is_said:
        return []
    words = f"{origin.shown} {said}".rstrip()
    way = f"leave out {words}" if origin.is_typed else f"take it out of {origin.shown}"
    return [Change(f"{way} ({effect})" if effect else way)]
