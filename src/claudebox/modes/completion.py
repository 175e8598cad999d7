"""`--completion SHELL`: what makes a shell complete options."""

from __future__ import annotations

from claudebox.settings.words import Request
from claudebox.terminal import show
from claudebox.view.completion import completion


def serve(request: Request) -> int:
    show(completion(dict(request.said)["completion"]))
    return 0
