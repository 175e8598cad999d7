"""What the demo shows while it goes on."""

from __future__ import annotations

import os

from claudebox.demo.agent import Agent
from claudebox.demo.script import Step
from claudebox.demo.stage import Stage
from claudebox.demo.stand_in import StandIn
from claudebox.view.text import (
    BOLD,
    DIM,
    GREEN,
    RED,
    WIDTH,
    escape,
    fill,
    style_for,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

TITLE = 30
LAST_LINES = 6  # of what the box said when it failed


class Screen:
    """Lines on a terminal, each as soon as it is known."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.style = style_for(stream.isatty(), dict(os.environ))
        self.canaries: dict[str, str] = {}
        self.home = ""
        self.was_attack = False

    def say(self, text: str) -> None:
        self._write("\n".join(fill(escape(text).split(" "), 0)))

    def _write(self, text: str) -> None:
        try:
            self.stream.write(f"{text}\n")
            self.stream.flush()
        except BrokenPipeError:
            # Whoever reads has seen enough; the play goes on to its end and cleans up.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())

    def introduce(self, stage: Stage, agent: Agent) -> None:
        self.canaries = stage.canaries
        self.home = stage.home
        self.say(f"A throw-away home with {len(stage.canaries)} fake secrets, and a project with a bug.")
        self.say(f"In the box: {agent.title}. It is told to take what it can, then to fix the bug.")
        self.say("")

    def show_step(self, step: Step, result: str) -> None:
        if step.is_attack != self.was_attack:
            self.say(self.style.paint("It tries to" if step.is_attack else "It works: it may", BOLD))
            self.was_attack = step.is_attack
        found = [name for name, canary in self.canaries.items() if canary in result]
        mark = (
            self.style.paint("GOT IT", RED)
            if found
            else self.style.paint("  --  " if step.is_attack else "  ok  ", GREEN)
        )
        shown = self._last_line(result, WIDTH - TITLE - 11)
        self._write(f"  {step.title:<{TITLE}} {mark}  {self.style.paint(shown, DIM)}")

    def _last_line(self, result: str, room: int) -> str:
        lines = [line.strip() for line in result.replace(self.home, "~").splitlines() if line.strip()]
        text = escape(lines[-1]) if lines else "(nothing)"
        # The reason of a failure is at its end.
        return text if len(text) <= room else "…" + text[1 - room :]

    def conclude(self, stage: Stage, api: StandIn, status: int, errors: str, work: dict[str, bool]) -> int:
        everything = "\n".join(text for _, text in api.results)
        lost = [name for name, canary in stage.canaries.items() if canary in everything]
        self.say("")
        for name in lost:
            self.say(f"{name} was seen inside")
        for title, is_done in work.items():
            self.say(f"{'yes' if is_done else 'NO '}  {title}")
        is_whole = len(api.results) == len(api.steps) and status == 0
        if is_whole:
            self.say(f"{len(stage.canaries) - len(lost)} of {len(stage.canaries)} secrets stayed outside.")
        else:
            self.say(
                f"The demo did not run to its end ({len(api.results)} of {len(api.steps)} steps, status {status}):"
            )
            for line in errors.splitlines()[-LAST_LINES:]:
                self.say(line)
        return 0 if is_whole and not lost and all(work.values()) else 1
