"""Which files of the user's Claude configuration may be shown, wherever symlinks lead.

People keep their configuration in a repository of dotfiles and link to it. An agent that works on that repository can
turn such a file into a symlink to a key. So a symlink counts only if no agent can have made it.
"""

from __future__ import annotations

from claudebox.host.tree import Tree
from claudebox.model import Finding, SecretPlace
from claudebox.paths import is_inside
from claudebox.rules.places import refuse_readable


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
        inside_own = is_inside(real, self.tree.resolve(self.users) or self.users)
        refusal = None if inside_own else refuse_readable(real, self.homes, self.places)
        if refusal is not None:
            return f"leads to a place that stays outside, since {refusal.reason}"
        writable = (self.project, *self._known_projects())
        for link, _ in self.tree.links(path):
            if any(is_inside(link, project) for project in writable):
                return f"{link} is a symlink that an agent can have made"
        return ""

    def _known_projects(self) -> list[str]:
        """Every project that a box was ever made for."""
        root = f"{self.state}/instances"
        texts = (self.tree.text(f"{root}/{name}/project") or "" for name in self.tree.entries(root))
        return [text.removesuffix("\n") for text in texts if text]
