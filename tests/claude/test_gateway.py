"""Who gets the key, with the real Claude Code: a gateway, somebody else's address, and a proxy in between."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from broker.standin import Server, hello
from claude.api import StandIn
from claude.session import QUIET, Talk
from claude.test_interactive import PROMPT, screen
from conftest import CLAUDEBOX

KEY = "sk-ant-api03-of-the-gateway-0123456789"


class Street:
    """Three who listen: the gateway that the key belongs to, somebody else, and a proxy."""

    def __init__(self, stack: ExitStack) -> None:
        self.gateway, self.other, self.proxy = (stack.enter_context(Server(hello)) for _ in range(3))

    def got_key(self) -> dict[str, set[str]]:
        listeners = {"gateway": self.gateway, "other": self.other, "proxy": self.proxy}
        asked = {
            name: [one for one in server.asked if one.line.startswith("POST")] for name, server in listeners.items()
        }
        return {name: {one.header("x-api-key") for one in got} for name, got in asked.items() if got}


@pytest.fixture
def street() -> Iterator[Street]:
    with ExitStack() as stack:
        yield Street(stack)


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}"


def ask(talk: Talk, *options: str, **env: str) -> None:
    words = ("--yes", *QUIET, *options, "-p", "hi")
    done = talk.box.claudebox(*words, env=env)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.req("SEC-01")
def test_key_goes_to_the_gateway_of_the_shell_and_not_to_the_proxy(user_talk: Talk, street: Street) -> None:
    env = {"ANTHROPIC_BASE_URL": address(street.gateway), "ANTHROPIC_API_KEY": KEY}
    ask(user_talk, **env, HTTPS_PROXY=address(street.proxy), HTTP_PROXY=address(street.proxy))
    assert street.got_key() == {"gateway": {KEY}}


@pytest.mark.req("SEC-01", "INST-02")
def test_key_goes_to_the_gateway_of_the_settings(user_talk: Talk, street: Street) -> None:
    settings = {"env": {"ANTHROPIC_BASE_URL": address(street.gateway)}}
    user_talk.account.write(user_talk.account.home / ".claude/settings.json", json.dumps(settings))
    ask(user_talk, ANTHROPIC_BASE_URL=address(street.other), ANTHROPIC_API_KEY=KEY)
    assert street.got_key() == {"gateway": {KEY}}


@pytest.mark.req("AUTH-03", "SEC-01")
def test_broker_takes_the_address_that_the_box_was_to_have(user_talk: Talk, street: Street) -> None:
    env = {"ANTHROPIC_BASE_URL": address(street.gateway), "ANTHROPIC_API_KEY": KEY}
    options = ("--auth", "broker", "--network", "none")
    ask(user_talk, *options, **env, CLAUDEBOX_EXTRA_ENV="ANTHROPIC_BASE_URL", HTTP_PROXY=address(street.proxy))
    assert street.got_key() == {"gateway": {KEY}}


@pytest.mark.req("SEC-01")
def test_settings_of_the_project_lead_the_key_away_which_is_flagged(user_talk: Talk, street: Street) -> None:
    """That is what Claude does. The user sees the address before the start."""
    settings = {"env": {"ANTHROPIC_BASE_URL": address(street.other)}}
    user_talk.account.write(user_talk.project / ".claude/settings.json", json.dumps(settings))
    words = ("--yes", *QUIET, "-p", "hi")
    done = user_talk.box.claudebox(*words, env={"ANTHROPIC_API_KEY": KEY})
    assert street.got_key() == {"other": {KEY}}
    said = " ".join(done.stderr.split())
    assert "! .claude/settings.json: changes where Claude sends its requests" in said
    assert address(street.other) in said


@pytest.mark.req("INST-02", "SAND-15")
@pytest.mark.tmux
@pytest.mark.parametrize(
    "program", ["iTerm.app", pytest.param("vscode", marks=pytest.mark.exhaustive("it repeats the other one"))]
)
def test_claude_draws_itself_in_every_terminal_and_with_your_status_line(user_talk: Talk, program: str) -> None:
    home = user_talk.account.home
    settings = {"statusLine": {"type": "command", "command": "~/.claude/line.sh"}}
    user_talk.account.write(home / ".claude/settings.json", json.dumps(settings))
    user_talk.account.write(home / ".claude/line.sh", "#!/bin/sh\necho line-of-$TERM_PROGRAM-$COLORTERM\n", mode=0o755)
    env = {"ANTHROPIC_API_KEY": KEY, "COLORTERM": "truecolor"}
    # tmux says that it is one itself.
    with (
        StandIn() as api,
        screen(
            user_talk.account,
            ["env", f"TERM_PROGRAM={program}", CLAUDEBOX, *user_talk.words(api)],
            str(user_talk.project),
            env,
        ) as opened,
    ):
        assert opened.shows(PROMPT), opened.text()
        assert opened.shows(f"line-of-{program}-truecolor"), opened.text()
        assert opened.leave(), opened.text()
        assert "status=0" in opened.text()
