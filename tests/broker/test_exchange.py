"""A request of the box, through the broker, to a stand-in for the API and back."""

import json
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from broker.client import Client
from broker.conftest import DUMMY, KEY, Start
from broker.login import log_in
from broker.standin import Asked, Close, Pieces, chunked, hello, message, reply
from claudebox.model import Proxy
from claudebox.servers.broker.credentials import Subscription
from claudebox.servers.broker.messages import Truncated, read_answer, read_body
from claudebox.servers.broker.policy import Unavailable
from claudebox.servers.broker.usage import Allowance
from claudebox.state.login import Tokens
from patience import PATIENCE, comes_true
from reference import FIELDS

HEAD = f"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: {DUMMY}\r\n"
EMPTY = f"{HEAD}Content-Length: 0\r\n\r\n".encode()


@pytest.mark.req("AUTH-03")
def test_the_api_gets_the_key_and_the_box_the_answer(start: Start) -> None:
    broker = start()
    answer = broker.ask(b'{"model": "m"}', headers="Cookie: a=b\r\nX-App: cli\r\n")
    assert (answer.status, answer.body) == (200, b"".join(message()))
    assert sorted(answer.headers) == ["content-type", "transfer-encoding"]
    asked = broker.api.asked[0]
    assert (asked.line, asked.body) == ("POST /v1/messages?beta=true HTTP/1.1", b'{"model": "m"}')
    assert dict(asked.headers) == {
        "host": f"localhost:{broker.api.port}",
        "x-app": "cli",
        "accept-encoding": "identity",
        "x-api-key": KEY,
        "content-length": "14",
    }


@pytest.mark.req("AUTH-03")
def test_journal_tells_what_was_used_and_not_what_was_said(start: Start) -> None:
    broker = start()
    with broker.client() as client:
        client.ask(b'{"messages": "secret plan"}')
        client.ask(target="/v1/organizations/me")
    assert comes_true(lambda: len(broker.journal) == 2)
    first, second = broker.journal
    assert {name: first[name] for name in ("path", "model", "input_tokens", "output_tokens", "status")} == {
        "path": "/v1/messages",
        "model": "claude-test",
        "input_tokens": 15,
        "output_tokens": 7,
        "status": 200,
    }
    assert (second["path"], second["status"]) == ("/v1/organizations/me", 404)
    assert {f"auth_log[].{field}" for entry in broker.journal for field in entry} == set(FIELDS["--auth-log"])
    assert not {"secret plan", "hello", KEY, DUMMY} & set(json.dumps(broker.journal).split('"'))


