"""Decides what passes between the box and the API.

Which requests reach the API, and with which headers; which headers of the answers come back; and that no answer has the
credential in it, however it is written there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from hmac import compare_digest

from claudebox.host.variables import SHORTEST_SECRET
from claudebox.servers.broker.messages import Headers

# Paths are compared byte for byte, so that there is nothing to normalize: another spelling of the same path is another
# path. What else Claude Code asks for (keys, account, usage, files, telemetry) is not for a box.
FORWARDED = frozenset(
    ("/v1/messages", "/v1/messages?beta=true", "/v1/messages/count_tokens", "/v1/messages/count_tokens?beta=true")
)
CHECKED = ("HEAD", "/")  # Claude looks whether somebody is there. We are.

# The API needs these. The credential is not among them: the broker adds the real one.
SENT_HEADERS = frozenset(
    (
        *("accept", "content-type", "user-agent", "x-app", "x-client-request-id"),
        *("anthropic-version", "anthropic-beta", "anthropic-dangerous-direct-browser-access"),
        *("x-claude-code-session-id", "x-claude-code-agent-id", "x-claude-code-parent-agent-id"),
    )
)
SENT_PREFIXES = ("x-stainless-",)

# Claude needs these, and must not learn about cookies, places, or whose account it is.
ANSWERED_HEADERS = frozenset(("content-type", "date", "request-id", "retry-after", "retry-after-ms", "x-should-retry"))
ANSWERED_PREFIXES = ("anthropic-ratelimit-",)

BEARER = "bearer "
BETA = "anthropic-beta"  # the features that a request asks for
OAUTH_BETA = "oauth-2025-04-20"

# The API's names for errors: with one of them, Claude shows the message.
INVALID, FORBIDDEN, NOT_FOUND = "invalid_request_error", "permission_error", "not_found_error"
TOO_LARGE, TOO_MANY, FAILED = "request_too_large", "rate_limit_error", "api_error"

# A character as JSON or an address writes it. JSON in JSON has more backslashes, an address in an address more `25`.
# How many is bounded: a long row of them must not cost more than its length.
IN_JSON = re.compile(rb'\\\\{0,14}(?:u00([2-7][0-9A-Fa-f])|(["/]))')
IN_ADDRESS = re.compile(rb"%(?:25){0,4}([2-7][0-9A-Fa-f])")
# The beginning of one, at the end of a piece.
UNFINISHED = re.compile(rb"(?:\\{1,15}(?:u(?:0(?:0[2-7]?)?)?)?|%(?:25){0,4}[2-7]?)\Z")
MOST_NESTED = 4  # JSON in an address in JSON …
MOST_BYTES = 12  # that one character of a secret takes


def check_request(method: str, target: str, headers: Headers, dummy: str) -> bool:
    """Whether the request goes to the API; if not, it only asks whether somebody is there. Raises a Refusal.

    Another host, method or protocol needs no rule of its own: what is sent on is a path of the list, by POST, with
    headers of the list, to the one address that the broker knows.
    """
    if (method, target) == CHECKED:
        return False
    if target not in FORWARDED:
        raise Refusal(404, NOT_FOUND, "this path is not open to the box")
    if method != "POST":
        raise Refusal(405, INVALID, "this method is not open to the box")
    if not shows(headers, dummy):
        raise Refusal(403, FORBIDDEN, "not the token of this box")
    return True


def shows(headers: Headers, dummy: str) -> bool:
    """Whether the request has a credential, and each is the dummy."""
    bearers = (value for name, value in headers if name == "authorization")
    given = [value for name, value in headers if name == "x-api-key"]
    given += [value[len(BEARER) :] if value.lower().startswith(BEARER) else "" for value in bearers]
    # All of them are compared, whatever the first says, so that the time it takes tells nothing.
    right = [compare_digest(value.encode(), dummy.encode()) for value in given]
    return bool(right) and all(right)


def sent_headers(headers: Headers, host: str, credential: Headers) -> Headers:
    """The headers that go to the API: some of the box's, with the real credential."""
    # The answer must not be compressed: it is searched for the credential.
    sent = (*_only(headers, SENT_HEADERS, SENT_PREFIXES), ("accept-encoding", "identity"), *credential)
    # A login needs a feature, beside those that the box asks for.
    asked = (word.strip() for name, value in sent if name == BETA for word in value.split(","))
    features = ",".join(dict.fromkeys(filter(None, asked)))
    beta = ((BETA, features),) if features else ()
    return (("host", host), *(pair for pair in sent if pair[0] != BETA), *beta)


