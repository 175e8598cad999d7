"""Checks the machine: each row says what was measured and, if that is not enough, why and what to type."""

from __future__ import annotations

import os
import sys

from claudebox import __version__
from claudebox.doctor import checks
from claudebox.doctor.report import report_json, report_text
from claudebox.host import (
    Host,
    read_host,
)
from claudebox.problem import Problem
from claudebox.settings.gather import gather
from claudebox.settings.values import (
    Settings,
    from_options,
    from_variables,
    merge,
)
from claudebox.settings.words import Request
from claudebox.trial import FAIL, Row
from claudebox.view.text import (
    escape,
    style_for,
)


def check(request: Request) -> tuple[str, int]:
    """The report; status 0 if a box can be started, 1 if not."""
    host = read_host()
    settings, problem = _settings(host, request)
    rows = checks.all_rows(host, settings)
    if problem is not None:
        rows.append(Row(FAIL, "settings", problem.message, problem.excerpt, (problem.hint,) if problem.hint else ()))
    style = style_for(sys.stdout.isatty(), dict(os.environ))
    text = report_json(rows) if request.json else report_text(rows, checks.title(host), style)
    return text, 1 if any(row.state == FAIL for row in rows) else 0


def versions(request: Request) -> str:
    """Of claudebox, and of the programs that it starts."""
    host = read_host()
    settings, _ = _settings(host, request)
    found = checks.versions(host, settings)
    lines = [f"claudebox {__version__}", *(f"{name} {escape(text)}" for name, text in found)]
    return "\n".join(lines) + "\n"


def _settings(host: Host, request: Request) -> tuple[Settings, Problem | None]:
    """What files say, unless one of them is broken: the rest can be looked at all the same."""
    try:
        return gather(host, request).settings, None
    except Problem as problem:
        return merge([*from_variables(host.environ), *from_options(request.said)]), problem
