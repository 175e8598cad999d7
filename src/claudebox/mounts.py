"""The order of mounts, and who wins: `hide` beats every grant, then the more specific path, then the later one."""

from __future__ import annotations

from claudebox.host.tree import Tree
from claudebox.model import (
    FROM_HOST,
    UNSEEN,
    Mount,
)
from claudebox.paths import (
    is_inside,
    move,
)
from claudebox.places import is_systems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

USERS = "/run/user/"  # a part of the system's trees, but the user's own


def arrange(mounts: Iterable[Mount], hides: Iterable[Mount] = ()) -> tuple[Mount, ...]:
    """One mount for each path, parents first. `hides` name places of the box."""
    by_path: dict[str, Mount] = {}
    for mount in mounts:
        by_path.pop(mount.path, None)
        by_path[mount.path] = mount
    hidden: list[str] = []
    for hide in sorted(hides, key=depth):
        if any(is_inside(hide.path, above) for above in hidden):
            continue
        hidden.append(hide.path)
        for path in [path for path in by_path if is_inside(path, hide.path)]:
            del by_path[path]
        by_path[hide.path] = hide
    return tuple(sorted(by_path.values(), key=depth))


def depth(mount: Mount) -> int:
    return 0 if mount.path == "/" else mount.path.count("/")


def appearances(host_path: str, mounts: Iterable[Mount]) -> list[str]:
    """Every path in the box at which a place of the host would appear."""
    return [
        move(host_path, mount.source, mount.path)
        for mount in mounts
        if mount.kind in FROM_HOST and is_inside(host_path, mount.source)
    ]


def holder(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that decides what is at `path` of the box: the most specific one above it."""
    above = [mount for mount in mounts if is_inside(path, mount.path)]
    return max(above, key=depth, default=None)


def identified(tree: Tree, mounts: Iterable[Mount], state: str) -> tuple[Mount, ...]:
    """With what each source is: while the box starts, an agent in another one may put something else in its place."""
    return tuple(
        mount.replace(identity=_identity(tree, mount.source, state)) if _is_within_reach(mount) else mount
        for mount in mounts
    )


def _is_within_reach(mount: Mount) -> bool:
    source = mount.source
    return mount.kind in FROM_HOST and (not is_systems(source) or source.startswith(USERS))


def _identity(tree: Tree, source: str, state: str) -> tuple[int, int]:
    status = tree.lstat(source)
    # The state is prepared just before the launch: what is of the wrong kind is replaced, and files are written anew.
    return UNSEEN if status is None or is_inside(source, state) else (status.st_dev, status.st_ino)
