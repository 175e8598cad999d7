"""What is said of the command line itself."""

from __future__ import annotations

from claudebox.commands.explain import explain
from claudebox.errors import FAILED
from claudebox.plan import make_plan
from errors.scene import Problems, Scene
from saying import gather, parse


def explained(scene: Scene, thing: str) -> None:
    host, request = scene.machine.host(), parse(["--explain", thing])
    settings = gather(host, request).settings
    explain(make_plan(host, request, settings), host, settings, thing)


PROBLEMS: Problems = {
    "argument-run-needs-command": (lambda scene: scene.plan("--run"), FAILED),
    "argument-run-with-value": (lambda scene: scene.plan("--run=make"), FAILED),
    "argument-switch-with-value": (lambda scene: scene.plan("--yes=please"), FAILED),
    "argument-value-missing": (lambda scene: scene.plan("--mount-ro"), FAILED),
    "argument-shell-with-words": (lambda scene: scene.plan("--shell", "ls"), FAILED),
    "argument-run-after-words": (lambda scene: scene.plan("-p", "--run", "true"), FAILED),
    "argument-instances-with-words": (lambda scene: scene.plan("--instances", "foo"), FAILED),
    "argument-review-mistyped": (lambda scene: scene.plan("--review", "lsit"), FAILED),
    "argument-two-modes": (lambda scene: scene.plan("--audit", "--dry-run"), FAILED),
    "explain-nothing": (lambda scene: explained(scene, " "), FAILED),
    "explain-no-port": (lambda scene: explained(scene, "65536"), FAILED),
    "explain-secret": (lambda scene: explained(scene, "ghp_0123456789abcdefghijklmnopqrstuvwxyz"), FAILED),
    "explain-unknown": (lambda scene: explained(scene, "$1"), FAILED),
    "mistake-letters": (lambda scene: scene.plan("--netwrok", "none"), FAILED),
    "mistake-one-dash": (lambda scene: scene.plan("-network", "none", "-p", "hello"), FAILED),
    "mistake-pasted-dash": (lambda scene: scene.plan("–network", "none"), FAILED),  # noqa: RUF001
    "mistake-pasted-dash-of-no-option": (lambda scene: scene.plan("—zebra"), FAILED),
    "mistake-no-dash": (lambda scene: scene.plan("network", "none"), FAILED),
    "mistake-not-clear-whose": (lambda scene: scene.plan("mcp", "add", "x", "--env", "KEY=VALUE"), FAILED),
    "mistake-removed": (lambda scene: scene.plan("--claude", "/opt/claude"), FAILED),
    "mistake-removed-profile": (lambda scene: scene.plan("--profile", "node"), FAILED),
    "argument-json-alone": (lambda scene: scene.plan("--json"), FAILED),
    "argument-check-with-words": (lambda scene: scene.plan("--check", "inet"), FAILED),
    "mistake-variable": (lambda scene: scene.with_environ(CLAUDEBOX_NETWROK="none").plan(), FAILED),
    "mistake-variable-of-an-option": (lambda scene: scene.with_environ(CLAUDEBOX_HIDE="x").plan(), FAILED),
    "mistake-variable-of-nothing": (lambda scene: scene.with_environ(CLAUDEBOX_ZEBRA="x").plan(), FAILED),
    "mistake-limit-without-broker": (lambda scene: scene.plan("--auth-limit", "requests=abc"), FAILED),
    "argument-against-alone": (lambda scene: scene.plan("--against", "env"), FAILED),
}