def answered_headers(headers: Headers, is_clean: Callable[[str], bool]) -> Headers:
    """The headers of the API's answer that reach the box."""
    return tuple(pair for pair in _only(headers, ANSWERED_HEADERS, ANSWERED_PREFIXES) if is_clean(pair[1]))


def _only(headers: Headers, names: frozenset[str], prefixes: tuple[str, ...]) -> Headers:
    return tuple((name, value) for name, value in headers if name in names or name.startswith(prefixes))


class Refusal(Exception):
    """An answer to the box instead of the API's. It says nothing that the box may not know."""

    def __init__(self, status: int, kind: str, message: str, *, may_retry: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.may_retry = may_retry


class Revoked(Refusal):
    """The credential is not accepted. The message says what the user can do about it."""

    def __init__(self, message: str) -> None:
        super().__init__(403, FORBIDDEN, message)


class Unavailable(Refusal):
    """There is no credential, or no API, right now. The message says why."""

    def __init__(self, message: str) -> None:
        super().__init__(502, FAILED, message, may_retry=True)


class Leak(Exception):
    """The credential is in the answer: the box's connection is cut."""


class Cutter:
    """Passes pieces of an answer on, and holds back the end of one in which a secret may begin."""

    def __init__(self, secrets: Iterable[str]) -> None:
        long_enough = {secret.encode() for secret in secrets if len(secret) >= SHORTEST_SECRET}
        in_json = {json.dumps(secret.decode())[1:-1].encode() for secret in long_enough}
        self.secrets = tuple(long_enough | in_json | {plainly(secret) for secret in long_enough})
        self.held = b""

    def is_clean(self, text: str) -> bool:
        return not self._is_in(text.encode())

    def feed(self, piece: bytes) -> bytes:
        """Return what can be passed on. Raises a Leak before any byte of a secret is."""
        text = self.held + piece
        if self._is_in(text):
            raise Leak
        kept = max((_overlap(text, secret) for secret in self.secrets), default=0)
        self.held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def _is_in(self, text: bytes) -> bool:
        plain = plainly(text)
        return any(secret in text or secret in plain for secret in self.secrets)

    def pieces(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            if passed := self.feed(piece):
                yield passed
        if self.held:
            yield self.held


def plainly(text: bytes) -> bytes:
    """The text with the escapes of JSON and URLs decoded, nested ones too."""
    for _ in range(MOST_NESTED):
        before = text
        if b"%" in text:
            text = IN_ADDRESS.sub(lambda found: bytes.fromhex(found[1].decode()), text)
        if b"\\" in text:
            text = IN_JSON.sub(lambda found: found[2] or bytes.fromhex(found[1].decode()), text)
        if text == before:
            break
    return text


def _overlap(text: bytes, secret: bytes) -> int:
    """How many bytes at the end of the text may be the beginning of the secret, escaped or not."""
    tail = text[-len(secret) * MOST_BYTES :]
    for found in re.finditer(rb"[\\%" + re.escape(secret[:1]) + rb"]", tail):
        if _may_begin(secret, tail, found.start()):
            return len(tail) - found.start()
    return 0


def _may_begin(secret: bytes, tail: bytes, start: int) -> bool:
    """Whether the tail, from there on, is the beginning of the secret. Most places fail the first check."""
    is_plain = tail.startswith(secret[:1], start)
    if not is_plain and not any(form.match(tail, start) for form in (IN_JSON, IN_ADDRESS, UNFINISHED)):
        return False
    ends = (start + MOST_BYTES, len(tail))
    return all(secret.startswith(_finished(plainly(tail[start:end]))) for end in ends)


def _finished(text: bytes) -> bytes:
    """The text without an unfinished escape at its end. Twice: one escape may be in another."""
    return UNFINISHED.sub(b"", UNFINISHED.sub(b"", text))
