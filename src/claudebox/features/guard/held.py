"""What of a project the host runs or believes, as it is now: for those who bring changes there without a box."""

from __future__ import annotations

import posixpath

from claudebox.features.guard.decide import find_guarded, judge_places, with_ways
from claudebox.features.guard.git import Account
from claudebox.features.guard.table import AGENT, GIT, WANTED, GuardRow, rows_of, spelled_out
from claudebox.features.guard.ways import find_ways
from claudebox.features.guard.whole import AGENTS, CLAUDES, WHOLE, WORKTREES
from claudebox.host import Host
from claudebox.host.git.config import host_configs
from claudebox.host.walk import walk_project
from claudebox.model import Guarded
from claudebox.paths import is_inside

RUN = "this host runs it"
UNASKED = "an agent on this host may run it unasked"
# What an agent takes up by itself and which brings commands, servers or permissions of its own: the head of a skill, of
# a command or of an agent's description may have hooks, and allow programs. A wall around these would stop work that
# people ask for. In a layer it costs one question.
TAKEN_UP = (
    ".claude/{agents,skills,commands,plugins,workflows,routines,loop.md} .github/{agents,skills,plugin,copilot} "
    ".github/{mcp.json,lsp.json} .cursor/{agents,skills,commands,plugins} .gemini/{agents,skills,policies} "
    ".codex/{agents,skills} .kiro/agents .qwen/{agents,skills} .amazonq/agents .factory/{skills,commands} "
    ".augment/commands .iflow/agents .codebuddy/{agents,skills,commands}"
)
PROSE = (".md", ".mdc", ".txt")  # anything else in an agent's directory may be settings that nobody knows of here


def find_held(host: Host, project: str, layers: tuple[str, ...]) -> list[Guarded]:
    """Every place that a box without a layer could not change, or would report afterwards.

    `layers` are the directories of the project that a box had as layers. If one of them is not a tool's own, of which
    only parts matter, it was held as a whole, and is now, too, even if what led there is gone.
    """
    home = host.person.home
    account = Account(home, host_configs(host.environ, home))
    entries = walk_project(host.tree, project, WANTED)
    ways = find_ways(host, (project,))
    candidates = with_ways(find_guarded(host.tree, (project,), entries, account), ways.guarded)
    found = [place for _, place in judge_places(host.tree, candidates, [project], [])]
    known = {place.path for place in found}
    whole = (f"{project}/{layer}" for layer in layers if layer and posixpath.basename(layer) not in WHOLE)
    return [*found, *ways.made, *(Guarded(path, GIT, RUN) for path in whole if path not in known)]


def why_apart(path: str, *, is_room: bool) -> str:
    """Why a change does not land by itself, judged by its path in the project; "" if nothing is known against it.

    `is_room` says whether it is a new directory, of which nothing is known but its name.
    """
    parts = path.split("/")
    for number, name in enumerate(parts):
        rows: list[GuardRow] = [*rows_of(name), *_TAKEN_UP.get(name, ())]
        rest = "/".join(parts[number + 1 :]) if rows else ""
        for row in rows:
            if not rest and not (row.inner and is_room):
                return row.reason
            if rest and (not row.inner or is_inside(rest, row.inner) or is_inside(row.inner, rest)):
                return row.reason
    return UNASKED if not is_room and _is_of_agent(parts) and not path.lower().endswith(PROSE) else ""


def _is_of_agent(parts: list[str]) -> bool:
    """Whether it is in an agent's own directory, and not in a worktree that lies there."""
    while CLAUDES in parts and parts[parts.index(CLAUDES) + 1 :][:1] == [WORKTREES]:
        parts = parts[parts.index(CLAUDES) + 3 :]
    return not AGENTS.isdisjoint(parts[:-1])


def _by_directory() -> dict[str, list[GuardRow]]:
    found: dict[str, list[GuardRow]] = {}
    for spelled in spelled_out(TAKEN_UP):
        name, _, inner = spelled.partition("/")
        found.setdefault(name, []).append(GuardRow(AGENT, UNASKED, inner))
    return found


_TAKEN_UP = _by_directory()
