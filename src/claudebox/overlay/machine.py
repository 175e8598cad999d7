"""Whether this machine can lay layers over directories, as far as that can be told before it is tried."""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.host.system import keeps_namespaces_from_us
from claudebox.host.tree import Tree
from claudebox.paths import is_inside
from claudebox.state import SHOWN, State

MOUNTS = "/proc/self/mountinfo"
FILESYSTEMS = "/proc/filesystems"
RELEASE = "/proc/sys/kernel/osrelease"
OVERLAY = "overlay"
TMPFS = "tmpfs"
# File systems that are known to hold the changes of a layer. Of another one, only a trial tells.
PROVEN = ("ext2", "ext3", "ext4", "xfs", "btrfs", TMPFS, "f2fs", "bcachefs")
SINCE = (5, 11)  # an ordinary user may mount an overlay
TMPFS_SINCE = (6, 6)  # its files have attributes of users
WITHOUT = "without it, changes reach this host at once: --review off"
WALLS = "without layers, what this host runs is read-only: --review off"


def find_obstacle(tree: Tree, uid: int, state: State) -> Problem | None:
    """What makes a layer impossible for certain."""
    if keeps_namespaces_from_us(tree, uid):
        return Problem(
            "a layer needs a namespace that claudebox makes, and AppArmor forbids it here",
            "to allow it: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        )
    if _kind_of_state(tree, state) == OVERLAY:
        return Problem(
            f"{state.directory} is on an overlay itself, as in a container: no layer can be there",
            f"give the container a volume for {state.directory}",
        )
    return None


def find_doubt(tree: Tree, uid: int, state: State) -> str:
    """Why a box that nobody asked to have a layer does better without; "" if nothing speaks against it.

    Such a box has to start, so it tries only what is known to work.
    """
    obstacle = find_obstacle(tree, uid, state)
    if obstacle is not None:
        return obstacle.message
    release, kind = (tree.text(RELEASE) or "").strip(), _kind_of_state(tree, state)
    version = _version(release)
    if version and version < SINCE:
        return f"Linux {release} has no layers for ordinary users"
    # A module is loaded when somebody mounts one. A kernel without modules has it in the list, or not at all.
    has_overlay = OVERLAY in (tree.text(FILESYSTEMS) or OVERLAY).split()
    if not has_overlay and not tree.entries(f"/lib/modules/{release}/kernel/fs/overlayfs"):
        return "this kernel has no overlay file system: sudo modprobe overlay"
    if kind and kind not in PROVEN:
        return f"{SHOWN.directory} is on {kind}, which may not hold a layer"
    if kind == TMPFS and version and version < TMPFS_SINCE:
        return f"{SHOWN.directory} is on tmpfs, which can hold a layer since Linux 6.6"
    return ""


def _version(release: str) -> tuple[int, ...]:
    numbers = release.split(".")[:2]
    return tuple(map(int, numbers)) if len(numbers) == 2 and all(map(str.isdecimal, numbers)) else ()


def _kind_of_state(tree: Tree, state: State) -> str:
    """The kind of the file system that holds the state. Of several mounts at one place, the last one is on top."""
    path = tree.resolve(state.directory) or state.home
    holding = [
        (len(place), number, kind) for number, (place, kind) in enumerate(read_mounts(tree)) if is_inside(path, place)
    ]
    return max(holding)[2] if holding else ""


def read_mounts(tree: Tree) -> list[tuple[str, str]]:
    """Each mount of this host: its path and the kind of its file system."""
    rows = [line.partition(" - ") for line in (tree.text(MOUNTS) or "").splitlines()]
    return [(_plain(place.split(" ")[4]), rest.split(" ")[0]) for place, _, rest in rows]


def _plain(path: str) -> str:
    for character in " \t\n\\":
        path = path.replace(f"\\{ord(character):03o}", character)
    return path
