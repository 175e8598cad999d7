"""Shows what needs no Plan, and so loads nothing that plans: help is shown at once.

Each function takes the request and returns an exit status.
"""

from __future__ import annotations

from claudebox.settings.words import Request
from claudebox.terminal import show
from claudebox.view.help import help_text


def show_help(_: Request) -> int:
    show(help_text())
    return 0
