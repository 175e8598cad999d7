"""What is said of limits on memory, processor and processes."""

from __future__ import annotations

from claudebox.errors import FAILED
from claudebox.features.limits import Limits
from claudebox.features.limits import systemd as limits
from errors.scene import Problems, Scene


def with_systemd(scene: Scene) -> Scene:
    return scene.planted("/usr/bin/busctl*\n/run/user/1000/bus\n/run/user/1000/systemd/private")


def limit_not_delegated(scene: Scene) -> None:
    scene.planted("/sys/fs/cgroup/cgroup.controllers: cpu memory pids")
    group = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service"
    with_systemd(scene).planted(f"{group}/cgroup.controllers: memory pids").plan("--memory", "4G", "--cpu", "2")


def limit_refused(scene: Scene, busctl: str) -> None:
    scene.monkeypatch.setattr(limits, "MOVE_PATIENCE_SECONDS", 0.05)
    limits.put_into_force(Limits(busctl, 1 << 30, 0, 0))


PROBLEMS: Problems = {
    "limit-no-amount": (lambda scene: scene.plan("--memory", "4X"), FAILED),
    "limit-too-little": (lambda scene: scene.plan("--pids", "3"), FAILED),
    "limit-without-systemd": (lambda scene: scene.plan("--memory", "4G"), FAILED),
    "limit-without-a-bus": (lambda scene: scene.planted("/usr/bin/busctl*").plan("--memory", "4G"), FAILED),
    "limit-with-old-groups": (lambda scene: with_systemd(scene).plan("--cpu", "2"), FAILED),
    "limit-not-delegated": (limit_not_delegated, FAILED),
    "limit-refused": (lambda scene: limit_refused(scene, "/bin/false"), FAILED),
    "limit-without-effect": (lambda scene: limit_refused(scene, "/bin/true"), FAILED),
}
