"""What is said of bwrap, and of what else starts the box."""

from __future__ import annotations

from claudebox.errors import CANNOT_EXECUTE, FAILED
from claudebox.model import Launch
from claudebox.sandbox import launch
from errors.scene import Problems, Scene, program_from_the_project


def setuid_bwrap(scene: Scene) -> None:
    (scene.machine.root / "usr/bin/bwrap").chmod(0o4755)
    scene.plan()


def setuid_bwrap_before_another(scene: Scene) -> None:
    scene.planted("/opt/bin/bwrap*").with_environ(PATH="/usr/bin:/opt/bin")
    setuid_bwrap(scene)


def neither_env_nor_python(scene: Scene) -> None:
    scene.without("/usr/bin/env").planted("/usr/bin/busybox*\n/usr/bin/env -> busybox")
    scene.machine.python = "/home/alice/.pyenv/bin/python3"
    scene.plan()


def bwrap_gone_at_the_last_moment(scene: Scene) -> None:
    # The test's own descriptors and signals have to survive.
    scene.monkeypatch.setattr(launch, "close_all_but", lambda _: None)
    scene.monkeypatch.setattr(launch, "_set_signals", lambda: None)
    launch.become_bwrap(Launch(scene.machine.plan().replace(bwrap="/nonexistent/bwrap")), [], [])


PROBLEMS: Problems = {
    "bwrap-missing": (lambda scene: scene.without("/usr/bin/bwrap").plan(), FAILED),
    "bwrap-named-missing": (lambda scene: scene.with_environ(CLAUDEBOX_BWRAP="/opt/bwrap").plan(), FAILED),
    "bwrap-in-project": (program_from_the_project("bwrap"), FAILED),
    "bwrap-setuid": (setuid_bwrap, FAILED),
    "bwrap-setuid-before-another": (setuid_bwrap_before_another, FAILED),
    "bwrap-gone": (bwrap_gone_at_the_last_moment, CANNOT_EXECUTE),
    "shim-missing": (neither_env_nor_python, FAILED),
}
