"""What is asked with `--explain`, what is answered, and how that is shown: as a short screen, or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from claudebox.errors import quote
from claudebox.host import Host
from claudebox.model import Origin, Plan
from claudebox.output.as_json import dump
from claudebox.record import Record
from claudebox.settings import Settings
from claudebox.settings.table import FULL, REACHES
from claudebox.text import BOLD, DIM, Style, escape, fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.host.network import Address

INDENT = 16


class Endpoint(Record):
    """A host, by name or address, and a port of it."""

    host: str
    port: int = 0  # none named
    address: Address | None = None  # the host's for the box, as far as that is known without asking DNS

    @property
    def text(self) -> str:
        if not self.port:
            return self.host
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_own(self) -> bool:
        """Whether it is the box's own localhost."""
        return self.address is not None and (self.address.is_loopback or self.address.is_unspecified)


class Question(Record):
    """What somebody asks about: everything that a word can mean. Each feature answers for what it knows."""

    plan: Plan
    host: Host
    settings: Settings  # of two that ask for the same thing, the Plan knows only the winner
    word: str = ""  # as it was typed, in case that a feature knows something by this name
    path: str = ""
    variable: str = ""
    port: int = 0
    endpoint: Endpoint | None = None


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

    # What it is about.
    PATH = "path"
    VARIABLE = "variable"
    ADDRESS = "address"
    PORT = "port"
    NIX = "nix"
    PACKAGE = "package"
    PROGRAM = "program"

    # Whether the box has it.
    IN = "in"
    OUT = "out"
    HIDDEN = "hidden"  # something shows it, and something else covers it
    OTHER = "other"  # the box has something else at this path than the host
    MADE = "made"  # the box has one of its own
    MASKED = "masked"  # it is in the box, with made-up values
    DEPENDS = "depends"  # the answer depends on something that is not known yet

    kind: str
    subject: str
    state: str
    verdict: str
    because: Sequence[Because]
    changes: Sequence[Change]
    access: str = ""  # for a path: ro or rw
    place: str = ""  # for a path: where it is in the box


def describe_origin(origin: Origin) -> str:
    return origin.shown if origin.is_said else f"rule `{origin.shown}`"


def with_reason(text: str, origin: Origin) -> Because:
    return Because(f"{text} ({origin.reason})" if origin.reason else text, origin)


def because_of_tier(plan: Plan) -> Because:
    network = plan.network
    said = "" if network.origin.is_default else f", by {network.origin.shown}"
    return Because(f"network tier `{network.tier}`{said}: {network.meaning}", network.origin)


def other_tiers(plan: Plan, *tiers: str) -> list[Change]:
    has_ports = plan.network.published or plan.network.host_ports
    but = {FULL: "; not with --publish or --host-port"} if has_ports else {}
    return [Change(REACHES[tier] + but.get(tier, ""), ("--network", tier)) for tier in tiers]


def undo(origin: Origin, said: str = "", effect: str = "") -> list[Change]:
    """How to take back what somebody asked for; nothing if it is a rule."""
    if not origin.is_said:
        return []
    words = f"{origin.shown} {said}".rstrip()
    way = f"leave out {words}" if origin.is_typed else f"take it out of {origin.shown}"
    return [Change(f"{way} ({effect})" if effect else way)]


def explanation_text(answers: list[Answer], style: Style) -> str:
    return "\n".join(_answer(answer, style) for answer in answers)


def _answer(answer: Answer, style: Style) -> str:
    # Paths and options stay whole, so that they can be copied.
    first, *rest = fill([f"{escape(answer.subject)}:", *escape(answer.verdict).split()], 0, break_words=False)
    lines = [style.paint(first, BOLD), *(style.paint(line, BOLD) for line in rest)]
    reasons = [fill(escape(because.text).split(), INDENT + 2) for because in answer.because]
    ways = [fill(_change_words(change), INDENT + 2, break_words=False) for change in answer.changes]
    return "\n".join([*lines, *_labelled("because", reasons, style), *_labelled("to change it:", ways, style)]) + "\n"


def _labelled(label: str, items: list[list[str]], style: Style) -> list[str]:
    """Lines with the label beside the first one. Further lines of an item are indented a little more."""
    lines = [line for first, *rest in items for line in (first, *(f"  {line}" for line in rest))]
    head = "  " + style.paint(label, DIM) + " " * (INDENT - 2 - len(label))
    return [(" " * INDENT if number else head) + line for number, line in enumerate(lines)]


def _change_words(change: Change) -> list[str]:
    if not change.option:
        return escape(change.effect).split()
    # A line break is spelled out: after it, a name could make a line of the screen say anything.
    return [" ".join(escape(quote(word)) for word in change.option), *f"({escape(change.effect)})".split()]


def explanation_json(thing: str, answers: list[Answer]) -> str:
    named = answers[0].subject if len(answers) == 1 else thing
    return dump({"thing": named, "answers": [_as_object(answer) for answer in answers]})


def _as_object(answer: Answer) -> dict[str, Any]:
    return {
        **{name: getattr(answer, name) for name in ("kind", "subject", "state", "verdict")},
        "access": answer.access or None,
        "place": answer.place or None,
        "because": [
            {
                "text": because.text,
                "rule": because.origin.shown if because.origin else None,
                "reason": (because.origin.reason or None) if because.origin else None,
            }
            for because in answer.because
        ],
        "changes": [{"option": list(change.option) or None, "effect": change.effect} for change in answer.changes],
    }
