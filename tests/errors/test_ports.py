"""What is said of ports."""

from __future__ import annotations

from claudebox.errors import FAILED
from claudebox.model import Origin, Port
from claudebox.process.companion import open_port
from errors.scene import Problems, Scene, with_file


def port_refused(scene: Scene, number: int) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(98, "Address already in use (while attempting to bind)")

    scene.monkeypatch.setattr("socket.create_server", refuse)
    open_port(Port(number, 80, Origin.of_option("--publish")))


PROBLEMS: Problems = {
    "port-is-no-number": (lambda scene: scene.plan("--publish", "http"), FAILED),
    "port-too-large": (lambda scene: scene.plan("--host-port", "65536"), FAILED),
    "port-of-the-host-with-another": (lambda scene: scene.plan("--host-port", "80:8080"), FAILED),
    "port-both-ways": (
        lambda scene: scene.plan("--network", "inet", "--publish", "8080:80", "--host-port", "80"),
        FAILED,
    ),
    "port-published-twice": (lambda scene: scene.plan("--publish", "80:8080", "--publish", "80:8081"), FAILED),
    "port-taken": (lambda scene: port_refused(scene, 3000), FAILED),
    "port-too-low": (lambda scene: port_refused(scene, 80), FAILED),
    "port-published-twice-by-file": (
        lambda scene: with_file(scene, "publish = ['80:8080']").plan("--network", "none", "--publish", "80"),
        FAILED,
    ),
}
