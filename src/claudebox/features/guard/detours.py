"""Refuses to start while something in a directory of git leads git elsewhere, and names it after a box."""

from __future__ import annotations

import posixpath

from claudebox.features.guard.git import CONFIG
from claudebox.features.guard.table import GIT
from claudebox.host.git.detours import find_detours
from claudebox.host.tree import Tree
from claudebox.host.walk import BEYOND, LINK, OTHER, UNREAD, Entry
from claudebox.model import Guarded
from claudebox.problem import Problem, quote
from claudebox.trust.secret_places import Opening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

DETOUR = "git would write where it leads"
MOST_NAMED = 3
# What is wrong with each, and the command that mends it.
KINDS = {
    LINK: ("a symlink, which git never makes: on this host it would write where that leads", "rm"),
    OTHER: ("neither a file nor a directory, and git on this host would write to it", "rm"),
    UNREAD: ("a directory of git that cannot be listed", "chmod -R u+rwX"),
    BEYOND: ("one directory of git too many: the rest was not looked at", "rm -r"),
}


def detours_in(tree: Tree, guarded: Iterable[Guarded], roots: Iterable[str]) -> list[Entry]:
    """The detours in every directory of git that the guard knows: each has a configuration."""
    return find_detours(tree, dict.fromkeys(_git_directories(guarded)), roots)


def _git_directories(guarded: Iterable[Guarded]) -> list[str]:
    return [
        posixpath.dirname(one.path)
        for one in guarded
        if one.reason == CONFIG and posixpath.basename(one.path) == "config"
    ]


def accept_detours(detours: list[Entry], opened: list[Opening]) -> tuple[Guarded, ...]:
    """The detours that somebody said are theirs. Raises a Problem if there are others.

    An agent may have made them, in a box whose end nobody saw; and whoever starts the next box uses git around it.
    """
    strange = [entry for entry in detours if not any(opening.opens(entry.path) for opening in opened)]
    if strange:
        raise _problem(strange)
    return tuple(Guarded(entry.path, GIT, DETOUR) for entry in detours)


def _problem(detours: list[Entry]) -> Problem:
    first = detours[0]
    more = f", and {len(detours) - 1} more" if len(detours) > 1 else ""
    what, mend = KINDS[first.kind]
    same = [entry.path for entry in detours if entry.kind == first.kind][:MOST_NAMED]
    advice = [f"{mend} {quote(path)}" for path in same]
    advice += ["or, if you made it yourself, start with", f"--writable {quote(first.path)}"]
    return Problem(f"{first.path}{more}: {what}", "\n      ".join(advice))
