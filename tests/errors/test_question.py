"""What is said if there is no yes."""

from __future__ import annotations

import sys

from claudebox import consent, start
from claudebox.errors import FAILED
from errors.scene import Problems, Scene
from saying import parse


def refused_answer(scene: Scene) -> None:
    scene.monkeypatch.setattr(consent, "ask", lambda _: "n")
    scene.monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    scene.monkeypatch.setattr(sys.stderr, "write", lambda _: 0)
    start.confirm(scene.machine.host(), scene.machine.plan(), parse([]))


def nobody_to_ask(scene: Scene) -> None:
    scene.monkeypatch.setattr(sys.stderr, "write", lambda _: 0)
    start.confirm(scene.machine.host(), scene.machine.plan(), parse([]))


PROBLEMS: Problems = {
    "answer-no": (refused_answer, FAILED),
    "answer-impossible": (nobody_to_ask, FAILED),
}
