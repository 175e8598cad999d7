"""Finds the repositories that a box has added to the project, whose files are less of a surprise than others.

An editor obeys the files of a clone when it is opened there; and a worktree has the files of the project once more.
"""

from __future__ import annotations

import posixpath

from claudebox.features.guard.decide import LINKS
from claudebox.features.guard.table import DOT_GIT, UNSEEN
from claudebox.features.guard.whole import PARTS
from claudebox.host.tree import Tree
from claudebox.host.walk import SKIPPED
from claudebox.model import Guard, Guarded, Trace
from claudebox.paths import is_inside, parents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ANY = ""  # a group
CONFIG = "/config"
GIT_CONFIG = f"/{DOT_GIT}{CONFIG}"


class Checkouts:
    """The repositories in directories that were not there before the box.

    One that was made in a directory of the user's does not count: that is opened as before.
    """

    def __init__(self, tree: Tree, guard: Guard, after: Iterable[Guarded]) -> None:
        self.tree = tree
        self.guard = guard
        places = tuple(after)
        # A directory of the user's may have got another name, and a symlink its old one.
        links = [one.path for one in places if one.group == LINKS and one.path in guard.directories]
        self.turned = [real for link in links if (real := tree.resolve(link)) is not None]
        # For a worktree or a submodule, `.git` is a file, and a place of its own.
        gits = dict.fromkeys(one.path.removesuffix(CONFIG) for one in places)
        self.new = {
            posixpath.dirname(path)
            for path in gits
            if posixpath.basename(path) == DOT_GIT and tree.lstat(path) and self._is_new(posixpath.dirname(path))
        }
        self.cloned = sorted(one for one in self.new if tree.is_plain_directory(f"{one}/{DOT_GIT}"))

    def _is_new(self, directory: str) -> bool:
        guard = self.guard
        return not (
            directory in guard.directories
            or any(is_inside(root, directory) for root in guard.roots)
            or any(one.group == UNSEEN for one in guard.others)  # then not all of them are known
            or not SKIPPED.keys().isdisjoint(directory.split("/"))
            or any(is_inside(real, directory) or is_inside(directory, real) for real in self.turned)
        )

    def name_of(self, path: str) -> str:
        """The name of a file in the checkout that it belongs to."""
        above = next((one for one in parents(path) if one in self.new or one in self.guard.roots), "")
        return path[len(above) :]


class Familiar:
    """The files of the project that are obeyed already, without those of repositories that lie in it.

    In a worktree they are no news, at the same places. At another place, the same content may mean another thing.
    """

    def __init__(self, guard: Guard, before: dict[str, Trace], checkouts: Checkouts) -> None:
        places = (*guard.held, *guard.opened, *guard.loose, *guard.absent, *guard.others)
        # The parts of a directory that is held as a whole are of several groups.
        groups = {one.path: one.group if one.reason != PARTS else ANY for one in places}
        cloned = {path.removesuffix(GIT_CONFIG) for path in groups if path.endswith(GIT_CONFIG)} - {*guard.roots}
        self.checkouts = checkouts
        self.known = {
            (group, checkouts.name_of(path), trace.content)
            for path, trace in before.items()
            if trace.content and cloned.isdisjoint(parents(path))
            for group in [next((groups[above] for above in (path, *parents(path)) if above in groups), ANY)]
        }

    def has(self, place: Guarded, path: str, trace: Trace) -> bool:
        name = self.checkouts.name_of(path)
        return any((group, name, trace.content) in self.known for group in (place.group, ANY))
