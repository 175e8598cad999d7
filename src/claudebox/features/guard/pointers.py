"""Judges what leads elsewhere: a symlink, a pointer of git, the place where git would check files out."""

from __future__ import annotations

import posixpath

from claudebox.features.guard.contents import added_pairs
from claudebox.features.guard.git import checkout_of
from claudebox.features.guard.table import DOT_GIT
from claudebox.host.git.repository import pointed_to
from claudebox.host.tree import Tree
from claudebox.host.walk import DIRECTORY, FILE, LINK, Entry
from claudebox.model import Trace
from claudebox.paths import is_inside, normalize

Roots = tuple[str, ...]  # where the agent can write

ANNEXED = f"/{DOT_GIT}/annex/objects/"
WORK_TREE = "core.worktree"
# A symlink into one of these leads to what everybody has.
COMMON = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix", "/dev/null")


def kind_of(tree: Tree, path: str) -> str:
    return LINK if tree.is_link(path) else DIRECTORY if tree.is_plain_directory(path) else FILE


def leaving(tree: Tree, roots: Roots, path: str, new: Trace) -> tuple[str, ...] | None:
    target = (new.content or b"").decode(errors="surrogateescape")
    named = normalize(posixpath.join(posixpath.dirname(path), target))
    # Of a name that nothing has yet, the way there may still lead out by a symlink.
    real = tree.destination(path) or named
    if _enters_git(tree, roots, path, real):
        return (f"-> {target}", "in git's own directory, where nobody looks")
    leaves = [place for place in (named, real) if not any(is_inside(place, known) for known in (*roots, *COMMON))]
    return (f"-> {target}",) if leaves and not _is_interpreter(tree, path, named) else None


def _enters_git(tree: Tree, roots: Roots, path: str, real: str) -> bool:
    """Whether it leads into a directory of git, and not to a file: a shell or an editor that goes there obeys it.

    Nothing looks for repositories, tasks and the like in there. git-annex has its files there, of which many are
    missing in a clone.
    """
    parts = [f"/{posixpath.basename(root)}{real[len(root) :]}" for root in roots if is_inside(real, root)]
    if posixpath.basename(path) == DOT_GIT or not any(f"/{DOT_GIT}/" in f"{part}/" for part in parts):
        return False
    directory, name = posixpath.split(real)
    is_annexed = ANNEXED in directory and posixpath.basename(directory) == name
    return not (tree.is_file(path) or (is_annexed and tree.lstat(real) is None))


def _is_interpreter(tree: Tree, path: str, target: str) -> bool:
    """Whether it is the Python of a virtual environment, which may be anywhere."""
    directory, name = posixpath.split(path)
    names = {posixpath.basename(one).rstrip("0123456789.") for one in (name, target)}
    is_environment = tree.is_file(f"{posixpath.dirname(directory)}/pyvenv.cfg")
    return names == {"python"} and is_environment and tree.is_executable(path)


def work_tree(tree: Tree, path: str, old: Trace | None, new: Trace) -> tuple[str, ...]:
    """Where a repository has its files checked out, if that place is not its own: git would write them there."""
    git_dir = posixpath.dirname(path)
    found = []
    for name, value in added_pairs(old, new):
        dot_git = normalize(posixpath.join(git_dir, value, DOT_GIT))
        checkout = checkout_of(tree, Entry(dot_git, kind_of(tree, dot_git))) if name == WORK_TREE else None
        if name == WORK_TREE and (checkout is None or checkout.git_dir != git_dir):
            found.append(f"{name} = {value}")
    return tuple(found)


def back_pointer(tree: Tree, roots: Roots, path: str, new: Trace) -> tuple[str, ...] | None:
    """Where a worktree is said to be, if that is outside and nothing there says so."""
    said = (new.content or b"").decode(errors="surrogateescape").rstrip("\n")
    named = normalize(posixpath.join(posixpath.dirname(path), said))
    if any(is_inside(named, root) for root in roots):
        return None
    checkout = checkout_of(tree, Entry(named, kind_of(tree, named)))
    return None if checkout is not None and checkout.git_dir == posixpath.dirname(path) else (said,)


def pointer(roots: Roots, path: str, old: Trace | None, new: Trace) -> tuple[str, ...] | None:
    """What a pointer says, unless it is a new one of the usual kind.

    Worktrees and submodules that were added point to a directory of their own repository.
    """
    text = (new.content or b"").decode(errors="surrogateescape")
    said = pointed_to(text, "" if path.endswith("/commondir") else "gitdir: ")
    base = posixpath.dirname(path)
    named = normalize(posixpath.join(base, said))
    if path.endswith("/commondir"):
        is_usual = posixpath.basename(posixpath.dirname(base)) == "worktrees" and named == posixpath.dirname(
            posixpath.dirname(base)
        )
    else:
        is_usual = any(is_inside(named, root) for root in roots) and "/.git/" in f"{named}/"
    return None if old is None and is_usual else (said,)
