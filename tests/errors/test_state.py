"""What is said of the state that claudebox keeps for a project."""

from __future__ import annotations

import errno
import os

from claudebox.commands import kept
from claudebox.errors import FAILED
from claudebox.files import prepare
from claudebox.host.tree import Tree
from claudebox.model import Preparation
from claudebox.state import Instance
from errors.scene import STATE_OF_SHOP, Problems, Scene
from saying import parse


def state_with(scene: Scene, name: str) -> None:
    """The state of the project holds this, and belongs to the user."""
    scene.machine.uid = os.getuid()
    scene.planted(f"{STATE_OF_SHOP}/{name}").plan()


def of_another(scene: Scene, name: str) -> None:
    lstat = Tree.lstat

    def belongs_to_bob(tree: Tree, path: str) -> os.stat_result | None:
        status = lstat(tree, path)
        return status and os.stat_result((*status[:4], 1001 if name in path else status[4], *status[5:]))

    scene.monkeypatch.setattr(Tree, "lstat", belongs_to_bob)
    scene.planted(f"{STATE_OF_SHOP}/claude/").plan()


def state_that_others_can_write(scene: Scene) -> None:
    scene.planted("~/.claudebox/")
    (scene.machine.root / "home/alice/.claudebox").chmod(0o707)
    scene.plan()


def state_cannot_be_written(scene: Scene) -> None:
    prepare((Preparation(Preparation.FILE, "/dev/null/state"),))


def refused_to_remove(scene: Scene) -> None:
    gone = kept.Listed(Instance("/x", ""), "/home/alice/gone", 0.0, kept.Size(0), True)
    scene.monkeypatch.setattr(kept, "find_instances", lambda _: [gone])
    scene.monkeypatch.setattr(kept, "show", lambda _: None)
    scene.monkeypatch.setattr(kept, "says_yes", lambda _: False)
    kept.tend_instances(parse(["--instances", "gc"]))


def failed_to_remove(scene: Scene) -> None:
    def refuse(_: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    scene.monkeypatch.setattr(kept, "remove_path", refuse)
    kept.remove("/nonexistent/instance")


PROBLEMS: Problems = {
    "instance-stays": (failed_to_remove, FAILED),
    "instances-not-removed": (refused_to_remove, FAILED),
    "state-of-0.2.0": (lambda scene: scene.planted("~/.local/state/claudebox/places").plan(), FAILED),
    "settings-of-0.2.0": (lambda scene: scene.planted("~/.config/claudebox/config.toml").plan(), FAILED),
    "state-damaged": (lambda scene: state_with(scene, 'claude/.claude.json: {"half":'), FAILED),
    "state-nested": (lambda scene: state_with(scene, 'claude/.claude.json: {"a":' + "[" * 9000 + "}"), FAILED),
    "state-note-damaged": (lambda scene: state_with(scene, "writable-x: /home/ali"), FAILED),
    "state-no-directory": (lambda scene: scene.planted("~/.claudebox: a file").plan(), FAILED),
    "state-behind-a-symlink": (lambda scene: scene.planted("~/.claudebox -> /data\n/data/").plan(), FAILED),
    "state-of-another": (lambda scene: of_another(scene, "/instances"), FAILED),
    "settings-of-another": (lambda scene: of_another(scene, "/.claudebox"), FAILED),
    "state-open": (state_that_others_can_write, FAILED),
    "state-unreadable": (lambda scene: state_with(scene, "claude/.claude.json/"), FAILED),
    "state-unwritable": (state_cannot_be_written, FAILED),
}
