"""What is said of the directory to work in, and of the home."""

from __future__ import annotations

import pytest

from claudebox.host import find_person, read_host
from claudebox.problem import FAILED
from errors.scene import Problems, Scene, Stage


def working_directory_gone(scene: Scene) -> None:
    gone = scene.machine.root / "gone"
    gone.mkdir()
    scene.monkeypatch.chdir(gone)
    gone.rmdir()
    read_host()


def of_another_account(scene: Scene) -> None:
    scene.machine.uid = 0
    scene.machine.owners |= {"/home/alice": 1000, "/home/alice/shop": 1000}
    (scene.machine.root / "home/alice").chmod(0o700)
    scene.plan()


PROBLEMS: Problems = {
    "home-relative": (
        lambda scene: find_person(scene.machine.host().tree, 4242, 4242, "somewhere"),
        FAILED,
    ),
    "home-is-root": (lambda scene: scene.with_environ(HOME="/").plan(), FAILED),
    "project-home": (lambda scene: scene.in_directory("/home/alice").plan(), FAILED),
    "project-root": (lambda scene: scene.in_directory("/").plan(), FAILED),
    "project-above-home": (lambda scene: scene.in_directory("/home").plan(), FAILED),
    "project-broad": (lambda scene: scene.in_directory("/srv").plan(), FAILED),
    "project-system": (lambda scene: scene.in_directory("/usr/lib").plan(), FAILED),
    "project-secret": (lambda scene: scene.in_directory("/home/alice/.ssh").plan(), FAILED),
    "project-contains-secret": (lambda scene: scene.in_directory("/home/alice/.config").plan(), FAILED),
    "project-too-long": (lambda scene: scene.in_directory("/home/alice" + "/d" * 2000).plan(), FAILED),
    "project-control-characters": (lambda scene: scene.in_directory("/home/alice/a\x1b[2Jb").plan(), FAILED),
    "project-of-another-account": (of_another_account, FAILED),
    "working-directory-gone": (working_directory_gone, FAILED),
}


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_says_exactly_this(name: str, stage: Stage) -> None:
    stage.check("project", name, *PROBLEMS[name])
