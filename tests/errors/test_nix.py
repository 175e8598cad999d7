"""What is said of the Nix store and its daemon."""

from __future__ import annotations

from claudebox import start
from claudebox.errors import FAILED
from claudebox.features.nix import NIX_FEATURE
from claudebox.features.nix import asking as asking_nix
from claudebox.model import Question
from errors.scene import Problems, Scene
from hosts.machine import EVERYONE, Machine


def box_that_is_never_known(scene: Scene) -> None:
    """What Nix is asked about changes each time."""
    plan = scene.machine.plan().replace(unknown=(Question(NIX_FEATURE, "always the same"),))
    scene.monkeypatch.setattr(start, "decide", lambda _: plan)
    scene.monkeypatch.setattr(asking_nix, "find_out", lambda facts, _: facts)
    start.plan_until_known(scene.machine.facts())


def store_without_nix(scene: Scene) -> None:
    scene.without("/usr/bin/git").with_environ(PATH="/opt/nothing")
    asking_nix.look_up_closure(scene.machine.host(), ("/nix/store/x",))


def nix_without_programs(scene: Scene) -> None:
    machine = Machine(scene.machine.root / "nix-host", environ={"PATH": "/opt/bin"})
    machine.plant("/nix/store/x/\n/opt/bin/bwrap*\n/usr/bin/env*").plant(EVERYONE.read_text()).plan()


PROBLEMS: Problems = {
    "nix-closure-without-nix": (store_without_nix, FAILED),
    "nix-always-changes": (box_that_is_never_known, FAILED),
    "nix-no-daemon": (lambda scene: scene.planted("/nix/store/x/").plan("--nix", "daemon"), FAILED),
    "nix-no-store": (lambda scene: scene.plan("--nix", "store"), FAILED),
    "nix-without-programs": (nix_without_programs, FAILED),
}
