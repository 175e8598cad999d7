"""Where the box would show what somebody wants hidden, under whatever name."""

from __future__ import annotations

import posixpath

from claudebox.host.tree import Tree
from claudebox.model import (
    FROM_HOST,
    HIDE,
    Mount,
)
from claudebox.mounts import (
    appearances,
)
from claudebox.paths import (
    expand_home,
    is_below,
    is_inside,
)
from claudebox.problem import Problem
from claudebox.settings.values import (
    PROJECT_FILE,
    Named,
)


def hides_asked_for(tree: Tree, hides: tuple[Named, ...], cwd: str, home: str, mounts: list[Mount]) -> list[Mount]:
    """Where the box would show what shall be hidden, under whatever name."""
    found: list[Mount] = []
    for hide in hides:
        named = named_path(hide.path, cwd, home)
        real = tree.resolve(named)
        if is_inside(cwd, named) or (real is not None and is_inside(cwd, real)):
            raise Problem(f"{hide.origin.rule}: {named} is or holds the project itself", "hide something in it")
        if real is not None:
            is_dir, within_reach = tree.is_dir(real), [mount for mount in mounts if _may_hide(hide, mount)]
            found += [Mount(HIDE, path, hide.origin, is_dir=is_dir) for path in appearances(real, within_reach)]
            # A part of it may be shown without the rest.
            parts = [mount for mount in within_reach if mount.kind in FROM_HOST and is_below(mount.source, real)]
            found += [Mount(HIDE, part.path, hide.origin, is_dir=tree.is_dir(part.source)) for part in parts]
    return found


def _may_hide(hide: Named, mount: Mount) -> bool:
    """A project may not hide the user's configuration of Claude, nor a policy: it would allow what that forbids."""
    return mount.origin.rule != "claude" or not hide.origin.rule.startswith(f"{PROJECT_FILE}:")


def named_path(path: str, cwd: str, home: str) -> str:
    return posixpath.normpath(posixpath.join(cwd, expand_home(path, home)))
