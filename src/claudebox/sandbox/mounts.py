"""The order of mounts, and which one wins: a hide beats every grant, then the more specific path, then the later."""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.host.secrets import is_systems
from claudebox.host.tree import Tree
from claudebox.model import FROM_HOST, HIDE, UNASKED, UNSEEN, WRITABLE, Mount, Origin
from claudebox.paths import absolute, is_below, is_inside, move, parents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from claudebox.settings import Word

USERS = "/run/user/"  # inside the system's trees, but the user can write there


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


def find_appearances(host_path: str, mounts: Iterable[Mount]) -> list[str]:
    """Every path in the box at which a place of the host would appear."""
    return [
        move(host_path, mount.source, mount.path)
        for mount in mounts
        if mount.kind in FROM_HOST and is_inside(host_path, mount.source)
    ]


def find_holder(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that decides what is at `path` of the box: the most specific one above it."""
    above = [mount for mount in mounts if is_inside(path, mount.path)]
    return max(above, key=depth, default=None)


def add_identities(tree: Tree, mounts: Iterable[Mount], state: str) -> tuple[Mount, ...]:
    """Note what each source is: while the box starts, an agent in another one may put something else in its place."""
    return tuple(
        mount.replace(identity=_identity(tree, mount.source, state)) if _is_within_reach(mount) else mount
        for mount in mounts
    )


def _is_within_reach(mount: Mount) -> bool:
    source = mount.source
    return mount.kind in FROM_HOST and (not is_systems(source) or source.startswith(USERS))


def _identity(tree: Tree, source: str, state: str) -> tuple[int, int]:
    status = tree.lstat(source)
    # The state is prepared just before the launch, which replaces files and everything that is of the wrong kind.
    return UNSEEN if status is None or is_inside(source, state) else (status.st_dev, status.st_ino)


PIN = Origin.of_rule("guard", "pinned: what is guarded in it stays where it is")


def pin_directories(mounts: tuple[Mount, ...], pins: Iterable[str]) -> tuple[Mount, ...]:
    """Bind every directory between a writable mount and something guarded in it onto itself, so that it stays there.

    What is guarded may lie in a directory that is hidden: then that one has to stay, or another could take its place.
    """
    by_path = {mount.path: mount for mount in mounts}
    for pin in pins:
        between: list[str] = []
        for above in parents(pin):
            base = by_path.get(above)
            if base is None:
                between.append(above)
            elif base.kind in WRITABLE:
                for path in between:
                    source = move(path, base.path, base.source)
                    by_path[path] = Mount(base.kind, path, PIN, source=source, consent=UNASKED)
                break
            else:
                between = []  # what lies below is in this mount, which stays where it is if all above it does
    return tuple(sorted(by_path.values(), key=depth))


def find_hides(tree: Tree, hides: tuple[Word, ...], cwd: str, home: str, mounts: Sequence[Mount]) -> list[Mount]:
    """A hide for every path at which the box would show something that has to stay hidden, under whatever name."""
    found: list[Mount] = []
    for hide in hides:
        named = absolute(hide.text, cwd, home)
        real = tree.resolve(named)
        if is_inside(cwd, named) or (real is not None and is_inside(cwd, real)):
            raise Problem(f"{hide.origin.shown}: {named} is or holds the project itself", "hide something in it")
        if real is not None:
            is_dir = tree.is_dir(real)
            within_reach = [mount for mount in mounts if _may_hide(hide, mount)]
            found += [Mount(HIDE, path, hide.origin, is_dir=is_dir) for path in find_appearances(real, within_reach)]
            # A part of it may be shown without the rest.
            parts = [mount for mount in within_reach if mount.kind in FROM_HOST and is_below(mount.source, real)]
            found += [Mount(HIDE, part.path, hide.origin, is_dir=tree.is_dir(part.source)) for part in parts]
    return found


def _may_hide(hide: Word, mount: Mount) -> bool:
    """A project may not hide the user's configuration of Claude, nor a policy: it would allow what that forbids."""
    return not mount.origin.is_rule("claude") or not hide.origin.is_projects
