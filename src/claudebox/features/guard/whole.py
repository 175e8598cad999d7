"""Directories of tools that are held as a whole, where layers can hold them.

As a wall, only the parts that this host runs can be held: an agent may well be asked for a template of issues in
`.github` or a skill in `.claude`. In a layer it can write all of it, what this host does not run lands by itself, and
what does not exist yet (`.claude/settings.local.json`) is held, too, for which there could be no mount.
"""

from __future__ import annotations

import posixpath

from claudebox.errors import Problem
from claudebox.facts import Facts
from claudebox.features.guard.table import AGENTS, CLAUDES, DOT_GIT, FORGES, WORKTREES, held_rows
from claudebox.host.secrets import Opening
from claudebox.host.tree import Tree
from claudebox.host.walk import DIRECTORY
from claudebox.model import MOST_LAYERED, Guard, Guarded
from claudebox.paths import is_below, is_inside, parents
from claudebox.settings.table import GUARDED, REVIEW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

PARTS = "this host, an agent or CI obeys parts of it"
# Not `docs` or `.config`, where people and many tools work, and not the directories of other version control systems:
# their commits would stay in the layer.
WHOLE = FORGES | AGENTS
# As a wall, what begins so in one of them is held.
WALLED = (
    *("settings", "config", "hook", "mcp", "cli", "environment", "extension", ".env", "workflows", "actions", "ci"),
    *("codeowners", "dependabot", "renovate", "mergify", "duo", "copilot.", "lsp", "policies"),
)


def walled_parts(tree: Tree, directory: str) -> list[str]:
    """The names in a tool's directory that are held where no layer holds all of it; "" is the directory itself."""
    try:
        return [name for name in tree.names(directory) if name.lower().startswith(WALLED)]
    except Problem:
        return [""]


def hold_whole(facts: Facts, guard: Guard, opened: list[Opening]) -> Guard:
    """The guard with whole directories, if this box has layers for them; else with the reason why it has none."""
    if facts.settings[REVIEW].text != GUARDED:
        return guard
    gits = [entry.path for entry in facts.entries if entry.name == DOT_GIT]
    whole = [
        Guarded(entry.path, held_rows(entry.name)[0].group, PARTS)
        for entry in facts.entries
        if entry.kind == DIRECTORY and entry.name in WHOLE and _can_be_whole(facts, entry.path, gits, opened)
    ]
    inside = [one.path for one in guard.held if is_below(one.path, facts.project)]
    outside_git = [path for path in inside if DOT_GIT not in path.lower().split("/")]
    if not whole and not any(facts.tree.is_plain_directory(path) for path in outside_git):
        return guard
    if doubt := facts.doubts_layers:
        return guard.replace(walls=doubt)
    whole = sorted(whole, key=lambda one: one.path.count("/"))[:MOST_LAYERED]
    direct = tuple(place for one in whole if (place := _worktrees(facts, one.path)))
    walls = frozenset(path for one in whole for path in _held_otherwise(facts.tree, guard, one.path))
    held = outermost((*guard.held, *whole), direct, walls)
    # An agent can make so many directories that there are not layers for all. Then these come first: of the others all
    # is read-only without a layer, of these only parts would be.
    if len(held) > MOST_LAYERED:
        held = tuple(sorted(held, key=lambda one: one not in whole))
    return guard.replace(held=held, direct=direct)


def _can_be_whole(facts: Facts, path: str, gits: list[str], opened: list[Opening]) -> bool:
    # What somebody wants writable arrives at once, whether it exists or not.
    if any(opening.opens(path) or is_below(opening.path, path) for opening in opened):
        return False
    # What git notes of a repository in it would never land, and the files of that would.
    if any(is_below(git, path) and not is_inside(git, f"{path}/{WORKTREES}") for git in gits):
        return False
    # On another file system than the project's, nothing could land.
    here, project = facts.tree.lstat(path), facts.tree.lstat(facts.project)
    is_mounted = here is None or project is None or here.st_dev != project.st_dev
    return not is_mounted and facts.tree.resolve(path) == path


def _held_otherwise(tree: Tree, guard: Guard, directory: str) -> list[str]:
    """What is held in the directory for another reason than its name: a hook to which git's configuration leads.

    It might not be told from the rest when the box has ended, so it stays read-only. The directory is a layer all the
    same: an agent can make a symlink that leads into it, and nothing may be less guarded for that.
    """
    known = {f"{directory}/{name}" for name in walled_parts(tree, directory)}
    worktrees = f"{directory}/{WORKTREES}"
    inner = [one.path for one in guard.held if is_below(one.path, directory)]
    return [path for path in inner if path not in known and not is_inside(path, worktrees)]


def _worktrees(facts: Facts, directory: str) -> str:
    """The directory of worktrees, which the launch makes if Claude may want it; "" if there is none."""
    path, tree = f"{directory}/{WORKTREES}", facts.tree
    if posixpath.basename(directory) != CLAUDES:
        return ""
    if tree.lstat(path) is None:
        has_git = tree.lstat(f"{posixpath.dirname(directory)}/{DOT_GIT}") is not None
        return path if has_git and facts.install is not None else ""
    return path if tree.is_plain_directory(path) else ""


def outermost(
    held: Iterable[Guarded], direct: tuple[str, ...] = (), walls: frozenset[str] = frozenset()
) -> tuple[Guarded, ...]:
    """Leave out what is in a directory that is held itself, except walls, nearest to the root first."""
    held = tuple(held)
    paths = {guarded.path for guarded in held}

    def is_held_by_another(path: str) -> bool:
        nearest = next((above for above in parents(path) if above in paths or above in direct), "")
        return nearest in paths

    found = (one for one in held if one.path in walls or not is_held_by_another(one.path))
    return tuple(sorted(found, key=lambda one: one.path.count("/")))
