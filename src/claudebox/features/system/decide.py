"""The programs of the system, and the empty places that every box has."""

from __future__ import annotations

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.host.system import System
from claudebox.host.tree import Tree
from claudebox.model import (
    DEV,
    PROC,
    RO,
    SYMLINK,
    TMPFS,
    Directory,
    Mount,
    Origin,
    Person,
)
from claudebox.paths import is_inside

BOX = Origin("box", "made for this box, gone when it ends")
SYSTEM = Origin("system", "programs and libraries of this system")

ROOT_TREES = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")


def system_mounts(tree: Tree, system: System) -> list[Mount]:
    mounts: list[Mount] = []
    if not system.is_nix:
        mounts.append(Mount(RO, "/usr", SYSTEM, source="/usr"))
        mounts += _local_tree(tree)
        for path in ROOT_TREES:
            mounts += _root_tree(tree, path)
    else:
        mounts += [_shell_link(tree, path) for path in ("/bin/sh", "/usr/bin/env") if tree.exists(path)]
    return mounts


def _local_tree(tree: Tree) -> list[Mount]:
    """/usr/local, where that is a symlink out of /usr (Fedora Silverblue)."""
    real = tree.resolve("/usr/local") if tree.is_link("/usr/local") else None
    return [Mount(RO, real, SYSTEM, source=real)] if real and not is_inside(real, "/usr") else []


def _root_tree(tree: Tree, path: str) -> list[Mount]:
    """/bin and its like: a symlink where /usr is merged, a directory where not."""
    if tree.is_link(path):
        return [Mount(SYMLINK, path, SYSTEM, source=tree.link_target(path))]
    return [Mount(RO, path, SYSTEM, source=path)] if tree.is_dir(path) else []


def _shell_link(tree: Tree, path: str) -> Mount:
    """NixOS has just two programs outside of the store, for `#!` lines."""
    return Mount(SYMLINK, path, SYSTEM, source=tree.resolve(path) or path)


def empty_places(person: Person) -> list[Mount]:
    """Writable and empty at each start."""
    run = f"/run/user/{person.uid}"
    return [
        Mount(PROC, "/proc", BOX),
        Mount(DEV, "/dev", BOX),
        Mount(TMPFS, "/tmp", BOX, mode=0o1777),
        Mount(TMPFS, "/var/tmp", BOX, mode=0o1777),
        Mount(TMPFS, run, BOX, mode=0o700),
        Mount(TMPFS, person.home, BOX, mode=0o700),
    ]


def home_links(tree: Tree, named_home: str) -> list[Mount]:
    """The symlinks by which the home is known, such as /home -> var/home."""
    return [Mount(SYMLINK, link, BOX, source=target) for link, target in tree.links(named_home)] if named_home else []


def decide(facts: Facts, _: Draft) -> Contribution:
    return Contribution(
        mounts=(
            Mount(TMPFS, "/", BOX),
            *empty_places(facts.person),
            *home_links(facts.tree, facts.host.environ.get("HOME", "")),
            *system_mounts(facts.tree, facts.system),
        ),
        path=tuple(Directory(path, Directory.SYSTEM) for path in facts.system.path),
    )
