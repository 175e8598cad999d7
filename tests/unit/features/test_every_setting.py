"""What somebody says holds in every box, or no box starts: also where no claude is found, and for another agent."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from claudebox.errors import Problem
from claudebox.features.limits import Limits
from claudebox.features.table import SETTINGS
from claudebox.model import HIDE, LAYER, RO, RW, TMPFS, Broker, Network, Plan
from claudebox.settings.types import MODE
from hosts.machine import EVERYONE, SYSTEMD, TREES, Machine

KEY = "sk-ant-api03-made-up-for-this-test"
KEYS = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}
WITHOUT_CLAUDE = "\n".join(line for line in EVERYONE.read_text().splitlines() if "claude" not in line)
ROWS = """
/usr/bin/codex*
/usr/bin/pasta*
/usr/sbin/nft*
/dev/net/tun
/usr/bin/systemd-run*
/opt/tool*
~/.local/go/bin/go*
~/shop/.env: TOKEN=sk-made-up-for-this-test-0123\\n
~/shop/.github/workflows/ci.yml
~/.claudebox/profiles/mine.toml: hide = ["~/shop/README.md"]\\n
"""
Holds: TypeAlias = Callable[[Plan], object] | str  # what the plan says, or the beginning of why there is none


def values(plan: Plan) -> str:
    return " ".join(f"{one.name}={one.value}" for one in plan.environment)


def kinds(plan: Plan, path: str) -> set[str]:
    return {mount.kind for mount in plan.mounts if mount.path == path}


def limits(plan: Plan) -> Limits:
    found = plan.get(Limits)
    assert found is not None
    return found


def network(plan: Plan) -> Network:
    return plan.network


SHOP = "/home/alice/shop"
# Each setting with a value that gives less, or asks for something, and how one sees in the plan that it holds.
HOLDS: dict[str, tuple[tuple[str, ...], Holds]] = {
    "auth": (("--auth", "none"), lambda plan: KEY not in values(plan)),
    "auth_limit": (("--auth-limit", "requests=5"), "--auth-limit: only the broker counts"),
    "broker_fetch": (("--broker-fetch", "off"), "--broker-fetch has no meaning with --auth passthrough"),
    "profile": (("--profile", "mine"), lambda plan: HIDE in kinds(plan, f"{SHOP}/README.md")),
    "mount_ro": (("--mount-ro", "~/other"), lambda plan: kinds(plan, "/home/alice/other") == {RO}),
    "mount_rw": (("--mount-rw", "~/other"), lambda plan: kinds(plan, "/home/alice/other") == {RW}),
    "hide": (("--hide", "README.md"), lambda plan: HIDE in kinds(plan, f"{SHOP}/README.md")),
    "env": (("--env", "MODE=x"), lambda plan: "MODE=x" in values(plan)),
    "pass_env": ((), lambda plan: "PASSED=x" in values(plan)),
    "nix": (("--nix", "store"), "--nix: there is no /nix/store"),
    "package": (("--package", "hello"), "--package: packages come from Nix"),
    "toolchains": (("--toolchains", "off"), lambda plan: not kinds(plan, "/home/alice/.local/go")),
    "path": ((), lambda plan: "PATH=/opt/first:" in values(plan)),
    "cache": (("--cache", "none"), lambda plan: not kinds(plan, "/var/cache/claudebox")),
    "reveal": (("--reveal", ".env"), lambda plan: not kinds(plan, f"{SHOP}/.env")),
    "userns": (("--userns", "off"), lambda plan: not any("--userns" in one.subject for one in plan.findings)),
    "drop_env": (("--drop-env", "LANG"), lambda plan: "LANG=" not in values(plan)),
    "network": (("--network", "none"), lambda plan: network(plan).tier == "none"),
    "publish": (("--network", "none", "--publish", "8080"), lambda plan: network(plan).published),
    "host_port": (("--network", "none", "--host-port", "5432"), lambda plan: network(plan).host_ports),
    "allow": (("--network", "full", "--allow", "example.org"), "--allow"),
    "ask": (("--ask", "desktop"), "--ask has no meaning with --network full"),
    "writable": (("--writable", ".github"), lambda plan: not kinds(plan, f"{SHOP}/.github")),
    "review": (("--review", "on"), lambda plan: kinds(plan, SHOP) == {LAYER}),
    "land": (("--land", "safe", "--review", "off"), "--land has no meaning with --review off"),
    "tmp_size": (
        ("--tmp-size", "64M"),
        lambda plan: [one.size for one in plan.mounts if (one.path, one.kind) == ("/tmp", TMPFS)] == [64 << 20],
    ),
    "memory": (("--memory", "1G"), lambda plan: limits(plan).memory == 1 << 30),
    "pids": (("--pids", "50"), lambda plan: limits(plan).pids == 50),
    "cpu": (("--cpu", "1"), lambda plan: limits(plan).cpu),
    "bwrap": ((), "CLAUDEBOX_BWRAP: /opt/none is not a program"),
    "claude": ((), "CLAUDEBOX_CLAUDE: /opt/none is not a program"),
    "pasta": ((), "CLAUDEBOX_PASTA: /opt/none is not a program"),
    "nft": ((), "CLAUDEBOX_NFT: /opt/none is not a program"),
    "suggest": (("--suggest",), "--suggest says what --network-log prints"),
    "json": (("--json",), "this prints no data"),
    "against": (("--against", "firejail"), "--against says what --prove attacks"),
    "program": (("--program", "codex"), "--program names the agent to start"),
}
VARIABLES = {
    "pass_env": {"CLAUDEBOX_EXTRA_ENV": "PASSED", "PASSED": "x"},
    "drop_env": {"LANG": "C.UTF-8"},
    **{name: {f"CLAUDEBOX_{name.upper()}": "/opt/none"} for name in ("bwrap", "claude", "pasta", "nft")},
}
FILES = {"path": '~/.claudebox/config.toml: path = ["/opt/first"]\\n'}
# They say what starts and what is asked, and promise nothing about the box.
NO_PROMISE = {"yes", "quiet", "run", "shell", "claude_args"}
# With another agent they mean something else.
OTHERWISE_WITH_AN_AGENT: dict[str, Holds] = {
    "program": lambda plan: plan.program.title == "codex",
    "path": lambda plan: ":/opt/first:" in values(plan),  # after the agent itself
}


def test_every_setting_is_tried() -> None:
    assert {one.name for one in SETTINGS if one.kind != MODE} == HOLDS.keys() | NO_PROMISE


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("start", [("--run", "env"), ("--program", "codex")], ids=["no-claude", "another-agent"])
@pytest.mark.parametrize("name", HOLDS)
def test_setting_holds_or_is_refused(tmp_path: Path, name: str, start: tuple[str, ...]) -> None:
    words, holds = HOLDS[name]
    if start[0] == "--program":
        holds, words = OTHERWISE_WITH_AN_AGENT.get(name, holds), () if name == "program" else words
    path = "/home/alice/.local/go/bin:/usr/bin:/bin"
    machine = Machine(tmp_path, environ=KEYS | {"PATH": path} | VARIABLES.get(name, {}))
    for text in (FILES.get(name, ""), (TREES / "debian12.txt").read_text(), SYSTEMD, ROWS, WITHOUT_CLAUDE):
        machine.plant(text)
    if callable(holds):
        assert holds(machine.plan(*words, *start))
        return
    with pytest.raises(Problem) as caught:
        machine.plan(*words, *start)
    assert caught.value.message.startswith(holds)
    assert (caught.value.status, bool(caught.value.hint)) == (125, True)


@pytest.mark.req("AUTH-03")
def test_broker_keeps_the_key_out_where_no_claude_is_found(tmp_path: Path) -> None:
    machine = Machine(tmp_path, environ=dict(KEYS))
    machine.plant((TREES / "debian12.txt").read_text()).plant(WITHOUT_CLAUDE)
    plan = machine.plan("--auth", "broker", "--run", "env")
    assert plan.get(Broker) is not None
    assert KEY not in values(plan)


@pytest.mark.parametrize("start", [("--run", "env"), ()], ids=["a-command", "claude"])
def test_a_key_that_is_asked_for_by_name_enters_without_the_login(tmp_path: Path, start: tuple[str, ...]) -> None:
    machine = Machine(tmp_path, environ=dict(KEYS)).plant((TREES / "debian12.txt").read_text())
    plan = machine.plant(EVERYONE.read_text()).plan("--auth", "none", "--env", "ANTHROPIC_API_KEY", *start)
    assert f"ANTHROPIC_API_KEY={KEY}" in values(plan)
    assert not kinds(plan, "/run/user/1000/claude-auth")
