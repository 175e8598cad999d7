"""Which directory outside of the project git gets, and from whom a claim about it is believed."""

import os
from pathlib import Path

import pytest

from claudebox.host.git import Repository, find_repository, find_submodules
from claudebox.host.tree import Tree
from hosts.machine import plant

HOME = "/home/alice"
SHOP = f"{HOME}/shop"


def look(root: Path, description: str) -> Repository:
    return find_repository(plant(root, description), SHOP)


@pytest.mark.req("GIT-01")
def test_no_repository(tmp_path: Path) -> None:
    assert look(tmp_path, "~/shop/README.md") == Repository()


def test_ordinary_repository_needs_nothing_outside(tmp_path: Path) -> None:
    assert look(tmp_path, "~/shop/.git/HEAD") == Repository(git_dir=f"{SHOP}/.git")


def test_repository_above_stays_outside(tmp_path: Path) -> None:
    assert look(tmp_path, "~/.git/HEAD\n~/shop/README.md") == Repository(
        trouble="the git repository belongs to /home/alice, which stays outside",
        remedy="for git, start claudebox in /home/alice",
    )


def test_borrowed_objects_are_named(tmp_path: Path) -> None:
    alternates = "# a comment\\n/gone\\n/srv/mirror.git/objects\\n"
    description = f"~/shop/.git/objects/info/alternates: {alternates}\n/srv/mirror.git/objects/"
    assert look(tmp_path, description) == Repository(
        git_dir=f"{SHOP}/.git",
        trouble="the repository borrows objects from /srv/mirror.git/objects",
        remedy="if you trust that: --mount-ro /srv/mirror.git/objects",
    )


def test_borrowed_objects_inside_the_project_are_fine(tmp_path: Path) -> None:
    description = "~/shop/.git/objects/info/alternates: ../../vendor.git/objects\\n"
    assert look(tmp_path, description) == Repository(git_dir=f"{SHOP}/.git")


WORKTREE = """
    ~/shop/.git: gitdir: ~/main/.git/worktrees/shop\\n
    ~/main/.git/objects/
    ~/main/.git/refs/
    ~/main/.git/HEAD: ref: refs/heads/main\\n
    ~/main/.git/worktrees/shop/commondir: ../..\\n
    ~/main/.git/worktrees/shop/gitdir: ~/shop/.git\\n
"""


@pytest.mark.req("GIT-03")
def test_worktree_gets_the_common_directory(tmp_path: Path) -> None:
    assert look(tmp_path, WORKTREE) == Repository(
        git_dir=f"{HOME}/main/.git/worktrees/shop",
        outside=f"{HOME}/main/.git",
        is_worktree=True,
        why="repository of this worktree",
    )


@pytest.mark.req("GIT-03")
def test_submodule_gets_its_own_directory_only(tmp_path: Path) -> None:
    description = """
        ~/shop/.git: gitdir: ../.git/modules/shop\\n
        ~/.git/modules/shop/config: [core]\\n\\tworktree = ../../../shop\\n
    """
    place = f"{HOME}/.git/modules/shop"
    assert look(tmp_path, description) == Repository(git_dir=place, outside=place, why="repository of this submodule")


def refused(git_dir: str) -> Repository:
    return Repository(
        trouble=f"{git_dir} does not say that {SHOP} is its checkout", remedy=f"if you trust that: --mount-rw {git_dir}"
    )


