"""Finds programs the way a shell does."""

from __future__ import annotations

import posixpath

from claudebox.host.tree import Tree
from claudebox.paths import normalize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The directories of administrators' tools, which the PATH of an ordinary user often lacks.
ADMIN_DIRECTORIES = ("/usr/sbin", "/sbin", "/usr/local/sbin")


def find_all(tree: Tree, name: str, path: str, cwd: str) -> Iterator[str]:
    """Every program of that name on PATH, in order. An empty or relative entry counts from `cwd`, as in a shell."""
    candidates = (normalize(posixpath.join(cwd, entry, name)) for entry in path.split(":"))
    return (candidate for candidate in candidates if tree.is_executable(candidate))


def find_unusable(tree: Tree, name: str, path: str, cwd: str) -> str | None:
    """A file of that name on PATH that cannot be executed."""
    candidates = (normalize(posixpath.join(cwd, entry, name)) for entry in path.split(":"))
    return next((candidate for candidate in candidates if tree.is_file(candidate)), None)


def find(tree: Tree, name: str, path: str, cwd: str) -> str | None:
    return next(find_all(tree, name, path, cwd), None)


def find_admin(tree: Tree, name: str, path: str, cwd: str) -> str | None:
    """Like `find`, but it also looks where the PATH of an ordinary user does not."""
    return find(tree, name, ":".join((path, *ADMIN_DIRECTORIES)), cwd)
