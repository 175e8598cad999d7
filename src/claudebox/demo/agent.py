"""Finds the agent for the demo: Claude Code if it is or can be installed, else a script with the same commands."""

from __future__ import annotations

import os
import subprocess

from claudebox.host.programs import PACKAGE
from claudebox.paths import shorten_home
from claudebox.record import Record
from claudebox.view.text import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PROMPT = "Do what you are told."
SIZE = "some 170 MB to download, 370 MB on the disk"
LONGEST_PATH = 50

# It speaks to the stand-in as Claude Code does, as far as the demo needs it.
SCRIPTED_AGENT = """
import json, os, subprocess, urllib.request
messages = [{"role": "user", "content": "go"}]
while True:
    request = {"model": "scripted", "messages": messages, "tools": [{"name": "Bash"}]}
    call = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(request).encode())
    block = json.load(urllib.request.urlopen(call))["content"][0]
    if block["type"] == "text":
        break
    done = subprocess.run(["sh", "-c", block["input"]["command"]], capture_output=True, text=True)
    result = {"type": "tool_result", "tool_use_id": block["id"], "content": done.stdout + done.stderr}
    messages += [{"role": "assistant", "content": [block]}, {"role": "user", "content": [result]}]
"""


class Agent(Record):
    """The program that the demo runs in the box."""

    title: str
    arguments: tuple[str, ...]


def find_agent(say: Callable[[str], None], claude: str, npm: str, path: str) -> Agent:
    """Find it, or install it with this npm, which finds node on this PATH. Each may be "": there is none."""
    claude = claude or _installed(say, npm, path)
    if claude:
        return Agent(f"Claude Code ({_short(claude)})", ("--claude", claude, "-p", PROMPT))
    return Agent(
        "there is no Claude Code, so a scripted agent plays its part", ("--run", "python3", "-c", SCRIPTED_AGENT)
    )


def _short(path: str) -> str:
    """The path as people write it, on one line."""
    return cut(shorten_home(path, os.path.expanduser("~")), LONGEST_PATH)


def _installed(say: Callable[[str], None], npm: str, path: str) -> str:
    """Claude Code from npm, installed in a place of its own; "" if that is not possible."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    place = f"{cache}/claudebox-demo"
    claude = f"{place}/node_modules/.bin/claude"
    if os.access(claude, os.X_OK):
        return claude
    if not npm:
        return ""
    say(f"Installing Claude Code for the demo ({SIZE}): npm install --prefix {place} {PACKAGE}")
    os.makedirs(place, exist_ok=True)
    command = [npm, "install", "--no-fund", "--no-audit", "--prefix", place, PACKAGE]
    # Not in the current directory, whose `.npmrc` would count.
    environ = {**os.environ, "PATH": path}
    done = subprocess.run(command, cwd=place, env=environ, capture_output=True, text=True, check=False)
    if done.returncode == 0 and os.access(claude, os.X_OK):
        return claude
    say(f"npm failed: {(done.stderr.strip().splitlines() or ['without a word'])[-1]}")
    return ""
