"""How much of the credential a box may use."""

from __future__ import annotations

import threading
import time

from claudebox.features.broker.server.refusal import (
    TOO_MANY,
    Refusal,
)
from claudebox.record import Record

MOST_LARGE = 6  # requests that are large, in memory at the same time: a box must not use up the host's


class Limits(Record):
    """For the life of one box. 0: none."""

    requests: int = 0
    tokens: int = 0
    streams: int = 50  # at the same time
    minutes: int = 0


class Meter:
    """Counts what was used."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.started = time.monotonic()
        self.requests = 0
        self.tokens = 0
        self.streams = 0
        self.lock = threading.Lock()
        self.large = threading.BoundedSemaphore(MOST_LARGE)

    def admit(self) -> None:
        """One more request. Raises a Refusal."""
        limits = self.limits
        with self.lock:
            if limits.streams and self.streams >= limits.streams:
                raise Refusal(429, TOO_MANY, f"claudebox: {limits.streams} requests are under way", may_retry=True)
            if limits.requests and self.requests >= limits.requests:
                raise _used_up(f"{limits.requests} requests")
            if limits.tokens and self.tokens >= limits.tokens:
                raise _used_up(f"{limits.tokens} tokens")
            if limits.minutes and time.monotonic() - self.started >= limits.minutes * 60:
                raise _used_up(f"{limits.minutes} minutes")
            self.requests += 1
            self.streams += 1

    def release(self, tokens: int) -> None:
        with self.lock:
            self.streams -= 1
            self.tokens += tokens


def _used_up(what: str) -> Refusal:
    return Refusal(403, TOO_MANY, f"claudebox: this box has used up its {what} (auth_limits)")
