"""`--help`."""

from __future__ import annotations

from claudebox.settings.words import Request
from claudebox.terminal import show
from claudebox.view.help import help_text


def serve(_: Request) -> int:
    show(help_text())
    return 0
