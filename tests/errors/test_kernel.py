"""What is said where the kernel refuses a protection, or is unknown."""

from __future__ import annotations

from claudebox.errors import FAILED
from claudebox.process import isolation
from errors.scene import Problems, Scene


def no_proc_of_its_own(scene: Scene) -> None:
    scene.monkeypatch.setattr(isolation, "apparmor_forbids", lambda: False)
    scene.monkeypatch.setattr(isolation, "c_call", lambda *_: -1)
    isolation._renew_proc()


def unknown_architecture(scene: Scene) -> None:
    scene.machine.architecture = "riscv64"
    scene.plan()


def scopes_refused(scene: Scene) -> None:
    def refuse(_: str, number: int, *more: object) -> int:
        is_asked = number == isolation.CREATE_RULESET and more[-1] == isolation.ASK_VERSION
        return isolation.SCOPES_SINCE if is_asked else -1

    scene.monkeypatch.setattr(isolation, "c_call", refuse)
    isolation.scope_to_box()


def keyring_refused(scene: Scene) -> None:
    def refuse(_: str, __: int, what: int, *___: int) -> int:
        return -1 if what == isolation.JOIN_SESSION else 1

    scene.monkeypatch.setattr(isolation, "c_call", refuse)
    isolation.leave_session_keyring()


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
