"""What an answer is counted as, however it arrives. A box must not be able to have one for nothing."""

import json
from typing import Any

import pytest

from claudebox.servers.broker.usage import LARGEST_ANSWER, LONGEST_LINE, Usage

pytestmark = pytest.mark.req("AUTH-03")

USAGE = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 7}
ASKED = json.dumps({"model": "m", "max_tokens": 5000, "messages": ["x" * 4000]}).encode()
STREAMED = json.dumps({"model": "m", "max_tokens": 5000, "stream": True, "messages": ["x" * 4000]}).encode()
ESTIMATED = len(ASKED) // 4


def count(
    *pieces: bytes, is_stream: bool, asked: bytes = ASKED, status: int = 200, is_free: bool = False
) -> tuple[int, int]:
    """How many tokens an answer took and made."""
    usage = Usage(is_stream=is_stream)
    for piece in pieces:
        usage.feed(piece)
    usage.finish(asked, status, is_free=is_free)
    return usage.taken, usage.made


def answer(text: str = "hello", **more: Any) -> bytes:
    return json.dumps({"type": "message", "content": [{"text": text}], "usage": USAGE, **more}).encode()


def event(kind: str, end: str = "\n", **more: Any) -> bytes:
    return f"event: {kind}{end}data: {json.dumps({'type': kind, **more})}{end}{end}".encode()


START = event("message_start", message={"model": "m", "usage": {**USAGE, "output_tokens": 1}})
DELTA = event("content_block_delta", delta={"text": "word"})
SUM = event("message_delta", delta={"stop_sequence": None}, usage={"output_tokens": 7})


def test_answer_at_once_is_counted_as_the_api_says() -> None:
    whole = answer()
    assert count(whole, is_stream=False) == (15, 7)
    assert count(*(whole[at : at + 1] for at in range(len(whole))), is_stream=False) == (15, 7)


def test_answer_that_is_too_large_to_read_is_counted_by_its_size() -> None:
    large = answer("x" * LARGEST_ANSWER)
    assert count(large, is_stream=False) == (ESTIMATED, max(5000, len(large) // 4))
    assert count(large[:100], large[100:], is_stream=False) == (ESTIMATED, max(5000, len(large) // 4))


@pytest.mark.parametrize("cut", [0, 1, 30])
def test_answer_at_once_that_is_broken_off_may_have_been_as_long_as_was_asked_for(cut: int) -> None:
    """The API has made all of it before its first byte comes."""
    assert count(answer()[:cut], is_stream=False) == (ESTIMATED, 5000)


def test_who_does_not_wait_for_an_answer_has_asked_for_one() -> None:
    assert count(is_stream=True, status=0) == (ESTIMATED, 5000)
    assert count(is_stream=True, status=0, asked=STREAMED) == (len(STREAMED) // 4, 0)


@pytest.mark.parametrize("content", [b"null", b"[]", b'"x"', b"{}", b'{"usage": 1}', b"[" * 100_000, b"9" * 9000])
def test_answer_without_a_sum_is_estimated(content: bytes) -> None:
    taken, made = count(content, is_stream=False)
    assert (taken, made >= 5000) == (ESTIMATED, True)


def test_number_that_is_none_counts_nothing() -> None:
    usage = {"input_tokens": -1, "output_tokens": float("inf"), "cache_read_input_tokens": 5.0}
    assert count(answer(usage=usage), is_stream=False) == (5, 0)


@pytest.mark.parametrize("status", [400, 401, 404, 413, 429, 500, 529])
def test_error_costs_nothing(status: int) -> None:
    error = json.dumps({"type": "error", "error": {"type": "invalid_request_error"}}).encode()
    assert count(error, is_stream=False, status=status) == (0, 0)
    assert count(event("error"), is_stream=True, status=status) == (0, 0)


def test_counting_costs_nothing() -> None:
    assert count(b'{"input_tokens": 1000}', is_stream=False, is_free=True) == (0, 0)


@pytest.mark.parametrize("size", [1, 2, 7, 64, 100_000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_stream_is_counted_wherever_it_is_split(size: int, end: str) -> None:
    stream = (START + DELTA * 20 + SUM).replace(b"\n", end.encode())
    assert count(*(stream[at : at + size] for at in range(0, len(stream), size)), is_stream=True) == (15, 7)


def test_sum_counts_in_whichever_order_its_members_come() -> None:
    late = b'data: {"usage": {"output_tokens": 9}, "filler": "' + b"x" * 500 + b'", "type": "message_delta"}\n\n'
    assert count(START, late, is_stream=True) == (15, 9)


@pytest.mark.parametrize(
    "stream",
    [
        (START + DELTA * 2000).replace(b"\n", b"\r"),
        START + event("message_delta", delta={"stop_sequence": "x" * 2 * LONGEST_LINE}, usage={"output_tokens": 99999}),
        START + event("content_block_delta", delta={"text": "x" * 100_000}),
    ],
)
def test_stream_whose_sum_is_not_seen_is_counted_by_its_size(stream: bytes) -> None:
    pieces = [stream[at : at + 1000] for at in range(0, len(stream), 1000)]
    taken, made = count(*pieces, is_stream=True)
    assert (taken >= 15, made >= 20_000) == (True, True), (taken, made)


def test_what_the_model_writes_is_not_its_sum() -> None:
    said = json.dumps({"type": "message_delta", "usage": {"output_tokens": 0}})
    forged = event("content_block_delta", delta={"text": f"\ndata: {said}\n\n"})
    assert count(START, forged, SUM, is_stream=True) == (15, 7)
    block = {"type": "tool_use", "input": {"type": "message", "usage": {"output_tokens": 0}}}
    assert count(answer(content=[block]), is_stream=False) == (15, 7)
