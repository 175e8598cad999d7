"""`--check`: whether this machine can make boxes, and how to mend what is missing."""

from __future__ import annotations

from claudebox import doctor
from claudebox.settings.words import Request
from claudebox.terminal import show


def serve(request: Request) -> int:
    text, status = doctor.check(request)
    show(text)
    return status
