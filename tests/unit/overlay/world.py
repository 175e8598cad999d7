"""A project and a layer over it, made by hand as the kernel would make it."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from claudebox.overlay import store
from claudebox.overlay.changes import OPAQUE, Change
from claudebox.overlay.landing import land, recover
from claudebox.overlay.store import Layer

Picture = dict[str, tuple[int, str]]


@dataclass
class World:
    """What the tests look at."""

    project: Path
    place: str
    layer: Layer

    @property
    def upper(self) -> Path:
        return Path(self.layer.upper)

    def changes(self) -> list[Change]:
        return list(self.layer.read().changes)

    def kinds(self) -> dict[str, str]:
        return {change.path: change.kind for change in self.changes()}

    def land(self, *paths: str) -> None:
        now = time.time_ns()
        chosen = [change for change in self.changes() if not paths or change.path in paths]
        self.layer = land(self.layer, chosen, now)

    def recover(self) -> None:
        self.layer = recover(self.again().layer)

    def again(self) -> World:
        """The same, as another process finds it on the disk."""
        layer = store.load(self.place, self.layer.number)
        assert layer is not None
        return World(self.project, self.place, layer)

    def write(self, name: str, text: str = "new\n", mode: int = 0o644) -> Path:
        """Write something into the layer, as the box would."""
        path = self.upper / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def whiteout(self, name: str) -> None:
        path = self.upper / name
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mknod(path, stat.S_IFCHR, 0)

    def opaque(self, name: str) -> Path:
        path = self.upper / name
        path.mkdir(parents=True)
        os.setxattr(path, OPAQUE, b"y")
        return path


def make_world(directory: Path, files: dict[str, str]) -> World:
    project = directory / "project"
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    project.mkdir(exist_ok=True)
    wait_for_the_clock()
    place = str(directory / "state" / "layers")
    world = World(project, place, store.make_layer(place, str(project), ""))
    wait_for_the_clock()
    return world


def wait_for_the_clock() -> None:
    """Files are stamped by a clock that ticks every few milliseconds: what follows has to be later."""
    # The clock of files ticks, and may be behind by more than one tick.
    start = time.time_ns()
    while time.clock_gettime_ns(store.CLOCK) <= start:
        pass


def picture(directory: Path) -> Picture:
    """Everything below a directory: mode, and content or target."""
    found: Picture = {}
    for above, names, files in os.walk(directory):
        for name in (*names, *files):
            path = Path(above, name)
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                content = path.read_bytes().decode(errors="replace")
            else:
                content = ""
            found[str(path.relative_to(directory))] = (status.st_mode, content)
    return found
