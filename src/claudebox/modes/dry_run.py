"""`--dry-run`: the command that would start the box, to be pasted into a shell."""

from __future__ import annotations

from claudebox.modes.planning import plan_as_asked
from claudebox.settings.words import Request
from claudebox.terminal import show
from claudebox.view.as_json import dry_run_json
from claudebox.view.shell import shell_command


def serve(request: Request) -> int:
    plan = plan_as_asked(request).plan
    show(dry_run_json(plan) if request.json else shell_command(plan))
    return 0
