"""What is said of caches, of the room for temporary files, and of removing what claudebox keeps."""

from __future__ import annotations

import os

from claudebox.commands import kept
from claudebox.errors import FAILED
from claudebox.features.caches import Cache
from claudebox.features.caches import places as act
from claudebox.model import Launch
from claudebox.state import Instance, State
from errors.scene import Problems, Scene
from saying import parse

KEPT = "/home/alice/.claudebox"


def refused_by_apparmor(scene: Scene) -> None:
    scene.planted("/proc/sys/kernel/apparmor_restrict_unprivileged_userns: 1").plan("--cache", "host")


def cannot_lie_underneath(scene: Scene) -> None:
    made = scene.machine.root / "cache"
    made.mkdir()
    plan = scene.machine.plan("--run", "true")
    launch = Launch(plan.having(Cache(str(made), str(made), str(made), (("/home/alice/.npm", "npm"),))))
    launch.keep(act.Over(is_ours=True))
    act.mount(launch)


def refused_to_drop(scene: Scene) -> None:
    full = kept.Listed(Instance("/x", ""), "/home/alice/shop", 0.0, kept.Size(0), False, cache=kept.Size(1 << 30))
    scene.monkeypatch.setattr(kept, "find_instances", lambda _: [full])
    scene.monkeypatch.setattr(kept, "show", lambda _: None)
    scene.monkeypatch.setattr(kept, "says_yes", lambda _: False)
    kept.tend_instances(parse(["--instances", "drop-caches"]))


def old_bwrap(scene: Scene) -> None:
    scene.planted("/opt/bwrap*: \x7fELF without that option").with_environ(CLAUDEBOX_BWRAP="/opt/bwrap")
    scene.plan("--tmp-size", "1G")


def uninstalled(scene: Scene, kind: str, *, running: tuple[int, ...] = ()) -> None:
    """What is looked at in the place of Alice's state is something of this test."""
    stand_in = scene.machine.root / "stand-in"
    stand_in.symlink_to("/nowhere") if kind == "link" else stand_in.touch() if kind == "file" else stand_in.mkdir()
    host, lstat = scene.machine.host(), os.lstat
    own = host.replace(person=host.person.replace(uid=os.getuid()))
    scene.monkeypatch.setattr(os, "lstat", lambda path, **how: lstat(stand_in if path == KEPT else path, **how))
    scene.monkeypatch.setattr(os.path, "realpath", lambda _: "/home/alice/elsewhere")
    scene.monkeypatch.setattr(kept, "read_host", lambda: own)
    scene.monkeypatch.setattr(kept, "_listing_of_all", lambda *_: "")
    scene.monkeypatch.setattr(kept, "find_instances", lambda _: [])
    scene.monkeypatch.setattr(kept, "_processes", lambda _: list(running))
    scene.monkeypatch.setattr(kept, "_is_claudebox", lambda _: True)
    scene.monkeypatch.setattr(kept, "show", lambda _: None)
    scene.monkeypatch.setattr(kept, "says_yes", lambda _: False)
    kept.uninstall(parse(["--uninstall"]))


def cannot_be_uninstalled(scene: Scene) -> None:
    def refuse(_: int) -> list[str]:
        raise OSError(13, os.strerror(13))

    scene.monkeypatch.setattr(os, "listdir", refuse)
    kept.remove(State("/home/alice").directory, from_within=True)


PROBLEMS: Problems = {
    "uninstall-without-permission": (cannot_be_uninstalled, FAILED),
    "uninstall-of-a-link": (lambda scene: uninstalled(scene, "link"), FAILED),
    "uninstall-of-a-file": (lambda scene: uninstalled(scene, "file"), FAILED),
    "uninstall-of-a-running-box": (lambda scene: uninstalled(scene, "directory", running=(1, 2)), FAILED),
    "uninstall-refused": (lambda scene: uninstalled(scene, "directory"), FAILED),
    "json-of-what-prints-none": (lambda _: parse(["--instances", "gc", "--json"]), FAILED),
    "cache-and-apparmor": (refused_by_apparmor, FAILED),
    "cache-without-state": (
        lambda scene: scene.planted("~/.claudebox: a file").plan("--cache", "project", "--run", "true"),
        FAILED,
    ),
    "cache-refused-by-the-kernel": (cannot_lie_underneath, FAILED),
    "cache-not-dropped": (refused_to_drop, FAILED),
    "tmp-size-with-an-old-bwrap": (old_bwrap, FAILED),
}
