"""`--profile` without a name: which profiles there are."""

from __future__ import annotations

from claudebox.host import read_host
from claudebox.settings.files.profiles import list_profiles
from claudebox.settings.words import Request
from claudebox.terminal import output_style, show
from claudebox.view.wishes import profiles_text


def serve(_: Request) -> int:
    show(profiles_text(list_profiles(read_host()), output_style()))
    return 0
