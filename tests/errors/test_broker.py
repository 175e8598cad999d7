"""What is said where the broker cannot be had, or ends."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from claudebox.features.broker import act
from claudebox.features.broker.server.run import make_session
from claudebox.model import Broker
from claudebox.problem import FAILED
from errors.scene import Problems, Scene, Stage, old_kernel

BROKER = Broker(
    *("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY", "", "", "", "", "ANTHROPIC_AUTH_TOKEN"),
    *("/proc/nowhere", "/run/broker", "/nonexistent/lock", "/nonexistent/journal"),
)


def broker_tries_itself(scene: Scene, **environ: str) -> None:
    """With what the environment says."""
    make_session(BROKER.replace(url=environ.get("ANTHROPIC_BASE_URL", "")), {"ANTHROPIC_API_KEY": "x", **environ}, "")


def broker_on_old_kernel(scene: Scene) -> None:
    plan = old_kernel(scene).machine.plan()
    act.start_broker(plan, BROKER.replace(sockets=str(scene.machine.root / "broker")))


def box_without_python(scene: Scene) -> None:
    scene.without("/usr/bin/python3").with_environ(ANTHROPIC_API_KEY="x")
    scene.machine.python = "/home/alice/.pyenv/bin/python3"
    scene.plan("--auth", "broker")


def broker_that_ends_at_once(_: Scene) -> None:
    life, other = os.pipe()
    os.close(other)
    act.require_ready(life, os.pidfd_open(os.getpid()))


def broker_that_ended(_: Scene) -> None:
    raise act.ended()


def asked_of_the_broker(*words: str, **environ: str) -> Callable[[Scene], None]:
    def provoke(scene: Scene) -> None:
        scene.with_environ(**environ).plan("--auth", "broker", *words)

    return provoke


PROBLEMS: Problems = {
    "broker-provider": (asked_of_the_broker(CLAUDE_CODE_USE_BEDROCK="1"), FAILED),
    "broker-no-credential": (
        lambda scene: scene.without("/home/alice/.claude/.credentials.json").plan("--auth", "broker"),
        FAILED,
    ),
    "broker-no-key": (asked_of_the_broker(ANTHROPIC_API_KEY="two words"), FAILED),
    "broker-limit": (asked_of_the_broker("--auth-limit", "cups=3", ANTHROPIC_API_KEY="x"), FAILED),
    "broker-env": (asked_of_the_broker("--env", "ANTHROPIC_API_KEY", ANTHROPIC_API_KEY="key-of-alice"), FAILED),
    "broker-no-tls": (
        asked_of_the_broker(ANTHROPIC_BASE_URL="http://localhost:4000", ANTHROPIC_API_KEY="x"),
        FAILED,
    ),
    "broker-no-login": (
        lambda scene: scene.planted("~/.claude/.credentials.json: {}").plan("--auth", "broker"),
        FAILED,
    ),
    "broker-address": (lambda scene: broker_tries_itself(scene, ANTHROPIC_BASE_URL="http://gateway.example"), FAILED),
    "broker-proxy": (lambda scene: broker_tries_itself(scene, HTTPS_PROXY="socks5://localhost:1080"), FAILED),
    "broker-certificates": (lambda scene: broker_tries_itself(scene, NODE_EXTRA_CA_CERTS="/nonexistent"), FAILED),
    "broker-no-socket": (lambda scene: act.start_broker(scene.machine.plan(), BROKER), FAILED),
    "broker-ends": (broker_that_ends_at_once, FAILED),
    "broker-without-python": (box_without_python, FAILED),
    "broker-ended": (broker_that_ended, FAILED),
    "broker-old-kernel": (broker_on_old_kernel, FAILED),
}


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_says_exactly_this(name: str, stage: Stage) -> None:
    stage.check("broker", name, *PROBLEMS[name])
