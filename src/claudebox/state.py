"""One directory of state for each project, so that no project sees another's conversations."""

from __future__ import annotations

import posixpath

from claudebox.host.digest import sha256
from claudebox.host.git.repository import Repository

STATE = ".claudebox"
LENGTH = 16


def canonical_root(project: str, repository: Repository) -> str:
    """The project, or for a linked worktree the repository that it belongs to: worktrees share their history."""
    common = repository.outside
    if not common or not repository.is_worktree:
        return project
    return posixpath.dirname(common) if posixpath.basename(common) == ".git" else common


def instance_name(root: str) -> str:
    return sha256(root.encode(errors="surrogateescape"))[:LENGTH]


def instance_directory(home: str, root: str) -> str:
    return f"{home}/{STATE}/instances/{instance_name(root)}"
