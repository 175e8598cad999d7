"""Shows what needs no Plan, and so loads nothing that plans: help is shown at once.

Each function takes the request and returns an exit status.
"""

from __future__ import annotations

from claudebox.host import read_host
from claudebox.settings.files.profiles import list_profiles
from claudebox.settings.words import Request
from claudebox.terminal import output_style, show
from claudebox.view.help import help_text
from claudebox.view.wishes import profiles_text


def show_profiles(_: Request) -> int:
    show(profiles_text(list_profiles(read_host()), output_style()))
    return 0


def show_help(_: Request) -> int:
    show(help_text())
    return 0
