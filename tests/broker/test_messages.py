"""The broker's parser: what is clear passes whole, in whatever pieces it comes; what is not, is refused."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudebox.servers.broker.messages import (
    Framing,
    Malformed,
    Reader,
    RequestHead,
    Truncated,
    chunk,
    read_answer,
    read_body,
    read_request,
)

POST = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"


def in_pieces(data: bytes, sizes: list[int] | None = None) -> Callable[[int], bytes]:
    """A connection on which the data comes in pieces of these sizes, then one by one; or all at once."""
    left = bytearray(data)
    todo = list(sizes or [])

    def receive(limit: int) -> bytes:
        size = min(limit, len(left) if sizes is None else (todo.pop(0) if todo else 1))
        piece = bytes(left[:size])
        del left[:size]
        return piece

    return receive


def take(data: bytes, sizes: list[int] | None = None) -> tuple[RequestHead, bytes, bytes]:
    """Head, body, and what follows it."""
    reader = Reader(in_pieces(data, sizes))
    head = read_request(reader)
    body = b"".join(read_body(reader, head.framing))
    rest = b""
    with contextlib.suppress(Truncated):
        while True:
            rest += reader.some(1000)
    return head, body, rest


def test_request() -> None:
    head, body, rest = take(POST + b"X-App:\t cli \r\nContent-Length: 5\r\n\r\nhelloPOST")
    assert head == RequestHead(
        "POST",
        "/v1/messages",
        (("host", "localhost"), ("x-app", "cli"), ("content-length", "5")),
        Framing(5),
        keeps_open=True,
    )
    assert (body, rest) == (b"hello", b"POST")


def test_chunks() -> None:
    data = POST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n02 \r\nlo\r\n0\r\n\r\nrest"
    _, body, rest = take(data)
    assert (body, rest) == (b"hello", b"rest")


MALFORMED = {
    "both lengths": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both, other order": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
    "the same length twice": POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
    "list of lengths": POST + b"Content-Length: 5, 5\r\n\r\n",
    "signed length": POST + b"Content-Length: +5\r\n\r\n",
    "negative length": POST + b"Content-Length: -5\r\n\r\n",
    "hexadecimal length": POST + b"Content-Length: 0x5\r\n\r\n",
    "length with underscore": POST + b"Content-Length: 1_0\r\n\r\n",
    "length of other digits": POST + b"Content-Length: \xd9\xa5\r\n\r\n",
    "no length": POST + b"Content-Length:\r\n\r\n",
    "huge length": POST + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n",
    "other coding": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "coding twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    "coding with a parameter": POST + b"Transfer-Encoding: chunked;q=1\r\n\r\n",
    "identity coding": POST + b"Transfer-Encoding: identity\r\n\r\n",
    "vertical tab before the coding": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n",
    "space before the colon": POST + b"Content-Length : 5\r\n\r\n",
    "continued line": POST + b"X-App: a\r\n b\r\n\r\n",
    "continued by tab": POST + b"X-App: a\r\n\tContent-Length: 5\r\n\r\n",
    "continued first line": b"POST /v1/messages HTTP/1.1\r\n Host: localhost\r\n\r\n",
    "bare LF": b"POST /v1/messages HTTP/1.1\nHost: localhost\n\n\r\n\r\n",
    "bare LF in a header": POST + b"X-App: a\nContent-Length: 5\r\n\r\n",
    "bare CR in a header": POST + b"X-App: a\rContent-Length: 5\r\n\r\n",
    "NUL in a header": POST + b"X-App: a\0b\r\n\r\n",
    "byte beyond ASCII": POST + b"X-App: \xe9\r\n\r\n",
    "no name": POST + b": x\r\n\r\n",
    "no colon": POST + b"X-App\r\n\r\n",
    "name with a space": POST + b"X App: a\r\n\r\n",
    "name with a parenthesis": POST + b"X(App): a\r\n\r\n",
    "two hosts": POST + b"Host: example.org\r\n\r\n",
    "no host": b"POST /v1/messages HTTP/1.1\r\n\r\n",
    "two authorizations": POST + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
    "two keys": POST + b"X-Api-Key: a\r\nx-api-key: b\r\n\r\n",
    "two types": POST + b"Content-Type: a/b\r\nContent-Type: c/d\r\n\r\n",
    "empty line before": b"\r\n" + POST + b"\r\n",
    "two spaces": b"POST  /v1/messages HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "space in the target": b"POST /v1/mess ages HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tab in the target": b"POST\t/v1/messages HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no target": b"POST HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "target beyond ASCII": b"POST /v1/m\xc3\xa9ssages HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "long target": b"POST /" + b"a" * 4000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "method with other letters": b"PO/ST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP/1.0": b"POST /v1/messages HTTP/1.0\r\nHost: localhost\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/1.11": b"POST /v1/messages HTTP/1.11\r\nHost: localhost\r\n\r\n",
    "http/1.1": b"POST /v1/messages http/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "other expectation": POST + b"Expect: 200-ok\r\n\r\n",
    "too many headers": POST + b"X: y\r\n" * 200 + b"\r\n",
    "too large a head": POST + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
    "head without end": POST + b"X: y\r\n" * 50_000,
}


@pytest.mark.req("AUTH-03")
@pytest.mark.parametrize("what", MALFORMED)
def test_malformed_request_is_refused(what: str) -> None:
    with pytest.raises(Malformed):
        take(MALFORMED[what])


MALFORMED_CHUNKS = {
    "no size": b"\r\nhello\r\n0\r\n\r\n",
    "signed": b"+5\r\nhello\r\n0\r\n\r\n",
    "with 0x": b"0x5\r\nhello\r\n0\r\n\r\n",
    "with underscore": b"0_5\r\nhello\r\n0\r\n\r\n",
    "space before": b" 5\r\nhello\r\n0\r\n\r\n",
    "bare LF after the size": b"5\nhello\r\n0\r\n\r\n",
    "bare LF in the extension": b"5;\nhello\r\n0\r\n\r\n",
    "more than said": b"5\r\nhello!\r\n0\r\n\r\n",
    "bare LF after the chunk": b"5\r\nhello\n0\r\n\r\n",
    "long extension": b"5;" + b"x" * 10_000 + b"\r\nhello\r\n0\r\n\r\n",
    "huge": b"fffffffff\r\nhello\r\n0\r\n\r\n",
    "extension": b"5;a=b\r\nhello\r\n0\r\n\r\n",
    "trailer": b"0\r\nx: y\r\n\r\n",
    "trailer without a name": b"0\r\n x\r\n\r\n",
}


@pytest.mark.req("AUTH-03")
@pytest.mark.parametrize("what", MALFORMED_CHUNKS)
def test_malformed_chunks_are_refused(what: str) -> None:
    with pytest.raises(Malformed):
        take(POST + b"Transfer-Encoding: chunked\r\n\r\n" + MALFORMED_CHUNKS[what])


@pytest.mark.parametrize(
    "data",
    [
        POST,
        POST[:10],
        POST + b"Content-Length: 5\r\n\r\nhell",
        POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ],
)
def test_truncated_request_is_not_taken_for_a_whole_one(data: bytes) -> None:
    with pytest.raises(Truncated):
        take(data)


def answer(data: bytes) -> tuple[int, bytes, bool]:
    reader = Reader(in_pieces(data))
    head = read_answer(reader)
    return head.status, b"".join(read_body(reader, head.framing)), head.keeps_open


def test_answers() -> None:
    assert answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi") == (200, b"hi", True)
    assert answer(b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n") == (200, b"hi", True)
    assert answer(b"HTTP/1.1 200 OK\r\n\r\nuntil the end") == (200, b"until the end", False)
    assert answer(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n") == (200, b"", False)
    assert answer(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n") == (200, b"", False)
    assert answer(b"HTTP/1.1 204 No\r\n\r\n") == (204, b"", True)
    assert answer(b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")[0] == 200


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 20,
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 999 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\nb\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: a\r\n\r\n",
        b"hello\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
    ],
)
def test_malformed_answer_is_an_error(data: bytes) -> None:
    with pytest.raises(Malformed):
        answer(data)


BODIES = st.binary(max_size=300)
SIZES = st.lists(st.integers(1, 50), max_size=60)


@settings(max_examples=150, deadline=None)
@given(body=BODIES, cuts=st.lists(st.integers(1, 40), max_size=20), sizes=SIZES, is_chunked=st.booleans())
def test_pieces_do_not_matter(body: bytes, cuts: list[int], sizes: list[int], is_chunked: bool) -> None:
    if is_chunked:
        data, left = b"Transfer-Encoding: chunked\r\n\r\n", body
        for cut in [*cuts, len(body)]:
            data += chunk(left[:cut])
            left = left[cut:]
        data += b"0\r\n\r\n"
    else:
        data = b"Content-Length: %d\r\n\r\n" % len(body) + body
    _, found, rest = take(POST + data + b"NEXT", sizes)
    assert (found, rest) == (body, b"NEXT")


PARTS = st.sampled_from(
    [
        *(b"POST", b"GET", b" ", b"/v1/messages", b"HTTP/1.1", b"\r\n", b"\r", b"\n", b":", b"\t", b"\0", b";", b","),
        *(b"Host: localhost\r\n", b"Content-Length: 5\r\n", b"Content-Length:", b"Transfer-Encoding: chunked\r\n"),
        *(b"Transfer-Encoding:", b"chunked", b"\r\n\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n", b"0", b"5", b"hello"),
        *(b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"\xff", POST, POST + b"\r\n"),
    ]
)


@settings(max_examples=600, deadline=None)
@given(data=st.lists(st.one_of(PARTS, st.binary(max_size=8)), max_size=25).map(b"".join), sizes=SIZES)
def test_any_bytes_are_understood_in_one_way_or_refused(data: bytes, sizes: list[int]) -> None:
    """Whatever comes, nothing but these; the same in whatever pieces; and never with two ends."""
    outcomes = []
    for pieces in (None, sizes):
        try:
            outcomes.append(repr(take(data, pieces)))
        except (Malformed, Truncated) as error:
            outcomes.append(f"{type(error).__name__} {error}")
            continue
        names = [name for name, _ in take(data, pieces)[0].headers]
        assert names.count("content-length") + names.count("transfer-encoding") <= 1
        assert names.count("host") == 1
    assert outcomes[0] == outcomes[1]


@settings(max_examples=200, deadline=None)
@given(
    data=st.lists(st.one_of(PARTS, st.just(b"HTTP/1.1 200 OK\r\n"), st.binary(max_size=8)), max_size=20).map(b"".join)
)
def test_any_bytes_of_the_api_are_an_answer_or_an_error(data: bytes) -> None:
    with contextlib.suppress(Malformed, Truncated):
        answer(data)
