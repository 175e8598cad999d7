"""The login of a subscription: renewed early, under Claude's locks, and never lost."""

import errno
import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from broker.conftest import Start
from broker.login import FIRST, OTHERS, Issuer, log_in, stored
from broker.standin import Asked, Pieces, Server, hello, reply
from claudebox.features.broker.credential import parse_address
from claudebox.servers.broker.credentials import CLIENT, Fixed, Subscription, renew
from claudebox.servers.broker.policy import Revoked, Unavailable
from claudebox.servers.broker.upstream import Upstream, trust
from claudebox.state.login import Busy, Tokens, locked
from patience import PATIENCE, comes_true

HOUR = 3600.0
NO_TLS = trust("")  # once: it reads every certificate of this host, and the stand-ins speak plain HTTP
RENEWER = Path(__file__).with_name("renewer.py")

Login = Callable[..., Subscription]


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def login(tmp_path: Path, issuer: Issuer) -> Iterator[Login]:
    """A login for so many seconds, whose tokens the issuer renews."""
    with ExitStack() as stack:
        server = stack.enter_context(Server(issuer))

        def begin(seconds: float, **more: Any) -> Subscription:
            file = log_in(tmp_path / ".claude", seconds, **more)
            upstream = Upstream(parse_address(f"{server.url}/v1/oauth/token"), NO_TLS)
            return Subscription(str(file), str(file.parent), str(tmp_path / "lock"), partial(renew, upstream))

        yield begin


def access(login: Subscription) -> str:
    return dict(login.headers())["authorization"]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize(
    ("variable", "headers"),
    [
        ("ANTHROPIC_API_KEY", (("x-api-key", "v"),)),
        ("ANTHROPIC_AUTH_TOKEN", (("authorization", "Bearer v"),)),
        ("CLAUDE_CODE_OAUTH_TOKEN", (("authorization", "Bearer v"), ("anthropic-beta", "oauth-2025-04-20"))),
    ],
)
def test_what_the_environment_holds(variable: str, headers: tuple[tuple[str, str], ...]) -> None:
    assert Fixed(variable, "v").headers() == headers


@pytest.mark.req("AUTH-03")
def test_valid_login_is_used_as_it_is(login: Login, issuer: Issuer) -> None:
    assert access(login(HOUR)) == "Bearer access-token-0"
    assert issuer.grants == []


@pytest.mark.req("AUTH-03")
def test_login_is_renewed_early_and_stored_as_claude_does(login: Login, issuer: Issuer, tmp_path: Path) -> None:
    held = login(200)
    assert access(held) == "Bearer access-token-1"
    wish = {"grant_type": "refresh_token", "refresh_token": FIRST["refresh"], "client_id": CLIENT}
    assert issuer.grants == [{**wish, "scope": "user:inference user:profile"}]
    file = Path(held.file)
    content = json.loads(file.read_text())
    assert content["mcpOAuth"] == OTHERS["mcpOAuth"]
    assert stored(file)["refreshToken"] == "refresh-token-1"
    assert stored(file)["subscriptionType"] == "max"
    assert stored(file)["expiresAt"] / 1000 == pytest.approx(time.time() + 8 * HOUR, abs=60)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert names(file.parent) == [".credentials.json"]
    assert names(tmp_path) == [".claude", "lock"]
    assert held.secrets == {"access-token-0", "refresh-token-0", "access-token-1", "refresh-token-1"}


@pytest.mark.req("AUTH-03")
def test_locks_are_claudes_and_in_its_order(login: Login, tmp_path: Path) -> None:
    held = login(0)
    seen: list[list[str]] = []
    exchange = held.exchange

    def watched(tokens: Tokens) -> Tokens:
        seen.append([*names(tmp_path), *names(tmp_path / ".claude")])
        return exchange(tokens)

    held.exchange = watched
    access(held)
    assert {".claude.lock", ".oauth_refresh.lock"} < set(seen[0])
    assert ".storage-write.lock" not in seen[0]


def test_what_somebody_else_stored_is_adopted(login: Login, issuer: Issuer) -> None:
    held = login(0)
    lock = Path(held.directory, ".oauth_refresh.lock")
    lock.mkdir()

    def other() -> None:
        time.sleep(0.5)
        log_in(Path(held.directory), HOUR, 7)
        lock.rmdir()

    thread = threading.Thread(target=other)
    thread.start()
    assert access(held) == "Bearer access-token-7"
    thread.join()
    assert (issuer.grants, issuer.refused) == ([], [])


