"""MCP servers of the user in a box: what starts, what is passed by name, and where `mcp add` writes."""

import json

import pytest

from claude.session import Talk, load

pytestmark = pytest.mark.req("INST-02")

TOKEN = "canary-0123456789abcdef"
# It leaves a mark, and ends: Claude starts it to see what it can do.
SCRIPT = """#!/bin/sh
echo "$1 $TEA_TOKEN" > "$HOME/src/shop/started-$1"
"""


def with_servers(talk: Talk, **servers: object) -> None:
    talk.account.write(talk.account.home / "mcp" / "tea.sh", SCRIPT, mode=0o755)
    talk.account.write(talk.account.home / ".claude.json", json.dumps({"mcpServers": servers}))


def server(talk: Talk, word: str, **more: object) -> dict[str, object]:
    return {"command": str(talk.account.home / "mcp" / "tea.sh"), "args": [word], **more}


def test_script_of_a_server_is_started(user_talk: Talk) -> None:
    with_servers(user_talk, tea=server(user_talk, "plain"))
    assert user_talk().status == 0
    assert (user_talk.project / "started-plain").read_text() == "plain \n"


def test_secret_of_a_server_is_passed_by_name(user_talk: Talk) -> None:
    """It is in no file that the box keeps; and the start without it says what would let it in."""
    with_servers(
        user_talk,
        block=server(user_talk, "block", env={"TEA_TOKEN": TOKEN}),
        argument=server(user_talk, "argument-${TEA_TOKEN}"),
    )
    assert "--env TEA_TOKEN" in " ".join(user_talk().stderr.split())
    assert not list(user_talk.project.glob("started-*"))
    environ = {"ANTHROPIC_API_KEY": "sk-ant-api03-not-a-key-0123456789", "TEA_TOKEN": TOKEN}
    with_options = user_talk.box.options
    user_talk.box.options = ("--env", "TEA_TOKEN")
    assert user_talk(env=environ).status == 0
    user_talk.box.options = with_options
    assert (user_talk.project / "started-block").read_text() == f"block {TOKEN}\n"
    assert TOKEN not in (user_talk.state / ".claude.json").read_text()


def test_mcp_add_says_where_it_was_written(user_talk: Talk) -> None:
    add = ("--yes", "mcp", "add", "tea", "git")
    said = user_talk.box.claudebox(*add).stderr
    place = f"~/{(user_talk.state / '.claude.json').relative_to(user_talk.account.home)}"
    assert "that is for the boxes of this project; claude outside lacks it" in said
    assert said.endswith(f"It is in {place}\n")
    assert "tea" in load(user_talk.state / ".claude.json")["projects"][str(user_talk.project)]["mcpServers"]
    assert not (user_talk.account.home / ".claude.json").exists()
    for words in (("mcp", "list"), ("-p", "what is mcp?")):
        assert "claude outside lacks it" not in user_talk.box.claudebox("--yes", *words).stderr
