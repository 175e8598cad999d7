"""Checks the machine: each row says what was measured and, if that is not enough, why and what to type."""

from __future__ import annotations

import os
import sys

from claudebox import __version__
from claudebox.arguments import Request
from claudebox.doctor import checks
from claudebox.doctor.report import FAIL, report_json, report_text
from claudebox.host import read_host
from claudebox.layers import gather
from claudebox.view.text import escape, style_for


def check(request: Request) -> tuple[str, int]:
    """The report; status 0 if a box can be started, 1 if not."""
    host = read_host()
    rows = checks.all_rows(host, gather(host, request).settings)
    style = style_for(sys.stdout.isatty(), dict(os.environ))
    text = report_json(rows) if request.json else report_text(rows, checks.title(host), style)
    return text, 1 if any(row.state == FAIL for row in rows) else 0


def versions(request: Request) -> tuple[str, int]:
    """Of claudebox, and of the programs that it starts."""
    host = read_host()
    found = checks.versions(host, gather(host, request).settings)
    lines = [f"claudebox {__version__}", *(f"{name} {escape(text)}" for name, text in found)]
    return "\n".join(lines) + "\n", 0
