"""`claudebox --demo`: a stand-in for the API tells the real Claude Code, in a real box, to take what it can."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile

from claudebox.archive import own_command
from claudebox.demo.agent import Agent, find_agent
from claudebox.demo.stage import Stage, build_stage, check_work
from claudebox.demo.stand_in import STEPS, DemoStep, StandIn
from claudebox.host import read_host
from claudebox.host.distribution import install_command
from claudebox.host.tree import Tree
from claudebox.problem import Problem
from claudebox.settings.words import Request
from claudebox.terminal import output_style
from claudebox.trust.programs import trusted_path, trusted_program
from claudebox.trust.reach import reach_of
from claudebox.view.text import BOLD, DIM, GREEN, RED, escape, fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

DEMO_SECONDS = 300
DUMMY_KEY = "sk-ant-demo-not-a-key-0000"


def run_demo(_: Request) -> int:
    """Run the demo. The exit status is 0 if no secret was seen inside and the work arrived outside, 1 otherwise."""
    # What a project has on PATH must not run here, where no box is around it.
    tree, reach = Tree(), reach_of(read_host())
    path = trusted_path(os.environ.get("PATH", ""), reach)
    git, claude, npm = (trusted_program(tree, name, path, reach) for name in ("git", "claude", "npm"))
    if not git:
        raise Problem("the demo needs git, which is not installed", install_command(tree, "git"))
    screen = Screen(sys.stdout)
    agent = find_agent(screen.say, claude, npm, path)
    directory = os.path.realpath(tempfile.mkdtemp(prefix="claudebox-demo-"))
    try:
        stage = build_stage(directory, git, path)
        screen.introduce(stage, agent)
        with StandIn(STEPS, screen.show_step) as api:
            status, errors = _launch(stage, agent, api.port)
        return screen.conclude(stage, api, status, errors, check_work(stage))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _launch(stage: Stage, agent: Agent, port: int) -> tuple[int, str]:
    """Run the agent in a box. Returns the exit status and standard error."""
    environ = {
        **stage.variables,
        "HOME": stage.home,
        "PATH": stage.path,
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "TERM": os.environ.get("TERM", "dumb"),
        "ANTHROPIC_API_KEY": DUMMY_KEY,
    }
    base_url = f"ANTHROPIC_BASE_URL=http://127.0.0.1:{port}"
    done = subprocess.run(
        [*own_command(), "--yes", "--env", base_url, *agent.arguments],
        cwd=stage.project,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=DEMO_SECONDS,
        check=False,
    )
    return done.returncode, done.stderr


TITLE = 30
LAST_LINES = 6  # of standard error, shown when the box failed


class Screen:
    """Shows each line as soon as it is known."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.style = output_style()
        self.canaries: dict[str, str] = {}
        self.home = ""
        self.was_attack = False

    def say(self, text: str, colour: str = "") -> None:
        """Show a text, of which nothing is a code for the terminal; the colour comes afterwards."""
        lines = fill(escape(text).split(" "), 0, columns=self.style.width)
        self._write("\n".join(self.style.paint(line, colour) if colour else line for line in lines))

    def _write(self, text: str) -> None:
        try:
            self.stream.write(f"{text}\n")
            self.stream.flush()
        except BrokenPipeError:
            # The reader has seen enough; the demo goes on to its end and cleans up.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())

    def introduce(self, stage: Stage, agent: Agent) -> None:
        self.canaries = stage.canaries
        self.home = stage.home
        self.say(f"A throw-away home with {len(stage.canaries)} fake secrets, and a project with a bug.")
        self.say(f"In the box: {agent.title}")

    def show_step(self, step: DemoStep, result: str) -> None:
        if step.is_attack != self.was_attack:
            self.say("It tries to" if step.is_attack else "It works: it may", BOLD)
            self.was_attack = step.is_attack
        found = [name for name, canary in self.canaries.items() if canary in result]
        mark = (
            self.style.paint("GOT IT", RED)
            if found
            else self.style.paint("  --  " if step.is_attack else "  ok  ", GREEN)
        )
        shown = self._last_line(result, max(self.style.width - TITLE - 11, 1))
        self._write(f"  {step.title:<{TITLE}} {mark}  {self.style.paint(shown, DIM)}")

    def _last_line(self, result: str, room: int) -> str:
        lines = [line.strip() for line in result.replace(self.home, "~").splitlines() if line.strip()]
        text = escape(lines[-1]) if lines else "(nothing)"
        # The reason for a failure is at the end of the line.
        return text if len(text) <= room else "…" + text[1 - room :]

    def conclude(self, stage: Stage, api: StandIn, status: int, errors: str, work: dict[str, bool]) -> int:
        everything = "\n".join(text for _, text in api.results)
        lost = [name for name, canary in stage.canaries.items() if canary in everything]
        for name in lost:
            self.say(f"{name} was seen inside", RED)
        for title, is_done in work.items():
            self.say(f"{'yes' if is_done else 'NO'}: {title}", "" if is_done else RED)
        is_whole = len(api.results) == len(api.steps) and status == 0
        if is_whole:
            self.say(f"{len(stage.canaries) - len(lost)} of {len(stage.canaries)} secrets stayed outside.", BOLD)
        else:
            self.say(
                f"The demo did not run to its end ({len(api.results)} of {len(api.steps)} steps, status {status}):"
            )
            for line in errors.splitlines()[-LAST_LINES:]:
                self.say(line)
        return 0 if is_whole and not lost and all(work.values()) else 1