OTHER = f"{HOME}/other/.git"
# A `.git` that the agent may have written, and what it would like to get.
HOSTILE: dict[str, tuple[str, Repository]] = {
    "file that names the SSH keys": ("~/shop/.git: gitdir: ~/.ssh\\n\n~/.ssh/id_rsa", refused(f"{HOME}/.ssh")),
    "file that names the home": (f"~/shop/.git: gitdir: {HOME}\\n", refused(HOME)),
    "file that names the root": ("~/shop/.git: gitdir: /\\n", refused("/")),
    "file that climbs": ("~/shop/.git: gitdir: ../../../etc\\n\n/etc/passwd", refused("/etc")),
    "file that names another repository": (
        "~/shop/.git: gitdir: ~/other/.git\\n\n~/other/.git/objects/",
        refused(OTHER),
    ),
    "file that names a directory called worktrees": (
        "~/shop/.git: gitdir: ~/x/worktrees/y\\n\n~/x/worktrees/y/\n~/x/objects/",
        refused(f"{HOME}/x/worktrees/y"),
    ),
    "worktree whose back pointer names another checkout": (
        WORKTREE.replace("shop/gitdir: ~/shop/.git", "shop/gitdir: ~/elsewhere/.git") + "~/elsewhere/.git",
        refused(f"{HOME}/main/.git/worktrees/shop"),
    ),
    "worktree whose common directory is elsewhere": (
        WORKTREE.replace("commondir: ../..", "commondir: ~/.ssh") + "~/.ssh/id_rsa",
        refused(f"{HOME}/main/.git/worktrees/shop"),
    ),
    "worktree without objects": (
        WORKTREE.replace("~/main/.git/objects/", ""),
        refused(f"{HOME}/main/.git/worktrees/shop"),
    ),
    "submodule of another work tree": (
        """
            ~/shop/.git: gitdir: ~/other/.git/modules/x\\n
            ~/other/.git/modules/x/config: [core]\\n\\tworktree = ../../../x\\n
            ~/other/x/
        """,
        refused(f"{OTHER}/modules/x"),
    ),
    "submodule without a work tree": (
        "~/shop/.git: gitdir: ~/other/.git/modules/x\\n\n~/other/.git/modules/x/config: [core]\\n",
        refused(f"{OTHER}/modules/x"),
    ),
    "symlink to another repository": (
        "~/shop/.git -> ../other/.git\n~/other/.git/objects/",
        Repository(
            trouble=f".git leads to {OTHER}, outside the project", remedy=f"if you trust that: --mount-rw {OTHER}"
        ),
    ),
    "symlink to the SSH keys": (
        "~/shop/.git -> ../.ssh\n~/.ssh/id_rsa",
        Repository(
            trouble=f".git leads to {HOME}/.ssh, outside the project",
            remedy=f"if you trust that: --mount-rw {HOME}/.ssh",
        ),
    ),
    "dangling symlink": ("~/shop/.git -> nowhere", Repository(trouble=f"{SHOP}/.git names no directory that exists")),
    "symlink to itself": ("~/shop/.git -> .git", Repository(trouble=f"{SHOP}/.git names no directory that exists")),
    "empty file": ("~/shop/.git", Repository(trouble=f"{SHOP}/.git names no directory that exists")),
    "file with something else": (
        "~/shop/.git: /etc\\n",
        Repository(trouble=f"{SHOP}/.git names no directory that exists"),
    ),
    "file that names a file": (
        "~/shop/.git: gitdir: ~/notes\\n\n~/notes",
        Repository(trouble=f"{SHOP}/.git names no directory that exists"),
    ),
}


@pytest.mark.req("GIT-03")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_claim_gets_nothing(name: str, tmp_path: Path) -> None:
    description, expected = HOSTILE[name]
    assert look(tmp_path, description) == expected


def test_fifo_instead_of_git_does_not_block(tmp_path: Path) -> None:
    plant(tmp_path, "~/shop/")
    os.mkfifo(tmp_path / "home/alice/shop/.git")
    assert find_repository(Tree(str(tmp_path)), SHOP).outside == ""


@pytest.mark.req("GIT-03")
def test_submodules_are_found_whatever_they_are_called(tmp_path: Path) -> None:
    """Names have slashes, and one may be called like a file that makes the directory above it a repository."""
    names = ("plain", "a/b", "a/HEAD", "c/config", "half/whole", "plain/objects")
    parts = [f"{name}/{part}" for name in names for part in ("HEAD", "objects/x")]
    tree = plant(tmp_path, "\n".join(f"~/shop/.git/modules/{part}" for part in (*parts, "half/config", "bare/HEAD")))
    modules = f"{SHOP}/.git/modules"
    found = {path.removeprefix(f"{modules}/") for path in find_submodules(tree, modules)}
    assert found == {*names, "c", "half"}
