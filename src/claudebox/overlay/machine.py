"""Whether this machine can lay layers over directories, as far as that can be told before it is tried."""

from __future__ import annotations

from claudebox.host.system import keeps_namespaces_from_us
from claudebox.host.tree import Tree
from claudebox.paths import is_inside
from claudebox.record import Record
from claudebox.state import SHOWN, State
from claudebox.state.memory import Form, recall, write

MOUNTS = "/proc/self/mountinfo"
RELEASE = "/proc/sys/kernel/osrelease"
OVERLAY = "overlay"
TMPFS = "tmpfs"
# File systems that are known to hold the changes of a layer. Of another one, only a trial tells.
PROVEN = ("ext2", "ext3", "ext4", "xfs", "btrfs", TMPFS, "f2fs", "bcachefs")
SINCE = (5, 11)  # an ordinary user may mount an overlay
TMPFS_SINCE = (6, 6)  # its files have attributes of users
REFUSED = Form(
    "The kernel refused a layer here, so boxes have guarded directories read-only. Remove this file to try again."
)


class Obstacle(Record):
    """Why there can be no layer."""

    message: str
    hint: str


class Ground(Record):
    """Where layers would be, and over what they would lie."""

    uid: int
    state: State
    project: str


def find_obstacle(tree: Tree, ground: Ground) -> Obstacle | None:
    """What makes a layer impossible for certain."""
    if keeps_namespaces_from_us(tree, ground.uid):
        return Obstacle(
            "a layer needs a namespace that claudebox makes, and AppArmor forbids it here",
            "to allow it: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        )
    if _kind_of_state(tree, ground) == OVERLAY:
        return Obstacle(
            f"{ground.state.directory} is on an overlay itself, as in a container: no layer can be there",
            f"give the container a volume for {ground.state.directory}",
        )
    return None


def find_doubt(tree: Tree, ground: Ground) -> str:
    """Why a box that nobody asked to have a layer does better without; "" if nothing speaks against it.

    Such a box has to start, so it tries only what is known to work.
    """
    obstacle = find_obstacle(tree, ground)
    if obstacle is not None:
        return obstacle.message
    release, kind = (tree.text(RELEASE) or "").strip(), _kind_of_state(tree, ground)
    version = _version(release)
    if version and version < SINCE:
        return f"Linux {release} has no layers for ordinary users"
    if kind and kind not in PROVEN:
        return f"{SHOWN.directory} is on {kind}, which may not hold a layer"
    if kind == TMPFS and version and version < TMPFS_SINCE:
        return f"{SHOWN.directory} is on tmpfs, which can hold a layer since Linux 6.6"
    if recall(tree, ground.state.layer_trial, REFUSED, ground.uid) == trial_lines(tree, ground):
        return f"the kernel has refused a layer here before (see {SHOWN.layer_trial})"
    return ""


def trial_lines(tree: Tree, ground: Ground) -> tuple[str, ...]:
    """What the kernel's answer depends on. With another kernel or another file system, it is worth another try."""
    devices = (tree.lstat(path) for path in (ground.state.home, ground.project))
    return ((tree.text(RELEASE) or "").strip(), *(str(status.st_dev) if status else "-" for status in devices))


def refusal(tree: Tree, ground: Ground) -> bytes:
    """What is written when the kernel has refused a layer."""
    return write(REFUSED, trial_lines(tree, ground))


def _version(release: str) -> tuple[int, ...]:
    numbers = release.split(".")[:2]
    return tuple(map(int, numbers)) if len(numbers) == 2 and all(map(str.isdecimal, numbers)) else ()


def _kind_of_state(tree: Tree, ground: Ground) -> str:
    return kind_at(read_mounts(tree), tree.resolve(ground.state.directory) or ground.state.home)


def read_mounts(tree: Tree) -> list[tuple[str, str]]:
    """Each mount of this host: its path and the kind of its file system."""
    found = []
    for line in (tree.text(MOUNTS) or "").splitlines():
        words = line.split(" ")
        if "-" in words and len(words) > words.index("-") + 1:
            found.append((_plain(words[4]), words[words.index("-") + 1]))
    return found


def _plain(path: str) -> str:
    for character in " \t\n\\":
        path = path.replace(f"\\{ord(character):03o}", character)
    return path


def kind_at(mounted: list[tuple[str, str]], path: str) -> str:
    """The kind of the file system that holds a path. Of several mounts at one place, the last one is on top."""
    holding = [(len(place), number, kind) for number, (place, kind) in enumerate(mounted) if is_inside(path, place)]
    return max(holding)[2] if holding else ""
