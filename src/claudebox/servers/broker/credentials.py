"""Gets the real credential: a key or a token that stays as it is, or the login of a subscription, which is renewed."""

from __future__ import annotations

import json
import math
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from claudebox.files import Open, Replacement, open_lock, take_lock
from claudebox.host.variables import API_KEY, OAUTH_TOKEN
from claudebox.servers.broker.messages import Headers, Malformed
from claudebox.servers.broker.policy import BETA, OAUTH_BETA, Refusal, Revoked, Unavailable
from claudebox.servers.broker.upstream import CLOSING, FAILURES, Upstream
from claudebox.state.login import Busy, Tokens, dump, read, refresh_locks, reserve, storage_lock, tokens_in, with_tokens
from claudebox.state.memory import json_object

EARLY_SECONDS = 300.0  # before its end a login is renewed, as Claude Code does
RENEWAL_PATIENCE_SECONDS = 60.0
STORAGE_PATIENCE_SECONDS = 20.0
FRESH_SECONDS = 60.0  # for which a new login is not to blame: a box that gets 401s must not renew with each
LAST_SECONDS = 75.0  # longer than it takes to renew a login, however slowly
ADOPTION_SECONDS = 2.0  # in which another process stores what it got for the same refresh token

CLIENT = "9d1c250a-e61b-44d9-88ed-5944d1962f5e"
LARGEST_ANSWER = 64 * 1024
ANSWER_SECONDS = 30.0
LONGEST_VALIDITY_SECONDS = 1e9
NOT_RENEWED = "the login cannot be renewed"
ENDED = "the login of this host has ended; start `claude` there, type /login, and try again"


class Fixed:
    """A key or a token from the environment of the host."""

    def __init__(self, variable: str, value: str) -> None:
        self.variable = variable
        self.value = value
        self.secrets = {value}

    def headers(self) -> Headers:
        if self.variable == API_KEY:
            return (("x-api-key", self.value),)
        beta = ((BETA, OAUTH_BETA),) if self.variable == OAUTH_TOKEN else ()
        return (("authorization", f"Bearer {self.value}"), *beta)

    def renew(self, refused: Headers) -> None:  # noqa: ARG002  (the same each time)
        raise Revoked(f"the API does not accept {self.variable} of this host; set a new one there and start again")

    def settle(self) -> None:
        """Do nothing: nothing can be lost."""


