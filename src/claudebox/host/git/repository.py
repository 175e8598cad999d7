"""Finds the git repository of the project, and whether it agrees that it is.

A `.git` file is a claim by the project, which a hostile agent can write. It is believed only if the directory that it
names points back at the project, because the agent cannot write there.
"""

from __future__ import annotations

import posixpath

from claudebox.host.git import config as gitconfig
from claudebox.host.tree import Tree
from claudebox.paths import is_inside, normalize, parents
from claudebox.problem import quote
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_ALTERNATES = 100
DEEPEST_MODULE = 8  # parts of a submodule's name


class Repository(Record):
    """What `git` needs for this project."""

    git_dir: str = ""  # this checkout's own directory, "" if there is none
    outside: str = ""  # the directory outside the project that has to be mounted
    is_worktree: bool = False
    why: str = ""
    trouble: str = ""  # why git will not work in the box
    remedy: str = ""

    def canonical_root(self, project: str) -> str:
        """The project, or for a linked worktree the repository that it belongs to: worktrees share their history."""
        if not self.outside or not self.is_worktree:
            return project
        return posixpath.dirname(self.outside) if posixpath.basename(self.outside) == ".git" else self.outside


def find_repository(tree: Tree, project: str) -> Repository:
    dot_git = f"{project}/.git"
    if tree.lstat(dot_git) is None:
        return _enclosing(tree, project)
    real = tree.resolve(dot_git)
    if real is None:
        return Repository(trouble=f"{dot_git} is a dangling symlink")
    if tree.is_dir(real):
        return _directory(tree, project, real)
    return _pointed(tree, project, real)


def _enclosing(tree: Tree, project: str) -> Repository:
    for directory in parents(project):
        if tree.lstat(f"{directory}/.git") is not None:
            return Repository(
                trouble=f"the git repository belongs to {directory}, which stays outside",
                remedy=f"for git, start claudebox in {directory}",
            )
    return Repository()


def _directory(tree: Tree, project: str, git_dir: str) -> Repository:
    if not is_inside(git_dir, project):
        return Repository(trouble=f".git leads to {git_dir}, outside the project", remedy=_by_hand(git_dir))
    borrowed = _borrowed_objects(tree, project, git_dir)
    if borrowed:
        return Repository(
            git_dir=git_dir,
            trouble=f"the repository borrows objects from {borrowed}",
            remedy=f"if you trust that: --mount-ro {quote(borrowed)}",
        )
    return Repository(git_dir=git_dir)


def _borrowed_objects(tree: Tree, project: str, git_dir: str) -> str:
    """The first directory outside the project that `git clone --shared` named in `objects/info/alternates`."""
    for line in (tree.text(f"{git_dir}/objects/info/alternates") or "").splitlines()[:MOST_ALTERNATES]:
        place = normalize(posixpath.join(f"{git_dir}/objects", line))
        # Only a place that exists is shown: the project wrote this text, and it would appear next to the question.
        if line and not line.startswith("#") and not is_inside(place, project) and tree.is_dir(place):
            return place
    return ""


def _pointed(tree: Tree, project: str, dot_git: str) -> Repository:
    """The repository that a `.git` file points at: a linked worktree, a submodule, or `--separate-git-dir`."""
    target = pointed_to(tree.text(dot_git) or "")
    git_dir = tree.resolve(posixpath.join(project, target)) if target else None
    if git_dir is None or not tree.is_dir(git_dir):
        return Repository(trouble=f"{project}/.git names no directory that exists")
    if is_inside(git_dir, project):
        return Repository(git_dir=git_dir)
    if _is_worktree_of(tree, git_dir, project):
        common = posixpath.dirname(posixpath.dirname(git_dir))
        return Repository(git_dir=git_dir, outside=common, is_worktree=True, why="repository of this worktree")
    if _is_submodule_of(tree, git_dir, project):
        return Repository(git_dir=git_dir, outside=git_dir, why="repository of this submodule")
    return Repository(trouble=f"{git_dir} does not say that {project} is its checkout", remedy=_by_hand(git_dir))


def pointed_to(text: str, begins: str = "gitdir: ") -> str:
    """The path that git reads there. A line break is no part of it, but a space is, and a zero byte ends it."""
    return text[len(begins) :].rstrip("\r\n").partition("\0")[0] if text.startswith(begins) else ""


def _is_worktree_of(tree: Tree, git_dir: str, project: str) -> bool:
    """Whether it is `COMMON/worktrees/NAME`, and its file `gitdir` names the project's `.git`."""
    if posixpath.basename(posixpath.dirname(git_dir)) != "worktrees":
        return False
    common = posixpath.dirname(posixpath.dirname(git_dir))
    says_common = _path_in(tree, f"{git_dir}/commondir", git_dir)
    says_checkout = _path_in(tree, f"{git_dir}/gitdir", git_dir)
    is_repository = (
        tree.is_dir(f"{common}/objects") and tree.is_dir(f"{common}/refs") and tree.is_file(f"{common}/HEAD")
    )
    return is_repository and says_common == common and says_checkout == f"{project}/.git"


def _path_in(tree: Tree, file: str, base: str) -> str | None:
    text = (tree.text(file) or "").strip()
    return tree.resolve(posixpath.join(base, text)) if text else None


def _is_submodule_of(tree: Tree, git_dir: str, project: str) -> bool:
    """Whether it is `…/.git/modules/…`, and its configuration names the project as its work tree."""
    if "/modules/" not in git_dir:
        return False
    settings = dict(gitconfig.parse(tree.text(f"{git_dir}/config") or ""))
    work_tree = settings.get("core.worktree", "")
    return bool(work_tree) and tree.resolve(posixpath.join(git_dir, work_tree)) == project


def find_submodules(tree: Tree, modules: str) -> Iterator[str]:
    """Find the submodules that a directory `modules` of git holds. They may have submodules of their own."""
    level = [modules]
    for _ in range(DEEPEST_MODULE):  # one may be called `a/b`
        paths = [f"{directory}/{name}" for directory in level for name in tree.entries(directory)]
        level = []
        for path in filter(tree.is_plain_directory, paths):
            head, config = (tree.lstat(f"{path}/{name}") for name in ("HEAD", "config"))
            if head is not None or config is not None:
                yield path
            # Another submodule may be called so. Without HEAD, git takes it for no repository.
            if head is None or tree.is_plain_directory(f"{path}/HEAD"):
                level.append(path)


def _by_hand(git_dir: str) -> str:
    return f"if you trust that: --mount-rw {quote(git_dir)}"
