"""Which files of the user's Claude configuration may be shown, wherever symlinks lead.

People keep their configuration in a repository of dotfiles and link to it. An agent that works on that repository can
turn such a file into a symlink to a key. So only symlinks count that no agent can have made, and only what they lead to
directly.
"""

from __future__ import annotations

from claudebox.host.tree import Tree
from claudebox.model import (
    Finding,
    SecretPlace,
)
from claudebox.paths import is_inside
from claudebox.places import refuse_readable
from claudebox.state import names_a_writable_place


class TrustedSource:
    """Follows symlinks as far as they can be trusted, and remembers what it left out."""

    def __init__(
        self, tree: Tree, users: str, project: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...], state: str
    ) -> None:
        self.tree = tree
        self.users = users
        self.project = project
        self.homes = homes
        self.places = places
        self.state = state
        self.left_out: list[str] = []
        self._projects: list[str] | None = None

    def find(self, path: str, *, is_dir: bool) -> str | None:
        """The real path, if it exists, is of this kind, and may be shown."""
        real = self.tree.resolve(path)
        if real is None or (self.tree.is_dir(real) if is_dir else self.tree.is_file(real)) is False:
            return None
        if real == path:
            return real
        reason = self._objection(path, real)
        if reason:
            self.left_out.append(f"{path}: {reason}")
            return None
        return real

    def findings(self) -> list[Finding]:
        return [Finding(Finding.NOTE, "left out", text) for text in self.left_out]

    def _objection(self, path: str, real: str) -> str:
        own = self.tree.resolve(self.users) or self.users
        name = path.removeprefix(self.users)
        if is_inside(real, own) and real != own + name:
            return "leads to another part of Claude's own directory"
        refusal = None if is_inside(real, own) else refuse_readable(real, self.homes, self.places)
        if refusal is not None:
            return f"leads to a place that stays outside, since {refusal.reason}"
        for link, _ in self.tree.links(path):
            if not self._is_the_users(link):
                return f"{link} is a symlink that an agent can have made"
        if not is_inside(real, own) and self.is_agents(real):
            return f"{real} is where agents work"
        return ""

    def _is_the_users(self, link: str) -> bool:
        """Made by root, or in Claude's own directory, or above: where no box can write."""
        status = self.tree.lstat(link)
        if status is not None and status.st_uid == 0:
            return not self.is_agents(link)
        return (is_inside(link, self.users) or is_inside(self.users, link)) and not self.is_agents(link)

    def is_agents(self, path: str) -> bool:
        """Whether it is in a project, or in what was mounted writable for one."""
        if self._projects is None:
            self._projects = [self.project, *known_projects(self.tree, self.state)]
        return any(is_inside(path, project) for project in self._projects)


def known_projects(tree: Tree, state: str) -> list[str]:
    """Every directory that a box could ever write."""
    root = f"{state}/instances"
    files = [
        f"{root}/{instance}/{name}"
        for instance in tree.entries(root)
        for name in tree.entries(f"{root}/{instance}")
        if names_a_writable_place(name)
    ]
    return [text.removesuffix("\n") for file in files if (text := tree.text(file))]
