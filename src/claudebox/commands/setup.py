"""`--setup`: tries what this machine can do of the strict box, says what that changes, and writes down the choice."""

from __future__ import annotations

import os
import subprocess
import tempfile
from textwrap import indent
from typing import Any

from claudebox.errors import FAILED, Problem
from claudebox.files import prepare, remove_path
from claudebox.host import read_host
from claudebox.model import Preparation
from claudebox.output.terminal import can_ask, errors_style, nobody_to_ask, say, says_yes
from claudebox.process.single_file import own_command
from claudebox.record import Record
from claudebox.settings.table import ALLOWLIST, BROKER, NO_NETWORK, ON
from claudebox.settings.words import Request
from claudebox.state import SHOWN, State, find_state
from claudebox.text import BOLD, GREEN, YELLOW, Style, beside, fill

STRICT = "strict"
LONGEST_TRIAL = 60  # seconds
COLUMN = 19
ALONE = ("--auth", "none", "--network", "full", "--review", "off")  # so that a trial is about one thing


class Part(Record):
    """One setting of the strict box."""

    key: str
    value: str
    changes: str


# The same settings as in the profile `strict`. A credential is only looked for: nothing is sent to find out more.
PARTS = (
    Part("auth", BROKER, "your login or key stays outside; the box gets a token that is worth nothing"),
    Part("network", ALLOWLIST, "the box reaches the hosts that you list (--allow), nothing else"),
    Part("review", ON, "what the agent changes waits beside the project until you land it"),
)
# In place of `allowlist`, if that cannot be had: Claude still reaches its API, through the broker.
NO_NETWORK_PART = Part("network", NO_NETWORK, "the box reaches nothing; Claude has its API through the broker")
REACH_API = 'allow = ["@claude"]'  # without the broker Claude needs it


def set_up(request: Request) -> int:
    if not request.yes and not can_ask():
        raise nobody_to_ask()
    host, style = read_host(), errors_style()
    state = find_state(host)
    say(style.paint("The strict box", BOLD) + ", as far as this machine can do it:\n")
    able = find_able(state, style)
    if not able:
        raise Problem("this machine can do none of it", "claudebox --check")
    if host.tree.lstat(state.config) is not None:
        what = f"{SHOWN.config} is there already, and is yours to edit"
        raise Problem(what, "\n      ".join(("add to it:", *lines_for(able))))
    if not request.yes and not says_yes("Use it for every box from now on? [y/N] "):
        say(f"Nothing changed. For one box: claudebox --profile {STRICT}\n")
        return FAILED
    write_config(state, lines_for(able))
    text = f"Written to {SHOWN.config}. An option wins over it, and removing the file undoes it."
    say("\n".join(fill(text.split(), 0)) + "\n")
    return 0


def find_able(state: State, style: Style) -> list[Part]:
    """The parts that can be had here. Each is tried, and its row is shown, or why claudebox refuses it."""
    able: list[Part] = []
    broker, network, review = PARTS
    no_network = try_part(network, state)
    # The broker refuses some gateways only where the box shares this host's network.
    no_broker = try_part(broker, state, "--network", NO_NETWORK if no_network else ALLOWLIST)
    for part, refusal in ((broker, no_broker), (network, no_network), (review, try_part(review, state))):
        had = [part]
        if refusal:
            say(f"  {style.paint('no', YELLOW)} {part.key} {part.value}\n{indent(refusal, '     ')}\n")
            had = [NO_NETWORK_PART] if part is network and broker in able else []
        for one in had:
            head = f"  {style.paint('ok', GREEN)} {f'{one.key} {one.value}':<{COLUMN - 6}} "
            say("\n".join(beside(head, one.changes.split(), COLUMN)) + "\n")
        able += had
    return able


def try_part(part: Part, state: State, *beside: str) -> str:
    """Start a box with this part, in an empty project. Returns what claudebox says if it refuses."""
    with tempfile.TemporaryDirectory(prefix="claudebox-setup-") as made:
        project = os.path.realpath(made)
        # The last one of an option counts.
        command = [*own_command(), "--yes", "--quiet", *ALONE, *beside, f"--{part.key}", part.value, "--run", "true"]
        how: Any = {"stdin": subprocess.DEVNULL, "capture_output": True, "errors": "replace", "timeout": LONGEST_TRIAL}
        try:
            done = subprocess.run(command, cwd=project, check=False, **how)
        except subprocess.TimeoutExpired:
            return "the trial did not end"
        finally:
            remove_path(state.instance(project).directory)  # no agent was ever in there
    return (done.stderr.strip() or "it failed without a word") if done.returncode else ""


def lines_for(parts: list[Part]) -> list[str]:
    if parts == list(PARTS):
        return [f'profiles = ["{STRICT}"]']
    values = {part.value for part in parts}
    lines = [f'{part.key} = "{part.value}"' for part in parts]
    return lines + ([REACH_API] if ALLOWLIST in values and BROKER not in values else [])


def write_config(state: State, lines: list[str]) -> None:
    head = "# Written by claudebox --setup. Every key: claudebox --help all"
    content = "".join(f"{line}\n" for line in (head, *lines))
    directory = Preparation(Preparation.DIRECTORY, state.directory)
    prepare((directory, Preparation(Preparation.FILE, state.config, content.encode())))
