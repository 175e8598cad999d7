"""`--explain THING`: why something is in the box or not, and what would change it."""

from __future__ import annotations

from claudebox.explain import explain
from claudebox.modes.planning import plan_as_asked
from claudebox.settings.words import Request
from claudebox.terminal import output_style, show
from claudebox.view.explain import explanation_json, explanation_text


def serve(request: Request) -> int:
    planned = plan_as_asked(request)
    explanation = explain(planned.plan, planned.host, planned.settings, dict(request.said)["explain"])
    show(explanation_json(explanation) if request.json else explanation_text(explanation, output_style()))
    return 0
