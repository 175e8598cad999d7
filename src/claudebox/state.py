"""One directory of state for each project, so that no project sees another's conversations."""

from __future__ import annotations

import posixpath

from claudebox.host.digest import sha256
from claudebox.host.git.repository import Repository
from claudebox.host.tree import Tree
from claudebox.model import State
from claudebox.problem import Problem
from claudebox.quoting import quote

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


def check_state(tree: Tree, state: State, uid: int) -> None:
    """Raise if the state is not what this program left there."""
    instances = posixpath.dirname(state.directory)
    state_root = posixpath.dirname(instances)
    for directory in (state_root, instances, state.directory, f"{state.directory}/claude"):
        status = tree.lstat(directory)
        if status is None:
            continue
        if not tree.is_plain_directory(directory):
            raise Problem(f"{directory} is not a directory", f"mv {quote(directory)} {quote(directory + '.old')}")
        if status.st_uid != uid:
            raise Problem(
                f"{directory} belongs to another user (uid {status.st_uid})",
                f"sudo chown -R $(id -u) {quote(state_root)}",
            )
