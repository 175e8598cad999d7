"""What is said of the Nix store and its daemon."""

from __future__ import annotations

import pytest

from claudebox import cli
from claudebox.features.nix import ask_closure as nix_closure
from claudebox.features.nix import try_builds as nix_trial
from claudebox.model import (
    Nix,
    Origin,
)
from claudebox.problem import FAILED
from claudebox.settings.values import merge
from claudebox.settings.words import parse
from errors.scene import Problems, Scene, Stage
from hosts.machine import EVERYONE, Machine


def store_that_changes(scene: Scene) -> None:
    """While Nix was asked about it."""
    nix = Nix("private", "", Origin("--nix"), roots=("/nix/store/x",))
    plan = scene.machine.plan().replace(nix=nix)
    scene.monkeypatch.setattr(nix_closure, "look_up_closure", lambda *_: None)
    scene.monkeypatch.setattr(cli, "make_plan", lambda *_: plan)
    cli.ask_nix(scene.machine.host(), parse([]), merge([]), plan)


def daemon_that_changes(scene: Scene) -> None:
    """While it was tried."""
    plan = scene.machine.plan().replace(nix=Nix("daemon", "", Origin("default"), needs_trial=True))
    scene.monkeypatch.setattr(nix_trial, "try_builds", lambda *_: None)
    scene.monkeypatch.setattr(cli, "make_plan", lambda *_: plan)
    cli.ask_nix(scene.machine.host(), parse([]), merge([]), plan)


def store_without_nix(scene: Scene) -> None:
    scene.without("/usr/bin/git").with_environ(PATH="/opt/nothing")
    nix_closure.look_up_closure(scene.machine.host(), ("/nix/store/x",))


def nix_without_programs(scene: Scene) -> None:
    machine = Machine(scene.machine.root / "nix-host", environ={"PATH": "/opt/bin"})
    machine.plant("/nix/store/x/\n/opt/bin/bwrap*\n/usr/bin/env*").plant(EVERYONE.read_text()).plan()


PROBLEMS: Problems = {
    "nix-closure-without-nix": (store_without_nix, FAILED),
    "nix-closure-changed": (store_that_changes, FAILED),
    "nix-daemon-changed": (daemon_that_changes, FAILED),
    "nix-no-daemon": (lambda scene: scene.planted("/nix/store/x/").plan("--nix", "daemon"), FAILED),
    "nix-no-store": (lambda scene: scene.plan("--nix", "store"), FAILED),
    "nix-without-programs": (nix_without_programs, FAILED),
}


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_says_exactly_this(name: str, stage: Stage) -> None:
    stage.check("nix", name, *PROBLEMS[name])
