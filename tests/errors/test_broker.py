"""What is said where the broker or Claude's login cannot be had."""

import os
from collections.abc import Callable

from claudebox import servers
from claudebox.features.broker import credential
from claudebox.features.broker.credential import find_upstream
from claudebox.features.login import start_copying
from claudebox.model import Launch, Login, Origin
from claudebox.process.companion import Companion, start_beside
from claudebox.servers.broker.upstream import trust
from claudebox.settings import EnvWish
from claudebox.settings.table import ENV
from claudebox.state import State
from errors.scene import Problems, Scene, old_kernel

GATEWAY, OTHER = "https://gateway.example", "https://other.example"


def broker_without_certificates(_: Scene) -> None:
    trust("", "/nonexistent")


def broker_on_old_kernel(scene: Scene) -> None:
    credential.beside(Launch(old_kernel(scene.with_environ(ANTHROPIC_API_KEY="x")).machine.plan("--auth", "broker")))


def broker_that_cannot_listen(scene: Scene) -> None:
    plan = scene.with_environ(ANTHROPIC_API_KEY="x").machine.plan("--auth", "broker", "--network", "none")
    credential.made(Launch(plan), "/proc/nobody/root")


def broker_that_ends_at_once(_: Scene) -> None:
    life, other = os.pipe()
    os.close(other)
    Companion(life, credential.ended, credential.failed).require_ready()


def broker_that_says_why(_: Scene) -> None:
    life = start_beside(broker_without_trust, ())
    Companion(life, credential.ended, credential.failed).require_ready()


def broker_without_trust(_: int) -> None:
    trust("/nonexistent")


def broker_that_ended(_: Scene) -> None:
    raise credential.ended()


def asked_of_the_broker(*words: str, **environ: str) -> Callable[[Scene], None]:
    def provoke(scene: Scene) -> None:
        scene.with_environ(**environ).plan("--auth", "broker", *words)

    return provoke


def project_names_the_address(scene: Scene) -> None:
    facts = scene.with_environ(ANTHROPIC_API_KEY="x").machine.facts("--auth", "broker")
    wish = EnvWish("ANTHROPIC_BASE_URL", OTHER, Origin.of_file(".claudebox.toml", 3, is_project=True))
    find_upstream(facts.replace(settings=facts.settings.having(ENV, (wish,))), "ANTHROPIC_API_KEY")


def login_kept_in(home: str) -> Login:
    claude = "/home/alice/.claude"
    return Login(f"{claude}/.credentials.json", claude, State(home), State(home).instance("/nonexistent"), "/run/auth")


def login_not_handed_over(scene: Scene) -> None:
    start_copying(login_kept_in(str(scene.machine.root / "gone")))


def login_on_old_kernel(scene: Scene) -> None:
    old_kernel(scene).monkeypatch.setattr(servers, "is_current", lambda _: True)
    start_copying(login_kept_in("/nonexistent"))


PROBLEMS: Problems = {
    "broker-provider": asked_of_the_broker(CLAUDE_CODE_USE_BEDROCK="1"),
    "broker-no-credential": lambda scene: scene.without("/home/alice/.claude/.credentials.json").plan(
        "--auth", "broker"
    ),
    "broker-other-login": asked_of_the_broker(ANTHROPIC_PROFILE="work"),
    "broker-no-key": asked_of_the_broker(ANTHROPIC_API_KEY="two words"),
    "broker-limit": asked_of_the_broker("--auth-limit", "cups=3", ANTHROPIC_API_KEY="x"),
    "broker-fetch-without-broker": lambda scene: scene.plan("--broker-fetch", "off"),
    "broker-env": asked_of_the_broker("--env", "ANTHROPIC_API_KEY", ANTHROPIC_API_KEY="key-of-alice"),
    "broker-no-tls": asked_of_the_broker(ANTHROPIC_BASE_URL="http://localhost:4000", ANTHROPIC_API_KEY="x"),
    "broker-other-gateway": asked_of_the_broker(
        "--env", f"ANTHROPIC_BASE_URL={OTHER}", ANTHROPIC_BASE_URL=GATEWAY, ANTHROPIC_API_KEY="x"
    ),
    "broker-credential-in-settings": lambda scene: (
        scene.with_environ(ANTHROPIC_BASE_URL=GATEWAY)
        .planted('~/.claude/settings.json: {"apiKeyHelper": "x"}')
        .plan("--auth", "broker")
    ),
    "broker-foreign-settings": lambda scene: (
        scene.planted(f'~/shop/s.json: {{"env": {{"ANTHROPIC_BASE_URL": "{GATEWAY}"}}}}')
        .planted("~/.claude/settings.json -> ../shop/s.json")
        .with_environ(ANTHROPIC_API_KEY="x")
        .plan("--auth", "broker")
    ),
    "broker-projects-address": project_names_the_address,
    "broker-foreign-certificates": asked_of_the_broker(
        NODE_EXTRA_CA_CERTS="/home/alice/shop/ca.pem", ANTHROPIC_API_KEY="x"
    ),
    "broker-extra-certificates": asked_of_the_broker(NODE_EXTRA_CA_CERTS="/nonexistent", ANTHROPIC_API_KEY="x"),
    "broker-no-login": lambda scene: scene.planted("~/.claude/.credentials.json: {}").plan("--auth", "broker"),
    "broker-address": asked_of_the_broker(ANTHROPIC_BASE_URL="http://gateway.example", ANTHROPIC_API_KEY="x"),
    "broker-proxy": asked_of_the_broker(HTTPS_PROXY="socks5://localhost:1080", ANTHROPIC_API_KEY="x"),
    "broker-certificates": broker_without_certificates,
    "broker-no-listener": broker_that_cannot_listen,
    "broker-ends": broker_that_ends_at_once,
    "broker-says-why": broker_that_says_why,
    "broker-ended": broker_that_ended,
    "broker-old-kernel": broker_on_old_kernel,
    "login-old-kernel": login_on_old_kernel,
    "auth-unknown": lambda scene: scene.plan("--auth", "magic"),
    "login-not-handed-over": login_not_handed_over,
}
