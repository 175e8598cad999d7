"""The real Claude Code in a box without any network: the broker is its only way out."""

import json

import pytest

from broker.login import Issuer, log_in, stored
from broker.standin import Server
from broker.talk import API_KEY, Talk, is_over
from claude.session import ANSWER
from claude.test_interactive import PROMPT, QUESTIONS, screen
from conftest import CLAUDEBOX
from patience import comes_true

# They look for brokers, and an ordinary user sees those of the other workers.
pytestmark = [pytest.mark.req("AUTH-03"), pytest.mark.xdist_group("broker")]


def test_claude_works_without_a_network(with_key: Talk) -> None:
    done = with_key()
    assert (done.returncode, done.stdout) == (0, ANSWER + "\n"), done.stderr
    assert {headers.get("x-api-key") for headers in with_key.seen} == {API_KEY}
    assert {headers.get("authorization") for headers in with_key.seen} == {None}


def test_claude_runs_tools_and_continues(user_with_key: Talk) -> None:
    talk = user_with_key
    done = talk(commands=("echo from-the-$((40 + 2))",))
    assert done.returncode == 0, done.stderr
    assert "from-the-42" in talk.results[0]
    done = talk("--continue")
    assert done.returncode == 0, done.stderr
    assert "from-the-42" in json.dumps(talk.requests)


def test_subscription_is_used_and_renewed(talk: Talk) -> None:
    file = log_in(talk.account.home / ".claude", 0)
    talk.account.own(file.parent)
    issuer = Issuer()
    with Server(issuer) as server:
        talk.environ["CLAUDEBOX_TOKEN_URL"] = f"{server.url}/v1/oauth/token"
        done = talk(commands=("env; cat ~/.claude/.credentials.json",))
    assert done.returncode == 0, done.stderr
    assert {headers.get("authorization") for headers in talk.seen} == {"Bearer access-token-1"}
    assert all("oauth-2025-04-20" in headers["anthropic-beta"] for headers in talk.seen)
    assert stored(file)["refreshToken"] == "refresh-token-1"
    assert (file.stat().st_uid, issuer.refused) == (talk.account.uid, [])
    assert "CLAUDE_CODE_SUBSCRIPTION_TYPE=max\n" in talk.inside("env").stdout
    assert not any(secret in json.dumps(talk.requests) for secret in ("access-token", "refresh-token"))


def test_each_box_has_a_token_of_its_own(user_with_key: Talk) -> None:
    first, second = (user_with_key.inside("echo $ANTHROPIC_AUTH_TOKEN").stdout.strip() for _ in range(2))
    assert first != second
    assert min(len(first), len(second)) >= 32


def test_limits_and_the_log_of_a_box(user_with_key: Talk) -> None:
    talk = user_with_key
    with talk.api("true", "true"):
        words = talk.words("--auth-limit", "requests=1", "-p", "do it")
        done = talk.box.claudebox(*words, env=talk.environ)
    assert "used up its 1 request (" in done.stdout + done.stderr
    log = talk.box.claudebox("--auth-log", env=talk.environ)
    assert log.returncode == 0, log.stderr
    assert "  messages  claude" in log.stdout
    assert API_KEY not in log.stdout


@pytest.mark.req("UX-06")
@pytest.mark.parametrize("kind", ["key", "login"])
@pytest.mark.tmux
def test_claude_on_a_terminal(user_with_key: Talk, kind: str) -> None:
    talk = user_with_key
    if kind == "login":
        talk.account.own(log_in(talk.account.home / ".claude", 3600).parent)
        del talk.environ["ANTHROPIC_API_KEY"]
    with talk.api("echo it-ran > marker"):
        words = [CLAUDEBOX, *talk.words()]
        with screen(talk.account, words, str(talk.box.project), talk.environ) as opened:
            assert opened.shows(PROMPT), opened.text()
            assert [question for question in QUESTIONS if question in opened.text()] == []
            opened.type("please do it", "Enter")
            assert opened.shows(ANSWER), opened.text()
            assert (talk.box.project / "marker").read_text() == "it-ran\n"
            assert opened.leave(), opened.text()
    assert comes_true(lambda: is_over(talk))


def test_twenty_turns(user_with_key: Talk) -> None:
    commands = tuple(f"echo turn-{number}" for number in range(20))
    done = user_with_key(commands=commands)
    assert (done.returncode, done.stdout) == (0, ANSWER + "\n"), done.stderr
    assert [f"turn-{number}" in text for number, text in enumerate(user_with_key.results)] == [True] * 20


def test_revoked_login_is_told_and_not_retried(user_with_key: Talk) -> None:
    talk = user_with_key
    del talk.environ["ANTHROPIC_API_KEY"]
    talk.account.own(log_in(talk.account.home / ".claude", 0).parent)
    with Server(Issuer(has_ended=True)) as server:
        talk.environ["CLAUDEBOX_TOKEN_URL"] = f"{server.url}/v1/oauth/token"
        done = talk()
        renewals = len(server.asked)
    assert done.returncode == 1
    assert "type /login" in done.stdout
    assert renewals == 1


@pytest.mark.root_repeats("Claude sees the same home and the same user in the box of either")
def test_an_older_claude_works_without_a_network(with_key: Talk, old_claude: str) -> None:
    with_key.claude = old_claude
    done = with_key()
    assert (done.returncode, done.stdout) == (0, ANSWER + "\n"), done.stderr
