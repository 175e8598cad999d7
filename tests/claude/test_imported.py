"""What of the user's settings and MCP servers enters the box."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from claudebox.features.claude.configuration import Admitted, Runnable, admit_servers, admit_settings
from claudebox.model import RO, TMPFS, Mount, Origin
from hosts.machine import plant

pytestmark = pytest.mark.req("INST-02")

ALWAYS = {"skipDangerousModePermissionPrompt": True}
TOKEN = "ghp_0123456789abcdef0123456789abcdef0123"


def can_run(command: str) -> bool:
    return command.startswith("git")


def hook(*commands: str, matcher: str = "Bash") -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command} for command in commands]}


def test_ordinary_settings_are_kept() -> None:
    settings = {
        "model": "opus",
        "permissions": {"allow": ["Bash(make:*)"], "deny": ["Read(./.env)"]},
        "statusLine": {"type": "command", "command": "git branch"},
        "env": {"EDITOR": "vi", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "1000"},
        "hooks": {"PostToolUse": [hook("git diff")]},
        "enabledPlugins": {"tea@shop": True},
    }
    assert admit_settings(settings, can_run) == Admitted({**settings, **ALWAYS}, ())


@pytest.mark.req("UX-06")
def test_no_settings_are_only_what_the_box_needs() -> None:
    assert admit_settings({}, can_run) == Admitted(ALWAYS, ())


@pytest.mark.req("SEC-01")
@pytest.mark.parametrize(
    "name", ["apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh", "otelHeadersHelper"]
)
def test_helper_for_credentials_is_left_out(name: str) -> None:
    imported = admit_settings({name: "git credential"}, can_run)
    assert imported.value == ALWAYS
    assert imported.left_out[0].startswith(f"setting {name}: it hands out credentials, which stay outside")


@pytest.mark.req("SEC-01")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "x"),
        ("DB_HOST", "10.0.0.7"),
        ("ANTHROPIC_AUTH_TOKEN", "x"),
        ("DATABASE_URL", "postgres://ada:tea@example.org/db"),
        ("HARMLESS", TOKEN),
        ("SIGNING", "-----BEGIN PRIVATE KEY-----"),
        ("ANTHROPIC_CUSTOM_HEADERS", "Authorization: Bearer abc"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic abc"),
    ],
)
def test_variable_that_is_no_configuration_is_left_out(name: str, value: str) -> None:
    imported = admit_settings({"env": {"EDITOR": "vi", name: value}}, can_run)
    assert imported.value == {"env": {"EDITOR": "vi"}, **ALWAYS}
    assert len(imported.left_out) == 1
    assert imported.left_out[0].startswith(f"setting env {name}: it ")
    assert value not in imported.left_out[0].removeprefix(f"setting env {name}") or len(value) == 1


@pytest.mark.req("SEC-01")
def test_configuration_that_looks_secret_is_left_out() -> None:
    imported = admit_settings({"env": {"EDITOR": TOKEN}}, can_run)
    assert imported == Admitted(
        ALWAYS, ("setting env EDITOR: it looks secret; if the box needs it, export it, then: --env EDITOR",)
    )


def test_hook_without_its_program_is_left_out_and_named() -> None:
    hooks = {"Stop": [hook("/opt/notify"), hook("git status", "~/bin/x")], "PreToolUse": [hook("/opt/check")]}
    assert admit_settings({"hooks": hooks}, can_run) == Admitted(
        {"hooks": {"Stop": [hook("git status")]}, **ALWAYS},
        (
            "hook Stop: /opt/notify is not in the box",
            "hook Stop: ~/bin/x is not in the box",
            "hook PreToolUse: /opt/check is not in the box",
        ),
    )


@pytest.mark.req("SEC-01")
def test_hook_with_a_token_is_left_out_and_the_token_is_not_shown() -> None:
    imported = admit_settings({"hooks": {"Stop": [hook(f"git push https://x:{TOKEN}@example.org")]}}, can_run)
    assert imported.value == ALWAYS
    assert len(imported.left_out) == 1
    assert TOKEN not in imported.left_out[0]


def test_status_line_without_its_program_is_left_out() -> None:
    expected = Admitted(ALWAYS, ("setting statusLine: its program is not in the box; to show it: --mount-ro PATH",))
    assert admit_settings({"statusLine": {"type": "command", "command": "~/bin/line"}}, can_run) == expected


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize(
    "settings",
    [
        {"env": "x"},
        {"env": None},
        {"hooks": []},
        {"hooks": {"Stop": "x"}},
        {"hooks": {"Stop": [1, {"hooks": 2}, {"hooks": [3]}]}},
        {"statusLine": {}},
        {"statusLine": "x"},
    ],
)
def test_strange_settings_are_no_traceback(settings: dict[str, Any]) -> None:
    assert admit_settings(settings, can_run).value["skipDangerousModePermissionPrompt"] is True


def test_usable_server_is_kept() -> None:
    servers = {
        "local": {"command": "git", "args": ["mcp", "--port", "80"], "env": {"LEVEL": "debug"}},
        "remote": {"type": "http", "url": "https://example.org/mcp"},
    }
    assert admit_servers(servers, can_run) == Admitted(servers, ())


@pytest.mark.req("SEC-01")
@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ({"command": "/opt/tea"}, "its program is not in the box"),
        ({}, "its program is not in the box"),
        ("git", "it is not described as a server"),
        ({"command": "git", "env": {"TEA_TOKEN": "x"}}, "it needs a secret"),
        ({"command": "git", "env": {"A": TOKEN}}, "it needs a secret"),
        ({"command": "git", "args": ["--token", TOKEN]}, "it needs a secret"),
        ({"command": "git", "args": ["--password=hunter2"]}, "it needs a secret"),
        ({"command": "git", "args": ["--api-key", "hunter2"]}, "it needs a secret"),
        ({"command": f"git --token {TOKEN}"}, "it needs a secret"),
        ({"url": "https://ada:tea@example.org/mcp"}, "it needs a secret"),
        ({"url": f"https://example.org/mcp?key={TOKEN}"}, "it needs a secret"),
        ({"url": "https://example.org/mcp?api_key=0123456789abcdef"}, "it needs a secret"),
        ({"url": "https://example.org/mcp", "headers": {"X": "y"}}, "it needs a secret"),
        ({"url": "https://example.org/mcp", "headersHelper": "git"}, "it needs a secret"),
        ({"url": "https://example.org/mcp", "oauth": {"clientSecret": "hunter2"}}, "it needs a secret"),
    ],
)
def test_server_that_fails_or_leaks_is_left_out(server: Any, reason: str) -> None:
    imported = admit_servers({"tea": server, "good": {"command": "git"}}, can_run)
    assert imported == Admitted({"good": {"command": "git"}}, (f"MCP server tea: {reason}",))


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("servers", [None, [], "x", {"tea": {"command": "git", "args": 5}}, {"tea": {"command": 7}}])
def test_strange_servers_are_no_traceback(servers: Any) -> None:
    admit_servers(servers, can_run)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git status", True),
        ("/usr/bin/git status", True),
        ("'/usr/bin/git' status", True),
        ("/usr/bin/gone", False),
        ("unknown", False),
        ("", False),
        ("~/bin/hook", False),
        ("$HOME/bin/hook", False),
        ("git log ~/bin/hook", False),
        ("~/shop/hook.sh", True),
        ("$CLAUDE_PROJECT_DIR/hook.sh", True),
        ("echo done >/dev/null", True),
        ("/usr/bin/../../home/alice/bin/hook", False),
        ("plain", False),
    ],
)
def test_program_is_there_only_if_it_is_mounted(command: str, expected: bool, tmp_path: Path) -> None:
    paths = "/usr/bin/git*\n/usr/bin/plain\n~/bin/hook*\n~/shop/hook.sh*\n"
    tree = plant(tmp_path, paths)
    origin = Origin.of_rule("test")
    mounts = (
        Mount(TMPFS, "/", origin),
        Mount(RO, "/usr", origin, source="/usr"),
        Mount(RO, "/home/alice/shop", origin, source="/home/alice/shop"),
    )
    assert Runnable(tree, mounts, ("/usr/bin",), "/home/alice").can_run(command) is expected