@pytest.mark.parametrize("name", [".oauth_refresh.lock", "../.claude.lock", ".storage-write.lock"])
def test_lock_of_a_dead_process_is_taken_over(login: Login, issuer: Issuer, name: str) -> None:
    held = login(0)
    lock = Path(held.directory, name)
    lock.mkdir()
    os.utime(lock, (time.time() - 20, time.time() - 20))
    assert access(held) == "Bearer access-token-1"
    assert not lock.exists()
    assert stored(Path(held.file))["accessToken"] == "access-token-1"


def test_lock_is_kept_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claudebox.state.login.HEARTBEAT_SECONDS", 0.05)
    lock = tmp_path / "lock"
    with locked((str(lock), 10), stays_fresh=True):
        os.utime(lock, (0, 0))
        assert comes_true(lambda: lock.stat().st_mtime > 0)
        with pytest.raises(Busy), locked((str(lock), 10)):
            pass
        assert lock.exists()
    assert not lock.exists()


@pytest.mark.req("AUTH-03")
def test_refused_token_is_renewed_and_the_request_made_again(start: Start, login: Login, issuer: Issuer) -> None:
    def picky(asked: Asked) -> Pieces:
        if asked.header("authorization") == "Bearer access-token-0":
            yield reply({"error": "expired"}, 401)
        else:
            yield from hello(asked)

    broker = start(picky, credential=login(HOUR))
    with broker.client() as client:
        answers = [client.ask(b"body %d" % number) for number in range(2)]
    assert [answer.status for answer in answers] == [200, 200]
    assert [asked.body for asked in broker.api.asked] == [b"body 0", b"body 0", b"body 1"]
    assert [asked.header("anthropic-beta") for asked in broker.api.asked] == ["oauth-2025-04-20"] * 3
    assert len(issuer.grants) == 1


@pytest.mark.req("AUTH-03")
def test_401_never_reaches_the_box(start: Start, login: Login, issuer: Issuer) -> None:
    broker = start(lambda _: iter([reply({"error": "no"}, 401)]), credential=login(HOUR))
    assert broker.ask().status == 403
    assert len(broker.api.asked) == 2
    assert issuer.grants


@pytest.mark.req("AUTH-03")
def test_box_cannot_have_the_login_renewed_again_and_again(start: Start, login: Login, issuer: Issuer) -> None:
    """With requests that the API answers with a 401, whatever the token."""
    running = start(lambda _: iter([reply({}, 401)]), credential=login(HOUR))
    with running.client() as client:
        answers = [client.ask() for _ in range(5)]
    assert {answer.status for answer in answers} == {403}
    assert len(issuer.grants) == 1


def test_secrets_can_be_looked_through_while_one_is_added(login: Login) -> None:
    held = login(HOUR)
    access(held)
    looking = iter(held.secrets)
    held.renew(held.headers())
    assert set(looking) == {"access-token-0", "refresh-token-0"}
    assert "access-token-1" in held.secrets


@pytest.mark.req("AUTH-03")
def test_revoked_login_says_what_to_do_and_works_again_after_it(start: Start, login: Login, issuer: Issuer) -> None:
    issuer.has_ended = True
    held = login(-HOUR)
    broker = start(credential=held)
    with broker.client() as client:
        for _ in range(3):
            answer = client.ask()
            assert answer.status == 403
            assert "/login" in json.loads(answer.body)["error"]["message"]
        assert issuer.refused == ["refresh-token-0"]  # asked once, not with each request
        assert stored(Path(held.file))["refreshToken"] == "refresh-token-0"  # and never blanked
        log_in(Path(held.directory), HOUR, 9)
        assert client.ask().status == 200
    assert broker.api.asked[-1].header("authorization") == "Bearer access-token-9"


def test_valid_token_is_used_while_it_cannot_be_renewed(login: Login) -> None:
    def fails(_: object) -> Tokens:
        raise Unavailable("no network")

    soon, late = login(200), login(-1)
    late.exchange = soon.exchange = fails
    log_in(Path(soon.directory), 200)
    assert access(soon) == "Bearer access-token-0"
    log_in(Path(late.directory), -1)
    with pytest.raises(Unavailable):
        late.headers()


