"""What is said of the demonstration, of the proof, and of claudebox's own mistakes."""

from __future__ import annotations

from claudebox import cli
from claudebox.commands import demo, prove
from claudebox.commands.prove import Silent
from claudebox.errors import FAILED
from errors.scene import Problems, Scene
from saying import parse


def probe_that_fails(scene: Scene, *said: str) -> None:
    """Outside of the box, or in it: one of the two says nothing of use."""
    reasons = iter(said)

    def attempt(*_: object) -> dict[str, str]:
        if reason := next(reasons):
            raise Silent(reason)
        return {}

    scene.monkeypatch.setattr(prove, "read_host", scene.machine.host)
    scene.monkeypatch.setattr(prove, "plan_attacks", lambda *_, **__: None)
    for name in ("run_outside", "run_inside"):
        scene.monkeypatch.setattr(prove, name, attempt)
    prove.prove(parse(["--prove"]))


def own_failure(_: Scene) -> None:
    raise cli.own_failure(ZeroDivisionError("division by zero"))


def demo_without_git(scene: Scene) -> None:
    scene.monkeypatch.setattr(demo, "trusted_program", lambda *_: "")
    scene.monkeypatch.setattr(demo, "install_command", lambda *_: "sudo apt install git")
    demo.run_demo(parse(["--demo"]))


PROBLEMS: Problems = {
    "demo-without-git": (demo_without_git, FAILED),
    "own-failure": (own_failure, FAILED),
    "prove-not-outside": (lambda scene: probe_that_fails(scene, "no such file"), FAILED),
    "prove-not-inside": (lambda scene: probe_that_fails(scene, "", "bwrap: no such file (status 1)"), FAILED),
}
