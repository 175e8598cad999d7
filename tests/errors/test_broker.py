"""What is said where the broker cannot be had, or ends."""

from __future__ import annotations

import os
from collections.abc import Callable

from claudebox.errors import FAILED
from claudebox.features.broker import act
from claudebox.features.broker.decide import find_upstream
from claudebox.model import Launch, Origin
from claudebox.process.companion import Companion, start_beside
from claudebox.servers.broker.upstream import trust
from claudebox.settings import EnvWish
from claudebox.settings.table import ENV
from errors.scene import Problems, Scene, old_kernel

GATEWAY, OTHER = "https://gateway.example", "https://other.example"


def broker_without_certificates(_: Scene) -> None:
    trust("", "/nonexistent")


def broker_on_old_kernel(scene: Scene) -> None:
    act.beside(Launch(old_kernel(scene.with_environ(ANTHROPIC_API_KEY="x")).machine.plan("--auth", "broker")))


def broker_that_cannot_listen(scene: Scene) -> None:
    plan = scene.with_environ(ANTHROPIC_API_KEY="x").machine.plan("--auth", "broker", "--network", "none")
    act.made(Launch(plan), "/proc/nobody/root")


def broker_that_ends_at_once(_: Scene) -> None:
    life, other = os.pipe()
    os.close(other)
    Companion(life, act.ended, act.failed).require_ready()


def broker_that_says_why(_: Scene) -> None:
    life = start_beside(broker_without_trust, ())
    Companion(life, act.ended, act.failed).require_ready()


def broker_without_trust(_: int) -> None:
    trust("/nonexistent")


def broker_that_ended(_: Scene) -> None:
    raise act.ended()


def asked_of_the_broker(*words: str, **environ: str) -> Callable[[Scene], None]:
    def provoke(scene: Scene) -> None:
        scene.with_environ(**environ).plan("--auth", "broker", *words)

    return provoke


def project_names_the_address(scene: Scene) -> None:
    facts = scene.with_environ(ANTHROPIC_API_KEY="x").machine.facts("--auth", "broker")
    wish = EnvWish("ANTHROPIC_BASE_URL", OTHER, Origin.of_file(".claudebox.toml", 3, is_project=True))
    find_upstream(facts.replace(settings=facts.settings.having(ENV, (wish,))), "ANTHROPIC_API_KEY")


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
    "broker-other-gateway": (
        asked_of_the_broker("--env", f"ANTHROPIC_BASE_URL={OTHER}", ANTHROPIC_BASE_URL=GATEWAY, ANTHROPIC_API_KEY="x"),
        FAILED,
    ),
    "broker-credential-in-settings": (
        lambda scene: (
            scene.with_environ(ANTHROPIC_BASE_URL=GATEWAY)
            .planted('~/.claude/settings.json: {"apiKeyHelper": "x"}')
            .plan("--auth", "broker")
        ),
        FAILED,
    ),
    "broker-foreign-settings": (
        lambda scene: (
            scene.planted(f'~/shop/s.json: {{"env": {{"ANTHROPIC_BASE_URL": "{GATEWAY}"}}}}')
            .planted("~/.claude/settings.json -> ../shop/s.json")
            .with_environ(ANTHROPIC_API_KEY="x")
            .plan("--auth", "broker")
        ),
        FAILED,
    ),
    "broker-projects-address": (project_names_the_address, FAILED),
    "broker-foreign-certificates": (
        asked_of_the_broker(NODE_EXTRA_CA_CERTS="/home/alice/shop/ca.pem", ANTHROPIC_API_KEY="x"),
        FAILED,
    ),
    "broker-no-login": (
        lambda scene: scene.planted("~/.claude/.credentials.json: {}").plan("--auth", "broker"),
        FAILED,
    ),
    "broker-address": (
        asked_of_the_broker(ANTHROPIC_BASE_URL="http://gateway.example", ANTHROPIC_API_KEY="x"),
        FAILED,
    ),
    "broker-proxy": (asked_of_the_broker(HTTPS_PROXY="socks5://localhost:1080", ANTHROPIC_API_KEY="x"), FAILED),
    "broker-certificates": (broker_without_certificates, FAILED),
    "broker-no-listener": (broker_that_cannot_listen, FAILED),
    "broker-ends": (broker_that_ends_at_once, FAILED),
    "broker-says-why": (broker_that_says_why, FAILED),
    "broker-ended": (broker_that_ended, FAILED),
    "broker-old-kernel": (broker_on_old_kernel, FAILED),
}
