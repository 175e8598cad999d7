"""What an explanation consists of."""

from __future__ import annotations

from claudebox.model import Origin, Plan
from claudebox.record import Record

PATH = "path"
VARIABLE = "variable"
ADDRESS = "address"
PORT = "port"
NIX = "nix"
PACKAGE = "package"
PROGRAM = "program"

IN = "in"
OUT = "out"
HIDDEN = "hidden"  # something shows it, and something else covers it
OTHER = "other"  # the box has something else at this path than the host
MADE = "made"  # the box has one of its own
MASKED = "masked"  # it is in the box, with made-up values
DEPENDS = "depends"  # the answer depends on something that is not known yet


class Because(Record):
    """One reason, and who gave it."""

    text: str
    origin: Origin | None = None


class Change(Record):
    """A way to change the answer: an option to type, or words that say what to do or why nothing helps."""

    effect: str
    option: tuple[str, ...] = ()


class Answer(Record):
    """What is true of one thing."""

    kind: str
    subject: str
    state: str
    verdict: str
    because: tuple[Because, ...]
    changes: tuple[Change, ...]
    access: str = ""  # for a path: ro or rw
    place: str = ""  # for a path: where it is in the box


class Explanation(Record):
    """The answers for one word, one for each thing that it can mean."""

    thing: str
    answers: tuple[Answer, ...]


def describe_origin(origin: Origin) -> str:
    return origin.shown if origin.is_said else f"rule `{origin.shown}`"


def with_reason(text: str, origin: Origin) -> Because:
    return Because(f"{text} ({origin.reason})" if origin.reason else text, origin)


def because_of_tier(plan: Plan) -> Because:
    network = plan.network
    said = "" if network.origin.is_default else f", by {network.origin.shown}"
    return Because(f"network tier `{network.tier}`{said}: {network.meaning}", network.origin)


def undo(origin: Origin, said: str = "", effect: str = "") -> list[Change]:
    """How to take back what somebody asked for; nothing if it is a rule."""
    if not origin.is_said:
        return []
    words = f"{origin.shown} {said}".rstrip()
    way = f"leave out {words}" if origin.is_typed else f"take it out of {origin.shown}"
    return [Change(f"{way} ({effect})" if effect else way)]
