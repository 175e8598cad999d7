"""The rows of a check, as a screen and as JSON."""

from __future__ import annotations

from claudebox.trial import FAIL, NOTE, OK, Row
from claudebox.view.text import (
    BOLD,
    GREEN,
    RED,
    YELLOW,
    Style,
    escape,
    fill,
)

COLOUR = {OK: GREEN, NOTE: YELLOW, FAIL: RED}
COLUMN = 24


def report_text(rows: list[Row], title: str, style: Style) -> str:
    lines = [style.paint(title, BOLD), ""]
    for row in rows:
        lines += _row(row, style)
    failed = sum(row.state == FAIL for row in rows)
    lines += ["", f"{failed} of {len(rows)} checks failed" if failed else "A box can be started here."]
    return "\n".join(lines) + "\n"


def _row(row: Row, style: Style) -> list[str]:
    measured, *more = fill(escape(row.measured).split(), COLUMN) or [""]
    state = style.paint(row.state, COLOUR[row.state]) + " " * (5 - len(row.state))
    lines = [f"{state} {row.name:<{COLUMN - 7}} {measured}".rstrip()]
    indent = " " * COLUMN
    lines += [indent + line for line in (*more, *fill(escape(row.why).split(), COLUMN))]
    # A command stays on one line, so that it can be copied.
    return lines + [f"  {'fix:' if command is row.fix[0] else '    '} {escape(command)}" for command in row.fix]


def report_json(rows: list[Row]) -> str:
    from claudebox.view.as_json import dump

    return dump(
        [
            {
                "state": row.state.lower(),
                "name": row.name,
                "measured": row.measured,
                "why": row.why,
                "fix": list(row.fix),
            }
            for row in rows
        ]
    )
