"""What is said of Claude's login."""

from __future__ import annotations

from claudebox import servers
from claudebox.errors import FAILED
from claudebox.features.login import start_copying
from claudebox.model import Login
from claudebox.state import State
from errors.scene import Problems, Scene, old_kernel


def login_kept_in(home: str) -> Login:
    claude = "/home/alice/.claude"
    return Login(f"{claude}/.credentials.json", claude, State(home), State(home).instance("/nonexistent"), "/run/auth")


def login_not_handed_over(scene: Scene) -> None:
    start_copying(login_kept_in(str(scene.machine.root / "gone")))


def login_on_old_kernel(scene: Scene) -> None:
    old_kernel(scene).monkeypatch.setattr(servers, "is_current", lambda _: True)
    start_copying(login_kept_in("/nonexistent"))


PROBLEMS: Problems = {
    "login-old-kernel": (login_on_old_kernel, FAILED),
    "auth-unknown": (lambda scene: scene.plan("--auth", "magic"), FAILED),
    "login-not-handed-over": (login_not_handed_over, FAILED),
}
