"""What is said of ports."""

from __future__ import annotations

import pytest

from claudebox.problem import FAILED
from errors.scene import Problems, Stage, pasta_ends, with_file

PROBLEMS: Problems = {
    "port-is-no-number": (lambda scene: scene.plan("--publish", "http"), FAILED),
    "port-too-large": (lambda scene: scene.plan("--host-port", "65536"), FAILED),
    "port-of-the-host-with-another": (lambda scene: scene.plan("--host-port", "80:8080"), FAILED),
    "port-both-ways": (
        lambda scene: scene.plan("--network", "inet", "--publish", "8080:80", "--host-port", "80"),
        FAILED,
    ),
    "port-published-twice": (lambda scene: scene.plan("--publish", "80:8080", "--publish", "80:8081"), FAILED),
    "port-taken": (
        lambda scene: pasta_ends(scene, 3000, log="Failed to bind any port for '-t 127.0.0.1/3000:3000', exiting"),
        FAILED,
    ),
    "port-too-low": (
        lambda scene: pasta_ends(scene, 3000, 80, log="Failed to bind any port for '-t 127.0.0.1/80:80', exiting"),
        FAILED,
    ),
    "port-taken-says-a-newer-pasta": (
        lambda scene: pasta_ends(
            scene,
            3000,
            log="Listen failed for HOST TCP port 127.0.0.1/3000: Address already in use\n"
            "Couldn't listen on requested ports",
        ),
        FAILED,
    ),
    "port-published-twice-by-file": (
        lambda scene: with_file(scene, "publish = ['80:8080']").plan("--network", "none", "--publish", "80"),
        FAILED,
    ),
}


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_says_exactly_this(name: str, stage: Stage) -> None:
    stage.check("ports", name, *PROBLEMS[name])
