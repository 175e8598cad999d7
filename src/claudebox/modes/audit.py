"""`--audit`: everything about the box that would be started."""

from __future__ import annotations

from claudebox.modes.planning import plan_as_asked
from claudebox.settings.words import Request
from claudebox.terminal import output_style, show
from claudebox.view.as_json import audit_json
from claudebox.view.audit import audit


def serve(request: Request) -> int:
    plan = plan_as_asked(request).plan
    show(audit_json(plan) if request.json else audit(plan, output_style(), everything=True))
    return 0
