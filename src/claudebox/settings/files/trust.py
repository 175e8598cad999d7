"""Remembers what the user said about a project's file."""

from __future__ import annotations

import json

from claudebox.host import Host
from claudebox.model import Preparation
from claudebox.prepare import prepare
from claudebox.settings.files.project import DECISIONS, decisions
from claudebox.state import STATE

MOST_DECISIONS = 1000  # the oldest are forgotten, and asked for again


def remember_decision(host: Host, content_id: str, *, granted: bool) -> None:
    state, known = f"{host.person.home}/{STATE}", decisions(host)
    said = {name: value for name, value in known.items() if name != content_id} | {content_id: granted}
    latest = dict(list(said.items())[-MOST_DECISIONS:])
    content = json.dumps(latest, indent=0).encode() + b"\n"
    made = Preparation(Preparation.FILE, f"{state}/{DECISIONS}", content)
    prepare((Preparation(Preparation.DIRECTORY, state), made), "")
