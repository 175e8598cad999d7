"""Counts what a box uses, and keeps a line for each of its requests.

What counts is what the API's answers say: the model, and how many tokens they took. The journal never holds what was
said, and no secret.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from claudebox.record import Record
from claudebox.servers.broker.policy import TOO_MANY, Refusal
from claudebox.state.memory import json_object, note_in_journal
from claudebox.text import counted

LONGEST_LINE = 64 * 1024
LARGEST_ANSWER = 4 * 1024 * 1024
EVENTS = (b'"message_start"', b'"message_delta"')
INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
LONGEST_MODEL = 100
DELTA = b'"content_block_delta"'
BYTES_AROUND_TEXT = 150  # in an event
OTHER_EVENTS = 4  # before and between those with text
BYTES_PER_TOKEN = 4  # roughly

MOST_REFUSALS = 500  # of one box, which could flood the journal with them until what it did before is gone
LONGEST_TARGET = 100
LARGE_BODY = 1024 * 1024
MOST_LARGE = 6  # large requests that are in memory at the same time: a box must not use up the host's
ROOM_SECONDS = 600.0  # for which another one waits


class Usage:
    """Watches an answer go by. What the API says counts, not what the box says.

    What the API has not said is estimated, and rather too high: a box must not be able to have an answer for nothing.
    """

    def __init__(self, *, is_stream: bool) -> None:
        self.is_stream = is_stream
        self.buffer = bytearray()
        self.size = 0
        self.model = ""
        self.taken = 0
        self.made = 0
        self.deltas = 0  # pieces of text, each of at least a token
        self.has_sum = False

    def feed(self, piece: bytes) -> None:
        self.size += len(piece)
        if not self.is_stream:
            self.buffer += piece[: max(0, LARGEST_ANSWER - len(self.buffer))]
            return
        self.buffer += piece
        if b"\n" not in piece:
            if len(self.buffer) > LONGEST_LINE:
                self.buffer[:] = b"-"  # a line that is none of those
            return
        text, _, rest = bytes(self.buffer).rpartition(b"\n")
        self.buffer[:] = rest
        self.deltas += text.count(DELTA)
        if any(event in text for event in EVENTS):  # most of a stream has none: no need to look at each line
            for line in text.split(b"\n"):
                if line.startswith(b"data:") and any(event in line for event in EVENTS):
                    self._note(line[len(b"data:") :])

    def finish(self, asked: bytes, status: int, *, is_free: bool) -> None:
        """Estimate what the API has not said: the box may have gone away before, or the answer is too large to read.

        `asked` is the body of the request. The status is 0 if the box did not wait for one.
        """
        if not self.is_stream:
            self._note(bytes(self.buffer))
        if is_free or (status and not 200 <= status < 300):
            return
        if not self.taken:
            self.taken = len(asked) // BYTES_PER_TOKEN
        if not self.has_sum:
            around = (self.deltas + OTHER_EVENTS) * BYTES_AROUND_TEXT if self.is_stream else 0
            most = 0 if self.is_stream and status else _most(asked)
            self.made = max(self.made, self.deltas, (self.size - around) // BYTES_PER_TOKEN, most)

    def _note(self, text: bytes) -> None:
        value = json_object(text)
        message = value.get("message") if value.get("type") == "message_start" else value
        if not isinstance(message, dict):
            return
        if isinstance(message.get("model"), str):
            self.model = message["model"][:LONGEST_MODEL]
        usage = message.get("usage")
        if isinstance(usage, dict):
            # Each event tells the sum so far.
            self.taken = max(self.taken, sum(_number(usage, name) for name in INPUT))
            self.made = max(self.made, _number(usage, "output_tokens"))
            self.has_sum = self.has_sum or value.get("type") != "message_start"


def _most(asked: bytes) -> int:
    """`max_tokens` of a non-streaming request; 0 for a streaming one."""
    request = json_object(asked)
    return 0 if request.get("stream") is True else _number(request, "max_tokens")


def _number(usage: dict[str, Any], name: str) -> int:
    value = usage.get(name)
    return int(value) if isinstance(value, int | float) and 0 <= value < math.inf else 0


class Allowance(Record):
    """How much one box may use in its life. 0 means no limit."""

    requests: int = 0
    tokens: int = 0
    streams: int = 50  # at the same time
    minutes: int = 0


class Meter:
    """Counts what the box has used, refuses requests beyond its allowance, and keeps the journal."""

    def __init__(self, limits: Allowance, journal: str) -> None:
        self.limits = limits
        self.journal = journal
        self.started = time.monotonic()
        self.requests = 0
        self.tokens = 0
        self.streams = 0
        self.refusals = 0
        self.lock = threading.Lock()
        self.large = threading.BoundedSemaphore(MOST_LARGE)

    @contextmanager
    def room(self, length: int) -> Iterator[None]:
        """Wait until there is room for a request of this length; one in chunks may become large."""
        if 0 <= length <= LARGE_BODY:
            yield
            return
        if not self.large.acquire(timeout=ROOM_SECONDS):
            raise Refusal(429, TOO_MANY, "other large requests are under way", may_retry=True)
        try:
            yield
        finally:
            self.large.release()

    def admit(self) -> None:
        """Count one more request. Raises a Refusal if that is too many."""
        limits = self.limits
        with self.lock:
            if limits.streams and self.streams >= limits.streams:
                under_way = counted(limits.streams, "request is", "requests are")
                raise Refusal(429, TOO_MANY, f"{under_way} under way", may_retry=True)
            for limit, used, thing in (
                (limits.requests, self.requests, "request"),
                (limits.tokens, self.tokens, "token"),
                (limits.minutes, (time.monotonic() - self.started) / 60, "minute"),
            ):
                if limit and used >= limit:
                    raise Refusal(403, TOO_MANY, f"this box has used up its {counted(limit, thing)} (auth_limits)")
            self.requests += 1
            self.streams += 1

    def release(self, tokens: int) -> None:
        with self.lock:
            self.streams -= 1
            self.tokens += tokens

    def note_refusal(self, target: str, status: int) -> None:
        """Note a refused request, unless there were too many."""
        self.refusals += 1
        if self.refusals <= MOST_REFUSALS:
            self.note(path=target[:LONGEST_TARGET], status=status)

    def note(self, **fields: str | int) -> None:
        with self.lock:
            note_in_journal(self.journal, **fields)
