"""`--version`: of claudebox, and of the programs that it starts."""

from __future__ import annotations

from claudebox import doctor
from claudebox.settings.words import Request
from claudebox.terminal import show


def serve(request: Request) -> int:
    show(doctor.versions(request))
    return 0