class Subscription:
    """A login, in the file that Claude Code on the host uses, too."""

    def __init__(self, file: str, directory: str, own_lock: str, exchange: Callable[[Tokens], Tokens]) -> None:
        self.file = file
        self.directory = directory  # where Claude Code locks
        self.own_lock = own_lock  # by which brokers wait for each other
        self.exchange = exchange  # raises Revoked or Unavailable
        self.lock = threading.Lock()
        self.secrets: set[str] = set()
        self.tokens: Tokens | None = None
        self.refused = ""  # a refresh token that the server has refused
        self.unsaved = False
        self.is_ending = False
        self.renewed = -math.inf  # when that was last done

    def headers(self) -> Headers:
        """The headers that log in. The login is renewed early: if that fails, it is still good for a while."""
        with self.lock:
            tokens = self._current()
            if _is_due(tokens):
                try:
                    tokens = self._renew(tokens)
                except Refusal:
                    if tokens.expires_at <= time.time():
                        raise
            return _headers(tokens)

    def renew(self, refused: Headers) -> None:
        """Renew the login because the API has refused the one that was sent. Raises Revoked or Unavailable."""
        with self.lock:
            tokens = self._current()
            if _headers(tokens) != refused:
                return
            if time.monotonic() - self.renewed < FRESH_SECONDS:
                raise Revoked("the API does not accept the login of this host, though it is new; log in again there")
            self._renew(tokens)

    def settle(self) -> None:
        """Store what is unsaved before this process ends.

        A refresh token can be used once, and what came for it must not be lost. So this waits for a renewal that is
        under way, and lets no other begin.
        """
        self.is_ending = True
        if self.lock.acquire(timeout=LAST_SECONDS) and self.unsaved and self.tokens is not None:
            self._store(self.tokens)

    def _current(self) -> Tokens:
        stored = tokens_in(read(self.file))
        if self.tokens is not None and self.unsaved and (stored is None or stored.expires_at < self.tokens.expires_at):
            self._store(self.tokens)
            return self.tokens
        if stored is None:
            raise Revoked("nobody is logged in on this host; start `claude` there, type /login, and try again")
        return self._use(stored, unsaved=False)

    def _use(self, tokens: Tokens, *, unsaved: bool) -> Tokens:
        self.tokens, self.unsaved = tokens, unsaved
        # A new set is made: another thread may be looking through the old one.
        self.secrets = self.secrets | ({tokens.access, tokens.refresh} - {""})
        return tokens

    def _renew(self, old: Tokens) -> Tokens:
        """Renew under the locks, or use what somebody else has stored meanwhile."""
        try:
            with Open(open_lock(self.own_lock)) as descriptor:
                deadline = time.monotonic() + RENEWAL_PATIENCE_SECONDS
                while time.monotonic() < deadline and not self.is_ending:
                    if (adopted := self._adopted(old)) is not None:
                        return adopted
                    with suppress(Busy):
                        if take_lock(descriptor):
                            with refresh_locks(self.directory):
                                return self._adopted(old) or self._exchange(old)
                    time.sleep(random.uniform(0.05, 0.2))  # noqa: S311  (two who wait should not meet again)
            raise Unavailable("somebody else has been renewing the login for too long")
        except OSError as error:
            raise Unavailable(f"{NOT_RENEWED}: {error.strerror}") from None

    def _adopted(self, old: Tokens) -> Tokens | None:
        stored = tokens_in(read(self.file))
        if stored is None or stored.access == old.access or _is_due(stored):
            return None
        return self._use(stored, unsaved=False)

    def _exchange(self, old: Tokens) -> Tokens:
        # Another process may have stored a login that is due as well: its refresh token is the one that counts.
        latest = old if self.unsaved else tokens_in(read(self.file)) or old
        if not latest.refresh or latest.refresh == self.refused:
            raise Revoked(ENDED)
        with reserve(self.file) as replacement:
            new = self._use(self._ask(latest), unsaved=True)
            self.renewed = time.monotonic()
            self._store(new, replacement)
            return new

    def _store(self, tokens: Tokens, replacement: Replacement | None = None) -> None:
        """Store the login. If that fails, it is kept in memory and stored with the next request, not lost."""
        with suppress(Busy, OSError):
            lock = storage_lock(self.directory, STORAGE_PATIENCE_SECONDS, stays_fresh=True)
            with replacement or reserve(self.file) as made, lock:
                made.put(dump(with_tokens(read(self.file), tokens)))
            self.unsaved = False

    def _ask(self, latest: Tokens) -> Tokens:
        try:
            return self.exchange(latest)
        except Revoked:
            # A box that renews for itself may store what it got a moment later.
            deadline = time.monotonic() + ADOPTION_SECONDS
            while time.monotonic() < deadline:
                if (adopted := self._adopted(latest)) is not None:
                    return adopted
                time.sleep(0.1)
            self.refused = latest.refresh
            raise


def _is_due(tokens: Tokens) -> bool:
    return tokens.expires_at - EARLY_SECONDS <= time.time()


def _headers(tokens: Tokens) -> Headers:
    return (("authorization", f"Bearer {tokens.access}"), (BETA, OAUTH_BETA))


def renew(upstream: Upstream, old: Tokens) -> Tokens:
    """Get new tokens. Raises Revoked if the refresh token is not accepted, and Unavailable for everything else."""
    asked = {"grant_type": "refresh_token", "refresh_token": old.refresh, "client_id": old.client or CLIENT}
    status, answer = _post(upstream, json.dumps({**asked, "scope": " ".join(old.scopes)}).encode())
    if status in (400, 401) and "invalid_grant" in json.dumps(answer):
        raise Revoked(ENDED)
    if status != 200:
        raise Unavailable(f"{NOT_RENEWED} (status {status})")
    access, refresh = answer.get("access_token"), answer.get("refresh_token", old.refresh)
    seconds, scope = answer.get("expires_in"), answer.get("scope")
    if not (isinstance(access, str) and isinstance(refresh, str) and isinstance(seconds, int | float)):
        raise Unavailable(f"{NOT_RENEWED}: the answer is no login")
    if not abs(seconds) < LONGEST_VALIDITY_SECONDS:  # NaN is not less either
        raise Unavailable(f"{NOT_RENEWED}: the answer does not say when it ends")
    scopes = tuple(scope.split()) if isinstance(scope, str) and scope else old.scopes
    return old.replace(access=access, refresh=refresh, expires_at=time.time() + seconds, scopes=scopes)


def _post(upstream: Upstream, body: bytes) -> tuple[int, dict[str, Any]]:
    headers = (
        ("host", upstream.host),
        ("content-type", "application/json"),
        ("accept", "application/json"),
        ("accept-encoding", "identity"),
        CLOSING,
    )
    content = b""
    try:
        with upstream.ask("POST", "", headers, body) as (head, pieces):
            for piece in pieces:
                content += piece
                if len(content) > LARGEST_ANSWER:
                    raise Malformed("the answer is too large")
    except FAILURES as error:
        raise upstream.unavailable(error) from None
    return head.status, json_object(content)
