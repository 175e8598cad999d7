"""What is said of other agents than Claude, and of the strict box that `--setup` offers."""

from __future__ import annotations

import subprocess
from subprocess import CompletedProcess

from claudebox.commands import setup
from claudebox.errors import CANNOT_EXECUTE, FAILED, NOT_FOUND
from claudebox.settings.words import Request
from errors.scene import Problems, Scene, with_file

CODEX = ("--program", "codex")


def with_codex(scene: Scene, text: str = "ELF") -> Scene:
    return scene.planted(f"/usr/local/bin/codex*: {text}").with_environ(PATH="/usr/local/bin:/usr/bin")


def codex_of_the_project(scene: Scene) -> None:
    scene.planted("~/shop/bin/codex*: ELF\n/usr/local/bin/codex -> /home/alice/shop/bin/codex")
    scene.with_environ(PATH="/usr/local/bin:/usr/bin").plan(*CODEX)


def codex_in_a_secret_place(scene: Scene) -> None:
    scene.planted("~/.ssh/codex*: ELF\n/usr/local/bin/codex -> /home/alice/.ssh/codex")
    scene.with_environ(PATH="/usr/local/bin:/usr/bin").plan(*CODEX)


def set_up(scene: Scene, *, reason: str = "") -> None:
    scene.monkeypatch.setattr(setup, "read_host", scene.machine.host)
    done = CompletedProcess((), 1 if reason else 0, "", reason)
    scene.monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    setup.set_up(Request(mode="setup", yes=True))


PROBLEMS: Problems = {
    "agent-missing": (lambda scene: scene.plan(*CODEX), NOT_FOUND),
    "agent-without-its-interpreter": (lambda scene: with_codex(scene, "#!/opt/node").plan(*CODEX), CANNOT_EXECUTE),
    "agent-is-a-shim": (lambda scene: with_codex(scene, "exec asdf exec codex").plan(*CODEX), FAILED),
    "agent-from-the-project": (codex_of_the_project, FAILED),
    "agent-in-a-secret-place": (codex_in_a_secret_place, FAILED),
    "agent-with-the-broker": (lambda scene: with_codex(scene).plan("--auth", "broker", *CODEX), FAILED),
    "agent-without-state": (lambda scene: with_codex(scene).planted("~/.claudebox: a file").plan(*CODEX), FAILED),
    "setup-of-nothing": (lambda scene: set_up(scene, reason="no"), FAILED),
    "setup-beside-a-file": (lambda scene: set_up(with_file(scene, 'network = "inet"')), FAILED),
}
