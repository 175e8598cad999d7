"""Finds the Claude Code that is started, and checks that the box may have the files that it needs."""

from __future__ import annotations

from claudebox.host import Host
from claudebox.host.claude import PACKAGE, ClaudeInstall
from claudebox.model import SecretPlace
from claudebox.places import refuse_readable
from claudebox.problem import Problem
from claudebox.reach import Reach
from claudebox.settings.table import CLAUDE
from claudebox.settings.values import Settings, Word
from claudebox.settings.words import Request
from claudebox.tools import another, choose_agent, npm_install

# An old installer has put claude in a secret place, where it is no secret.
LOCAL_INSTALL = "/.claude/local/node_modules/@anthropic-ai"
OTHERWISE = """
      or name it: CLAUDEBOX_CLAUDE=PATH
      or do without it: --run CMD, after all other options"""


def choose_claude(host: Host, named: Word | None, reach: Reach) -> ClaudeInstall:
    return choose_agent(host, CLAUDE, named, reach, npm_install(host, PACKAGE) + OTHERWISE)


def check_claude_files(install: ClaudeInstall, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> None:
    """Raise a Problem if claude says, for example in its `#!` line, that it needs what the box must not have."""
    for file in install.files:
        refusal = refuse_readable(file, homes, places)
        if refusal and not file.endswith(LOCAL_INSTALL):
            raise Problem(f"{install.path} would need {file}: {refusal}", another(CLAUDE))


def find_claude(
    host: Host, request: Request, settings: Settings, places: tuple[SecretPlace, ...], reach: Reach
) -> ClaudeInstall | None:
    """Find claude. A command or a shell gets it too, but can start without it: then this is None.

    Another agent does not get it, nor its login.
    """
    starts_agent = request.run is None and not request.shell
    if starts_agent and settings.program.text != CLAUDE:
        return None
    try:
        found = choose_claude(host, settings.claude, reach)
        check_claude_files(found, host.person.homes, places)
        return found
    except Problem:
        if starts_agent:
            raise
        return None
