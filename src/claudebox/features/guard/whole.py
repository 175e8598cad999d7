"""Directories of tools that are held as a whole, where layers can hold them.

As a wall, only the parts that this host runs can be held: an agent may well be asked for a template of issues in
`.github` or a rule in `.claude`. In a layer it can write all of it, what this host does not run lands by itself, and
what does not exist yet (`.claude/settings.local.json`) is held, too, for which there could be no mount.
"""

from __future__ import annotations

import posixpath

from claudebox.facts import Facts
from claudebox.features.guard.table import DOT_GIT, rows_of
from claudebox.host.walk import DIRECTORY, Entry
from claudebox.model import MOST_LAYERED, Guard, Guarded
from claudebox.paths import is_below, is_inside, parents
from claudebox.settings.table import GUARDED
from claudebox.trust.secret_places import Opening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

PARTS = "this host, an agent or CI obeys parts of it"
# Directories that belong to one tool. Not `docs`, `renv` or `.config`, where people and many tools work, and not those
# of other version control systems: their commits would stay in the layer.
FORGES = frozenset(".github .forgejo .gitea .gitlab .azure".split())
AGENTS = frozenset(
    ".claude .cursor .windsurf .gemini .codex .kiro .roo .amazonq .clinerules .continue .junie .qwen .kilocode .trae "
    ".augment .factory .amp .openhands .grok .iflow .codebuddy .vibe".split()
)
WHOLE = FORGES | AGENTS
# `claude --worktree` makes worktrees here. What git notes of them is in the repository, which is no layer, so their
# files are in none either.
CLAUDES, WORKTREES = ".claude", "worktrees"


def hold_whole(facts: Facts, guard: Guard, opened: list[Opening]) -> Guard:
    """The guard with whole directories, if this box has layers for them; else with the reason why it has none."""
    if facts.settings.review.text != GUARDED:
        return guard
    whole = [one for entry in facts.entries if (one := _whole(facts, entry, opened)) is not None]
    directories = [one for one in guard.held if _may_be_layer(facts, one.path)]
    if not whole and not directories:
        return guard
    doubt = facts.doubts_layers
    if doubt:
        return guard.replace(walls=doubt)
    whole = sorted(whole, key=lambda one: one.path.count("/"))[:MOST_LAYERED]
    direct = tuple(place for one in whole if (place := _worktrees(facts, one.path)))
    walls = frozenset(path for one in whole for path in _held_otherwise(guard, one.path))
    held = outermost((*guard.held, *whole), direct, walls)
    # An agent can make so many directories that there are not layers for all. Then these come first: of the others all
    # is read-only without a layer, of these only parts would be.
    if len(held) > MOST_LAYERED:
        held = tuple(sorted(held, key=lambda one: one not in whole))
    return guard.replace(held=held, direct=direct)


def _may_be_layer(facts: Facts, path: str) -> bool:
    return (
        is_below(path, facts.project) and DOT_GIT not in path.lower().split("/") and facts.tree.is_plain_directory(path)
    )


def _whole(facts: Facts, entry: Entry, opened: list[Opening]) -> Guarded | None:
    path = entry.path
    if entry.kind != DIRECTORY or entry.name not in WHOLE or facts.tree.resolve(path) != path:
        return None
    # What somebody wants writable arrives at once, whether it exists or not.
    if any(opening.opens(path) or is_below(opening.path, path) for opening in opened):
        return None
    if any(_belongs_to_git(one, path) for one in facts.entries) or _is_mounted(facts, path):
        return None
    return Guarded(path, rows_of(entry.name)[0].group, PARTS)


def _held_otherwise(guard: Guard, directory: str) -> list[str]:
    """What is held in the directory for another reason than its name: a hook to which git's configuration leads.

    It might not be told from the rest when the box has ended, so it stays read-only. The directory is a layer all the
    same: an agent can make a symlink that leads into it, and nothing may be less guarded for that.
    """
    known = {f"{directory}/{row.inner}" for row in rows_of(posixpath.basename(directory))}
    worktrees = f"{directory}/{WORKTREES}"
    inner = [one.path for one in guard.held if is_below(one.path, directory)]
    return [path for path in inner if path not in known and not is_inside(path, worktrees)]


def _belongs_to_git(entry: Entry, directory: str) -> bool:
    """Whether a repository is in the directory: what git notes there would never land, and its files would."""
    is_repository = entry.name == DOT_GIT and is_below(entry.path, directory)
    return is_repository and not is_inside(entry.path, f"{directory}/{WORKTREES}")


def _is_mounted(facts: Facts, path: str) -> bool:
    """Whether it is another file system than the project, to which nothing could land."""
    here, project = facts.tree.lstat(path), facts.tree.lstat(facts.project)
    return here is None or project is None or here.st_dev != project.st_dev


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
