"""What is said where the kernel refuses a protection, or is unknown."""

from __future__ import annotations

import pytest

from claudebox.launch import keyring, landlock, namespaces
from claudebox.problem import FAILED
from errors.scene import Problems, Scene, Stage


def no_proc_of_its_own(scene: Scene) -> None:
    scene.monkeypatch.setattr(namespaces, "is_restricted", lambda: False)
    scene.monkeypatch.setattr(namespaces, "c_function", lambda _: lambda *_: -1)
    namespaces._renew_proc()


def unknown_architecture(scene: Scene) -> None:
    scene.machine.architecture = "riscv64"
    scene.plan()


def scopes_refused(scene: Scene) -> None:
    def refuse(number: int, *_: object) -> int:
        return landlock.SCOPES_SINCE if number == landlock.CREATE_RULESET and _[-1] == landlock.ASK_VERSION else -1

    scene.monkeypatch.setattr(landlock, "_system_call", lambda: refuse)
    landlock.scope_to_box()


def keyring_refused(scene: Scene) -> None:
    def refuse(_: int, what: int, *__: int) -> int:
        return -1 if what == keyring.JOIN_SESSION else 1

    scene.monkeypatch.setattr(keyring, "c_function", lambda _: refuse)
    keyring.leave_session_keyring()


def userns_as_root(scene: Scene) -> None:
    scene.machine.uid = 0
    scene.plan("--userns", "on")


PROBLEMS: Problems = {
    "keyring-refused": (keyring_refused, FAILED),
    "scopes-refused": (scopes_refused, FAILED),
    "machine-unknown": (unknown_architecture, FAILED),
    "userns-as-root": (userns_as_root, FAILED),
    "namespace-proc": (no_proc_of_its_own, FAILED),
}


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_says_exactly_this(name: str, stage: Stage) -> None:
    stage.check("kernel", name, *PROBLEMS[name])