@pytest.mark.req("AUTH-03")
def test_full_disk_is_noticed_before_the_refresh_token_is_used(
    login: Login, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    held = login(-1)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(Unavailable, match="No space left"):
        held.headers()
    assert issuer.grants == []
    assert names(Path(held.directory)) == [".credentials.json"]


def test_what_could_not_be_stored_is_kept_and_stored_later(
    login: Login, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    held = login(-1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", broken)
        assert access(held) == "Bearer access-token-1"
    assert stored(Path(held.file))["refreshToken"] == "refresh-token-0"
    assert access(held) == "Bearer access-token-1"
    assert stored(Path(held.file))["refreshToken"] == "refresh-token-1"
    assert len(issuer.grants) == 1


def test_nobody_is_waited_for_at_the_end(login: Login, issuer: Issuer, tmp_path: Path) -> None:
    held = login(0)
    Path(held.directory, ".oauth_refresh.lock").mkdir()

    def ask() -> None:
        with pytest.raises(Unavailable):
            held.headers()

    thread = threading.Thread(target=ask)
    thread.start()
    assert comes_true((tmp_path / "lock").exists)
    held.settle()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert issuer.grants == []


def test_refresh_token_used_by_a_box_is_no_logout(login: Login, issuer: Issuer) -> None:
    """A box with a login of its own renews without our locks, and stores what it got a moment later."""
    held = login(-1)
    issuer.has_ended = True
    timer = threading.Timer(0.5, log_in, (Path(held.directory), HOUR, 5))
    timer.start()
    assert access(held) == "Bearer access-token-5"
    timer.join()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"claudeAiOauth": 3}', '{"claudeAiOauth": {"accessToken": ""}}', "[" * 100_000]
)
def test_what_is_no_login_is_none(login: Login, content: str) -> None:
    held = login(HOUR)
    Path(held.file).write_text(content)
    with pytest.raises(Revoked):
        held.headers()


@pytest.mark.parametrize(
    "answer",
    [
        reply({"access_token": 3, "expires_in": 9}),
        reply(b'{"access_token": "a", "expires_in": NaN}'),
        reply(b'{"access_token": "a", "expires_in": 1e999}'),
        reply(b"no json"),
        reply({"error": "overloaded"}, 500),
        reply({"error": "invalid_request"}, 400),
        reply(b"x" * 100_000),
        b"hello\r\n\r\n",
        b"",
    ],
)
def test_anything_else_from_the_issuer_is_no_logout(tmp_path: Path, answer: bytes) -> None:
    file = log_in(tmp_path / ".claude", -1)
    before = file.read_text()

    def once(_: Asked) -> Pieces:
        yield answer
        raise ConnectionResetError

    with Server(once) as server:
        endpoint = Upstream(parse_address(server.url), NO_TLS)
        held = Subscription(str(file), str(file.parent), str(tmp_path / "lock"), partial(renew, endpoint))
        with pytest.raises(Unavailable):
            held.headers()
    assert file.read_text() == before
    assert names(file.parent) == [".credentials.json"]


@pytest.mark.req("AUTH-03")
@pytest.mark.parametrize(
    "renewals",
    [
        pytest.param(5, marks=pytest.mark.slow("waits for tokens to become old")),
        pytest.param(100, marks=pytest.mark.exhaustive("a longer storm")),
    ],
)
def test_storm_of_renewals_never_loses_the_login(tmp_path: Path, renewals: int) -> None:
    """Five brokers and a Claude on the host, many times around a refresh token that is good for one use."""
    issuer = Issuer(valid_seconds=300.03)
    file = log_in(tmp_path / ".claude", 0)
    with Server(issuer) as server:
        words = [str(file), f"{server.url}/v1/oauth/token", str(tmp_path / "lock"), str(tmp_path / "enough")]
        kinds = ["broker"] * 5 + ["claude"]
        everybody = [
            subprocess.Popen(
                [sys.executable, "-W", "ignore", str(RENEWER), kind, *words], stdout=subprocess.PIPE, text=True
            )
            for kind in kinds
        ]

        def has_seen_enough() -> bool:
            """Chance may give the first renewals all to Claude: the lock is there once a broker had its turn."""
            return len(issuer.grants) >= renewals and (tmp_path / "lock").exists()

        assert comes_true(lambda: has_seen_enough() or any(process.poll() for process in everybody))
        (tmp_path / "enough").touch()
        results = [process.communicate(timeout=PATIENCE)[0] for process in everybody]
    assert [process.returncode for process in everybody] == [0] * 6
    assert issuer.refused == []
    assert len(issuer.grants) >= renewals
    used = {token for result in results for token in json.loads(result)}
    assert used <= {f"access-token-{number}" for number in range(issuer.number + 1)}
    assert stored(file)["refreshToken"] == f"refresh-token-{issuer.number}"
    assert names(tmp_path) == [".claude", "enough", "lock"]
    assert names(file.parent) == [".credentials.json"]
