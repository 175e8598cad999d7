"""Remembers what the user said about a project's file."""

from __future__ import annotations

import json

from claudebox.launch.prepare import prepare
from claudebox.model import Preparation

MOST_DECISIONS = 1000  # the oldest are forgotten, and asked for again


def remember_decision(state: str, file: str, known: dict[str, bool], content_id: str, *, granted: bool) -> None:
    decisions = {name: value for name, value in known.items() if name != content_id} | {content_id: granted}
    latest = dict(list(decisions.items())[-MOST_DECISIONS:])
    content = json.dumps(latest, indent=0).encode() + b"\n"
    prepare((Preparation(Preparation.DIRECTORY, state), Preparation(Preparation.FILE, f"{state}/{file}", content)), "")
