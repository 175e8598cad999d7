"""What is said of Claude's login."""

from __future__ import annotations

import os

import pytest

from claudebox.features.login import act
from claudebox.features.login import exchange as login
from claudebox.model import Login
from claudebox.problem import FAILED
from errors.scene import Problems, Scene, Stage, old_kernel


def login_not_handed_over(scene: Scene) -> None:
    directory = str(scene.machine.root / "gone" / "auth")
    scene.monkeypatch.setattr(login, "exchange", lambda _: os.stat("/nonexistent"))
    act.keep_in_step(Login("/home/alice/.claude/.credentials.json", directory, "/nonexistent/own", "/run/auth"))


def login_on_old_kernel(scene: Scene) -> None:
    old_kernel(scene).monkeypatch.setattr(act, "is_current", lambda _: True)
    act.keep_in_step(Login("/home/alice/.claude/.credentials.json", "/nonexistent", "/nonexistent", "/run/auth"))


PROBLEMS: Problems = {
    "login-old-kernel": (login_on_old_kernel, FAILED),
    "auth-unknown": (lambda scene: scene.plan("--auth", "magic"), FAILED),
    "login-not-handed-over": (login_not_handed_over, FAILED),
}


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_says_exactly_this(name: str, stage: Stage) -> None:
    stage.check("login", name, *PROBLEMS[name])
