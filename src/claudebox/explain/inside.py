"""Follows a path as a program in the box would, using only the mounts and the host's files."""

from __future__ import annotations

from claudebox.host.tree import MOST_LINKS, Tree
from claudebox.model import DEV, FILE, FROM_HOST, PROC, RO, RW, SYMLINK, TMPFS, WRITABLE, Mount
from claudebox.mounts import find_holder
from claudebox.paths import is_below, move
from claudebox.record import Record

# What bwrap puts into /dev. The other devices of the host are missing.
DEVICES = frozenset("null zero full random urandom tty console stdin stdout stderr fd core shm pts ptmx".split())


class Spot(Record):
    """Where a path leads to in the box."""

    path: str  # without symlinks
    mount: Mount  # the one that decides what is there
    exists: bool
    access: str
    host: str = ""  # the path on the host, if the host's file is shown there
    links: tuple[str, ...] = ()  # symlinks in the box that led here


class Inside:
    """The files of a box."""

    def __init__(self, tree: Tree, mounts: tuple[Mount, ...]) -> None:
        self.tree = tree
        self.mounts = mounts
        self.by_path = {mount.path: mount for mount in mounts}

    def find(self, path: str) -> Spot:
        waiting = _parts(path)
        links: list[str] = []
        here = ""
        while waiting:
            part = waiting.pop()
            if part == "..":
                here = here.rpartition("/")[0]
                continue
            here = f"{here}/{part}"
            target = self._link_target(here)
            if target and len(links) < MOST_LINKS:
                links.append(here)
                waiting += _parts(target)
                here = "" if target.startswith("/") else here.rpartition("/")[0]
            elif target or not self._at(here).exists:
                rest = "/".join([here, *reversed(waiting)])
                return self._at(rest).replace(exists=False, links=tuple(links))
        return self._at(here or "/").replace(links=tuple(links))

    def _link_target(self, path: str) -> str:
        """What a symlink of the box says; "" for anything else."""
        mount = self._holder(path)
        if mount.kind == SYMLINK:
            return mount.source
        if mount.path == path or mount.kind not in FROM_HOST:
            return ""
        on_host = move(path, mount.path, mount.source)
        return self.tree.link_target(on_host) if self.tree.is_link(on_host) else ""

    def _at(self, path: str) -> Spot:
        mount = self._holder(path)
        host = move(path, mount.path, mount.source) if mount.kind in FROM_HOST else ""
        return Spot(path, mount, self._exists(path, mount, host), self._access(path, mount), host)

    def _exists(self, path: str, mount: Mount, host: str) -> bool:
        # bwrap makes the directories on the way to a mount.
        if mount.path == path or any(is_below(other.path, path) for other in self.mounts):
            return True
        below = path.removeprefix(mount.path).strip("/").split("/")[0]
        if mount.kind == DEV:
            return below in DEVICES
        if mount.kind == PROC:
            return not below.isdigit() and self.tree.lstat(path) is not None
        return bool(host) and self.tree.lstat(host) is not None

    def _access(self, path: str, mount: Mount) -> str:
        if mount.kind == FILE:
            above = find_holder(path, [other for other in self.mounts if other.kind == TMPFS])
            return self._access(path, above) if above else RO
        # bwrap makes the root read-only once everything is in it.
        return RW if mount.kind in (*WRITABLE, DEV, PROC) or (mount.kind == TMPFS and mount.path != "/") else RO

    def _holder(self, path: str) -> Mount:
        found = find_holder(path, self.mounts)
        assert found is not None, "a box has a root"
        return found


def _parts(path: str) -> list[str]:
    """The parts of a path in reverse, so that `pop` takes the first one."""
    return [part for part in path.split("/") if part and part != "."][::-1]
