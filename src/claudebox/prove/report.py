"""What held and what did not, as a screen and as JSON."""

from __future__ import annotations

from claudebox.paths import shorten_home
from claudebox.prove.canaries import (
    GROUPS,
    Trial,
)
from claudebox.record import Record
from claudebox.view.as_json import dump
from claudebox.view.text import (
    BOLD,
    DIM,
    GREEN,
    RED,
    WIDTH,
    YELLOW,
    Style,
    cut,
    escape,
)

HELD = "held"
OPEN = "OPEN"
UNTESTED = "untested"
MARK = 9


class Result(Record):
    """What came of a trial. A state that is none of the three names the choice by which it is open."""

    trial: Trial
    state: str
    way: str


def report_text(title: str, results: list[Result], home: str, style: Style) -> str:
    lines = [style.paint(f"Attacks on {escape(title)}", BOLD)]
    for group in GROUPS:
        members = [result for result in results if result.trial.group == group]
        tested = [result for result in members if result.state != UNTESTED]
        if not members:
            continue
        held = sum(result.state == HELD for result in tested)
        lines.append(style.paint(group, BOLD) + (f"  {held} of {len(tested)} held" if tested else "  nothing to test"))
        lines += [line for result in members for line in _lines(result, home, style)]
    return "\n".join([*lines, "", *_conclusion(results, style)]) + "\n"


def _lines(result: Result, home: str, style: Style) -> list[str]:
    if result.state == UNTESTED:
        return []
    state = result.state if result.state in (HELD, OPEN) else "chosen"
    colour = {HELD: GREEN, OPEN: RED}.get(state, YELLOW)
    text = escape(result.trial.title.replace(f"{home}/", "~/"))
    if state == OPEN:
        text += f" (by {escape(shorten_home(result.way, home))})"
    elif state != HELD:
        text += f" (open by {escape(result.state)})"
    return [f"  {style.paint(state, colour)}{' ' * (MARK - len(state))}{cut(text, WIDTH - MARK - 2)}"]


def _conclusion(results: list[Result], style: Style) -> list[str]:
    states = [result.state for result in results]
    tested = len(states) - states.count(UNTESTED)
    holes = states.count(OPEN)
    chosen = tested - states.count(HELD) - holes
    parts = [f"{states.count(HELD)} of {tested} attacks held"]
    parts += [f"{chosen} reached what you opened"] if chosen else []
    parts += [style.paint(f"{holes} GOT THROUGH", RED)] if holes else []
    lines = [", ".join(parts) + "."]
    if untested := [result.trial.title for result in results if result.state == UNTESTED]:
        lines.append(style.paint(f"{len(untested)} more do not work outside of the box either, and show nothing.", DIM))
    return lines


def report_json(title: str, results: list[Result]) -> str:
    states = [result.state for result in results]
    return dump(
        {
            "against": title,
            "held": states.count(HELD),
            "open": states.count(OPEN),
            "untested": states.count(UNTESTED),
            "chosen": len(states) - states.count(HELD) - states.count(OPEN) - states.count(UNTESTED),
            "attacks": [
                {
                    "group": result.trial.group,
                    "title": result.trial.title,
                    "state": result.state if result.state in (HELD, OPEN, UNTESTED) else "chosen",
                    "choice": result.trial.choice or None,
                    "way": result.way or None,
                }
                for result in results
            ],
        }
    )
