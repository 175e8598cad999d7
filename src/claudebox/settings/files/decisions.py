"""What the user said about the files of projects, by the content that they were asked about."""

from __future__ import annotations

from claudebox import remembered
from claudebox.host import Host
from claudebox.model import Preparation
from claudebox.remembered import Form
from claudebox.state import State

FORM = Form("What you said about settings of projects. Remove this file to be asked again.")
GRANTED, REFUSED = "yes", "no"
MOST_DECISIONS = 1000  # the oldest are forgotten, and asked for again


def recall_decisions(host: Host) -> dict[str, bool]:
    """Whether the user agreed, by `content_id`. A damaged file means that nothing was said."""
    memory = remembered.recall(host.tree, State(host.person.home).decisions, FORM, host.person.uid)
    words = [line.partition(" ") for line in memory.lines]
    return {content_id: said == GRANTED for said, _, content_id in words if said in (GRANTED, REFUSED)}


def keeping_decision(host: Host, content_id: str, *, granted: bool) -> tuple[Preparation, ...]:
    others = {name: value for name, value in recall_decisions(host).items() if name != content_id}
    latest = list({**others, content_id: granted}.items())[-MOST_DECISIONS:]
    lines = [f"{GRANTED if value else REFUSED} {name}" for name, value in latest]
    return remembered.keeping(State(host.person.home).decisions, FORM, lines)
