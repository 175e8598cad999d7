"""Finds the Claude Code that is started, and checks that the box may have the files that it needs."""

from __future__ import annotations

import posixpath

from claudebox.host import Host
from claudebox.host.claude import ClaudeInstall, inspect, manager_behind
from claudebox.host.programs import find, find_unusable
from claudebox.host.tree import Tree
from claudebox.model import SecretPlace
from claudebox.paths import normalize
from claudebox.places import refuse_readable
from claudebox.problem import CANNOT_EXECUTE, NOT_FOUND, Problem
from claudebox.quoting import quote
from claudebox.reach import Reach
from claudebox.settings.table import CLAUDE
from claudebox.settings.values import Settings, Word
from claudebox.settings.words import Request
from claudebox.tools import is_typed

# An old installer has put claude in a secret place, where it is no secret.
LOCAL_INSTALL = "/.claude/local/node_modules/@anthropic-ai"
INSTALL_CLAUDE = """\
npm install -g @anthropic-ai/claude-code
      or name it: --claude PATH
      or do without it: --run CMD, after all other options"""


def choose_claude(tree: Tree, named: Word | None, search_path: str, cwd: str, reach: Reach) -> ClaudeInstall:
    if named is not None:
        path = normalize(posixpath.join(cwd, named.text))
        if not tree.exists(path):
            raise Problem(f"{named.origin.shown}: {path} does not exist", status=NOT_FOUND)
        if not tree.is_executable(path):
            raise Problem(f"{named.origin.shown}: {path} cannot be executed", f"chmod +x {quote(path)}", CANNOT_EXECUTE)
    else:
        found = find(tree, "claude", search_path, cwd)
        if found is None and (unusable := find_unusable(tree, "claude", search_path, cwd)):
            raise Problem(f"{unusable} cannot be executed", f"chmod +x {quote(unusable)}", CANNOT_EXECUTE)
        if found is None:
            raise Problem("claude is not installed", INSTALL_CLAUDE, NOT_FOUND)
        path = found
    install = inspect(tree, path, search_path, cwd)
    parts = (path, install.real, install.way_to_interpreter)
    if not is_typed(named) and (writable := next(filter(reach.leads_through, filter(None, parts)), "")):
        raise Problem(
            f"claude would come from where an agent can write: {writable}",
            f"if you mean it, although the agent can change that file:\n      --claude {quote(path)}",
        )
    if manager := manager_behind(tree, install.real):
        raise Problem(f"{path} is a shim of {manager}, not claude", f'--claude "$({manager} which claude)"')
    if install.missing:
        raise Problem(
            f"{install.path} needs `{install.missing}`, which was not found",
            "install it, or put it on PATH",
            CANNOT_EXECUTE,
        )
    return install


def check_claude_files(install: ClaudeInstall, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> None:
    """Raise a Problem if claude says, for example in its `#!` line, that it needs what the box must not have."""
    for file in install.files:
        refusal = refuse_readable(file, homes, places)
        if refusal and not file.endswith(LOCAL_INSTALL):
            raise Problem(f"{install.path} would need {file}: {refusal}", "name another one: --claude PATH")


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
        found = choose_claude(host.tree, settings.claude, host.environ.get("PATH", ""), host.cwd, reach)
        check_claude_files(found, host.person.homes, places)
        return found
    except Problem:
        if starts_agent:
            raise
        return None
