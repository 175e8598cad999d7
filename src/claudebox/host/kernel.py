"""Whether this kernel may refuse to make a box. Each start asks, which is cheap; only a trial gives a sure answer."""

from __future__ import annotations

from claudebox.host.tree import Tree

APPARMOR_SWITCH = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
APPARMOR_PROFILE = "/etc/apparmor.d/bwrap-userns-restrict"
CLONE_SWITCH = "/proc/sys/kernel/unprivileged_userns_clone"
NAMESPACE_LIMIT = "/proc/sys/user/max_user_namespaces"
CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")


def doubts_namespaces(tree: Tree, bwrap: str) -> bool:
    return is_container(tree) or is_restricted(tree, bwrap) or is_switched_off(tree) or is_limited(tree)


def is_restricted(tree: Tree, bwrap: str) -> bool:
    """Whether AppArmor keeps this bwrap from using user namespaces: on Ubuntu, only programs with a profile may."""
    has_profile = bwrap == "/usr/bin/bwrap" and tree.exists(APPARMOR_PROFILE)
    return _value(tree, APPARMOR_SWITCH) == "1" and not has_profile


def keeps_namespaces_from_us(tree: Tree, uid: int) -> bool:
    """Whether AppArmor keeps user namespaces from claudebox itself, which has no profile, as bwrap may have."""
    return uid != 0 and _value(tree, APPARMOR_SWITCH) == "1"


def is_switched_off(tree: Tree) -> bool:
    return _value(tree, CLONE_SWITCH) == "0"


def is_limited(tree: Tree) -> bool:
    return _value(tree, NAMESPACE_LIMIT) == "0"


def is_container(tree: Tree) -> bool:
    """Whether this is a container that filters system calls or masks parts of /proc. Others are like any machine."""
    if all(tree.lstat(mark) is None for mark in CONTAINER_MARKS):
        return False
    is_filtered = "Seccomp:\t0" not in (tree.text("/proc/self/status") or "")
    return is_filtered or " /proc/" in (tree.text("/proc/self/mountinfo") or "")


def _value(tree: Tree, path: str) -> str:
    return (tree.text(path) or "").strip()