def test_journal_cannot_be_flooded_with_what_is_refused(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claudebox.servers.broker.usage.MOST_REFUSALS", 3)
    broker = start()
    with broker.client() as client:
        assert client.ask().status == 200
        assert {client.ask(target="/v1/files").status for _ in range(10)} == {404}
        assert client.ask().status == 200
    assert [entry["status"] for entry in broker.journal] == [200, 404, 404, 404, 200]


def test_connections_are_kept_on_both_sides(start: Start) -> None:
    broker = start()
    with broker.client() as client:
        assert [client.ask().status for _ in range(5)] == [200] * 5
    assert broker.api.connections == 1


@pytest.mark.req("AUTH-03")
def test_refused_request_reaches_nobody_and_the_next_one_passes(start: Start) -> None:
    broker = start()
    with broker.client() as client:
        for target in (
            "/api/oauth/claude_cli/create_api_key",
            "/v1/messages/../models",
            "http://localhost/v1/messages",
        ):
            answer = client.ask(b"x" * 100_000, target=target)
            assert answer.status == 404
            assert json.loads(answer.body)["error"]["message"].startswith("claudebox: ")
            assert answer.headers["x-should-retry"] == "false"
        assert client.ask().status == 200
    assert len(broker.api.asked) == 1


@pytest.mark.req("AUTH-03")
def test_token_is_demanded(start: Start) -> None:
    broker = start()
    with Client(broker.port, "wrong") as client:
        assert client.ask().status == 403
    assert broker.api.asked == []


@pytest.mark.req("AUTH-03")
def test_malformed_request_ends_the_connection(start: Start) -> None:
    broker = start()
    smuggled = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer dummy-of-this-box\r\n"
    for headers in (
        b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Content-Length: 3\r\n x: y\r\n\r\n",
    ):
        with broker.client() as client:
            assert client.raw(smuggled + headers + smuggled).status == 400
            assert client.is_closed
    assert broker.api.asked == []


def test_chunked_request_is_framed_anew(start: Start) -> None:
    broker = start()
    with broker.client() as client:
        head = f"{HEAD}Transfer-Encoding: chunked\r\n\r\n"
        assert client.raw(head.encode() + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").status == 200
    assert broker.api.asked[0].body == b"abcde"
    assert broker.api.asked[0].header("transfer-encoding") == ""


def test_too_large_a_request_is_refused(start: Start) -> None:
    broker = start()
    with broker.client() as client:
        assert client.raw(f"{HEAD}Content-Length: {1 << 30}\r\n\r\n".encode()).status == 413
    assert broker.api.asked == []


def test_large_bodies_pass_both_ways(start: Start) -> None:
    big = bytes(range(256)) * 20_000  # 5 MB

    def echo(asked: Asked) -> Pieces:
        yield reply(asked.body, headers="content-type: application/octet-stream\r\n")

    assert start(echo).ask(big).body == big


@pytest.mark.req("AUTH-03")
@pytest.mark.parametrize("cut", [None, 5])
def test_answer_with_the_key_is_cut(start: Start, cut: int | None) -> None:
    def leak(asked: Asked) -> Pieces:
        text = f"before {asked.header('x-api-key')} after".encode()
        pieces = [text] if cut is None else [text[start : start + cut] for start in range(0, len(text), cut)]
        yield from chunked(*pieces)

    broker = start(leak)
    with broker.client() as client:
        client.socket.sendall(EMPTY)
        received = b""
        while piece := client.socket.recv(4096):
            received += piece
    assert b"sk-" not in received
    assert not received.endswith(b"0\r\n\r\n")


@pytest.mark.req("AUTH-03")
def test_headers_with_the_key_are_left_out(start: Start) -> None:
    broker = start(lambda _: iter([reply({}, headers=f"request-id: {KEY}\r\nretry-after: 1\r\nlocation: /x\r\n")]))
    assert sorted(broker.ask().headers) == ["content-type", "retry-after", "transfer-encoding"]


def test_what_cannot_be_looked_into_is_refused(start: Start) -> None:
    broker = start(lambda _: iter([reply(b"hello", headers="content-encoding: gzip\r\n")]))
    assert broker.ask().status == 502


@pytest.mark.req("AUTH-03")
def test_redirect_is_not_followed(start: Start) -> None:
    other = start()
    broker = start(lambda _: iter([reply({}, 307, f"location: {other.api.url}/v1/messages\r\n")]))
    answer = broker.ask()
    assert (answer.status, "location" in answer.headers) == (502, False)
    assert (len(broker.api.asked), other.api.asked) == (1, [])


def test_errors_of_the_api_pass_with_what_claude_needs_to_wait(start: Start) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}
    statuses = [400, 403, 404, 413, 429, 500, 529]
    coming = iter(statuses)
    broker = start(lambda _: iter([reply(error, next(coming), "retry-after: 7\r\nx-should-retry: true\r\n")]))
    with broker.client() as client:
        for status in statuses:
            answer = client.ask()
            assert (answer.status, json.loads(answer.body)) == (status, error)
            assert (answer.headers["retry-after"], answer.headers["x-should-retry"]) == ("7", "true")
    assert len(broker.api.asked) == len(statuses)


@pytest.mark.req("AUTH-03")
def test_a_refused_key_never_reaches_the_box_as_401(start: Start) -> None:
    broker = start(lambda _: iter([reply({"error": "invalid x-api-key"}, 401)]))
    answer = broker.ask()
    assert answer.status == 403
    assert "ANTHROPIC_API_KEY" in json.loads(answer.body)["error"]["message"]


def test_answers_are_streamed(start: Start) -> None:
    go = threading.Event()

    def slow(_: Asked) -> Pieces:
        first, *rest = chunked(b"one", b"two")
        yield first
        yield rest[0]
        go.wait(PATIENCE)
        yield from rest[1:]

    with start(slow).client() as client:
        client.socket.sendall(EMPTY)
        head = read_answer(client.reader)
        pieces = read_body(client.reader, head.framing)
        assert next(pieces) == b"one"
        go.set()
        assert list(pieces) == [b"two"]


def test_end_in_the_middle_of_an_answer_is_seen(start: Start) -> None:
    def closing(_: Asked) -> Pieces:
        yield from list(chunked(*message()))[:3]
        raise Close

    with start(closing).client() as client, pytest.raises(Truncated):
        client.ask()


def test_end_before_an_answer_is_an_error_that_claude_understands(start: Start) -> None:
    def closing(asked: Asked) -> Pieces:
        raise Close

    broker = start(closing)
    answer = broker.ask()
    assert (answer.status, answer.headers["x-should-retry"]) == (502, "true")
    assert len(broker.api.asked) == 1  # it may have been understood: not sent again


def test_connection_that_was_closed_is_not_kept(start: Start) -> None:
    """Closed in the very moment of a request, it is an error after which Claude asks again."""
    calls = iter(range(10))

    def closing(asked: Asked) -> Pieces:
        number = next(calls)
        if number == 1:
            raise Close
        yield from hello(asked)
        if number == 2:
            raise Close

    broker = start(closing)
    with broker.client() as client:
        answers = [client.ask() for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 502, 200]
        assert answers[1].headers["x-should-retry"] == "true"
        assert comes_true(lambda: not any(one.is_usable for one in broker.session.upstream.idle))
        assert client.ask().status == 200


def test_who_goes_away_takes_the_request_along(start: Start) -> None:
    """An answer that nobody reads would cost tokens."""
    noticed = threading.Event()

    def endless(_: Asked) -> Pieces:
        with suppress(GeneratorExit):
            yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n"
            try:
                while True:
                    time.sleep(0.05)
                    yield b"1\r\nb\r\n"
            finally:
                noticed.set()

    broker = start(endless)
    client = broker.client()
    client.socket.sendall(EMPTY)
    read_answer(client.reader)
    client.socket.close()
    assert noticed.wait(PATIENCE)
    assert comes_true(lambda: broker.session.meter.streams == 0)


def test_who_goes_away_before_the_answer_takes_the_request_along(start: Start) -> None:
    over = threading.Event()

    def silent(_: Asked) -> Pieces:
        over.wait(PATIENCE)
        yield b""

    broker = start(silent)
    client = broker.client()
    client.socket.sendall(EMPTY)
    assert comes_true(lambda: broker.session.meter.streams == 1)
    client.socket.close()
    assert comes_true(lambda: broker.session.meter.streams == 0, PATIENCE / 2)
    over.set()


@pytest.mark.parametrize(
    ("limits", "asked"),
    [(Allowance(requests=2), 2), (Allowance(tokens=30), 2), (Allowance(tokens=1), 1)],
)
def test_limits_hold(start: Start, limits: Allowance, asked: int) -> None:
    broker = start(limits=limits)
    with broker.client() as client:
        answers = [client.ask() for _ in range(5)]
    assert [answer.status for answer in answers] == [200] * asked + [403] * (5 - asked)
    assert "used up" in json.loads(answers[-1].body)["error"]["message"]
    assert [entry["status"] for entry in broker.journal] == [answer.status for answer in answers]
    assert len(broker.api.asked) == asked


@pytest.mark.parametrize(("read", "used"), [(0, 100), (1, 16), (31, 15 + 30)])
def test_who_goes_away_before_the_sum_has_used_tokens_all_the_same(start: Start, read: int, used: int) -> None:
    first, _, delta, *_ = message()
    over = threading.Event()

    def unfinished(_: Asked) -> Pieces:
        pieces = [first, *[delta] * 100][:read]
        if pieces:
            yield from list(chunked(*pieces))[:-1]
        over.wait(PATIENCE)

    broker = start(unfinished)
    with broker.client() as client:
        head = f"{HEAD}Content-Length: 400\r\n\r\n"
        client.socket.sendall(head.encode() + b" " * 400)
        assert comes_true(lambda: len(broker.api.asked) == 1)
        seen = b""
        while seen.count(b"event: ") < read:
            seen += client.socket.recv(1 << 16)
    assert comes_true(lambda: broker.session.meter.tokens > 0, PATIENCE / 2)
    over.set()
    assert broker.session.meter.tokens == used


def test_time_is_limited(start: Start) -> None:
    broker = start(limits=Allowance(minutes=1))
    broker.session.meter.started -= 60
    assert broker.ask().status == 403


def test_streams_are_limited(start: Start) -> None:
    go = threading.Event()

    def slow(asked: Asked) -> Pieces:
        go.wait(PATIENCE)
        yield from hello(asked)

    broker = start(slow, limits=Allowance(streams=1))
    with broker.client() as first, broker.client() as second:
        thread = threading.Thread(target=first.ask)
        thread.start()
        assert comes_true(lambda: broker.session.meter.streams == 1)
        answer = second.ask()
        assert (answer.status, answer.headers["x-should-retry"]) == (429, "true")
        go.set()
        thread.join()
        assert second.ask().status == 200


def test_fifty_streams_at_once(start: Start) -> None:
    broker = start()
    statuses: list[int] = []

    def ask() -> None:
        with broker.client() as client:
            statuses.extend(client.ask(b"x" * 10_000).status for _ in range(4))

    threads = [threading.Thread(target=ask) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 200


def test_large_requests_wait_for_each_other(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A box must not fill the host's memory. What is small passes meanwhile."""
    monkeypatch.setattr("claudebox.servers.broker.usage.MOST_LARGE", 1)
    broker = start()
    large = b"x" * (2 << 20)
    head = f"{HEAD}Content-Length: {len(large)}\r\n\r\n"
    with broker.client() as first, broker.client() as second, broker.client() as third:
        first.socket.sendall(head.encode() + large[:-1])
        assert comes_true(lambda: broker.session.meter.large._value == 0)
        statuses: list[int] = []
        thread = threading.Thread(target=lambda: statuses.append(second.ask(large).status))
        thread.start()
        assert third.ask().status == 200
        time.sleep(0.2)
        assert statuses == []
        assert first.raw(b"x").status == 200
        thread.join()
        assert statuses == [200]


def test_too_many_connections_wait_until_others_have_ended(start: Start) -> None:
    broker = start()
    clients = [broker.client() for _ in range(128)]
    assert clients[-1].ask().status == 200
    with broker.client() as one_more:
        one_more.socket.sendall(EMPTY)
        one_more.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            one_more.read()
        one_more.socket.settimeout(PATIENCE)
        for client in clients:
            client.socket.close()
        assert one_more.read().status == 200


def test_no_connection_is_an_error_that_claude_understands(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    broker = start(url=f"https://localhost:{port}")
    answer = broker.ask()
    assert (answer.status, answer.headers["x-should-retry"]) == (502, "true")
    assert "Connection refused" in json.loads(answer.body)["error"]["message"]


def test_box_does_not_hear_which_proxy_this_host_has(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    broker = start(proxy=Proxy("127.0.0.1", port))
    message = json.loads(broker.ask().body)["error"]["message"]
    assert message == "claudebox: the API cannot be reached: through the proxy of this host: Connection refused"


def test_login_that_cannot_be_renewed_is_no_api_that_cannot_be_reached(start: Start, tmp_path: Path) -> None:
    def exchange(_: Tokens) -> Tokens:
        raise Unavailable("the login cannot be renewed: no answer in time")

    file = log_in(tmp_path / ".claude", 0)
    broker = start(credential=Subscription(str(file), str(file.parent), str(tmp_path / "lock"), exchange))
    message = json.loads(broker.ask().body)["error"]["message"]
    assert message == "claudebox: the login cannot be renewed: no answer in time"
