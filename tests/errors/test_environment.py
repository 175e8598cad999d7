"""What is said of variables."""

from __future__ import annotations

from claudebox.errors import FAILED
from errors.scene import Problems, with_project_file

PROBLEMS: Problems = {
    "env-bad-name": (lambda scene: scene.plan("--env", "A-B=1"), FAILED),
    "drop-env-bad-name": (lambda scene: scene.plan("--drop-env", "A=1"), FAILED),
    "drop-env-made-by-the-box": (lambda scene: scene.plan("--drop-env", "HOME"), FAILED),
    "drop-env-made-by-the-box-by-project": (
        lambda scene: with_project_file(scene, "drop_env = ['PATH']").plan(),
        FAILED,
    ),
    "env-made-by-the-box": (lambda scene: scene.plan("--env", "HOME"), FAILED),
    "env-path-without-value": (lambda scene: scene.plan("--env", "PATH"), FAILED),
    "env-key-without-its-gateway": (
        lambda scene: scene.with_environ(ANTHROPIC_BASE_URL="https://gateway.example", ANTHROPIC_API_KEY="x").plan(
            "--drop-env", "ANTHROPIC_BASE_URL", "--env", "ANTHROPIC_API_KEY"
        ),
        FAILED,
    ),
    "env-secret-in-arguments": (lambda scene: scene.plan("--env", "LD_SDK_KEY=sdk-0123"), FAILED),
}
