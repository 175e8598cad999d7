"""`claudebox --demo`: the real Claude Code, in the real box, told by a stand-in for the API to take what it can."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile

from claudebox.demo.agent import (
    Agent,
    find_agent,
)
from claudebox.demo.screen import Screen
from claudebox.demo.script import STEPS
from claudebox.demo.stage import (
    Stage,
    build_stage,
    check_work,
)
from claudebox.demo.stand_in import StandIn
from claudebox.host.distribution import install_command
from claudebox.host.tree import Tree
from claudebox.own_command import own_command
from claudebox.problem import Problem
from claudebox.settings.words import Request

TIMEOUT = 300
DUMMY_KEY = "sk-ant-demo-not-a-key-0000"


def serve(_: Request) -> int:
    """0 if nothing secret was seen inside and the work arrived outside, 1 otherwise."""
    if shutil.which("git") is None:
        raise Problem("the demo needs git, which is not installed", install_command(Tree(), "git"))
    screen = Screen(sys.stdout)
    agent = find_agent(screen.say)
    directory = os.path.realpath(tempfile.mkdtemp(prefix="claudebox-demo-"))
    try:
        stage = build_stage(directory)
        screen.introduce(stage, agent)
        with StandIn(STEPS, screen.show_step) as api:
            status, errors = _launch(stage, agent, api.port)
        return screen.conclude(stage, api, status, errors, check_work(stage))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _launch(stage: Stage, agent: Agent, port: int) -> tuple[int, str]:
    """The exit status, and what was said on standard error."""
    environ = {
        **stage.variables,
        "HOME": stage.home,
        "PATH": os.environ.get("PATH", ""),
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
        timeout=TIMEOUT,
        check=False,
    )
    return done.returncode, done.stderr
