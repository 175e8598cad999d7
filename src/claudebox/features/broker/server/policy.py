"""Decides which requests of the box reach the API, with which headers, and which headers of the answers come back."""

from __future__ import annotations

from hmac import compare_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Headers = tuple[tuple[str, str], ...]  # names in lower case

# Paths are compared byte for byte, so that there is nothing to normalize: another spelling of the same path is another
# path. What else Claude Code asks for (keys, account, usage, files, telemetry) is not for a box.
FORWARDED = frozenset(
    (
        "/v1/messages",
        "/v1/messages?beta=true",
        "/v1/messages/count_tokens",
        "/v1/messages/count_tokens?beta=true",
    )
)
CHECKED = ("HEAD", "/")  # Claude looks whether somebody is there. We are.
HOSTS = ("127.0.0.1", "localhost")  # with whichever port a forwarder in the box has

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
OAUTH_BETA = "oauth-2025-04-20"

# The API's names for errors: with one of them, Claude shows the message.
INVALID = "invalid_request_error"
FORBIDDEN = "permission_error"
NOT_FOUND = "not_found_error"
TOO_LARGE = "request_too_large"
TOO_MANY = "rate_limit_error"
FAILED = "api_error"

REASONS = {
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    411: "Length Required",
    413: "Payload Too Large",
    417: "Expectation Failed",
    421: "Misdirected Request",
    426: "Upgrade Required",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
}


def check_request(method: str, target: str, headers: Headers, dummy: str) -> bool:
    """Whether the request goes to the API; if not, it only asks whether somebody is there. Raises a Refusal."""
    _check_kind(method, target, headers)
    if (method, target) == CHECKED:
        return False
    if target not in FORWARDED:
        raise Refusal(404, NOT_FOUND, "claudebox: this path is not open to the box")
    if method != "POST":
        raise Refusal(405, INVALID, "claudebox: this method is not open to the box")
    if not shows(headers, dummy):
        raise Refusal(403, FORBIDDEN, "claudebox: not the token of this box")
    return True


def _check_kind(method: str, target: str, headers: Headers) -> None:
    """Refuse what would lead to another host, or to another protocol."""
    if method in ("CONNECT", "TRACE"):
        raise Refusal(405, INVALID, "claudebox: this method is not open to the box")
    if not target.startswith("/"):
        raise Refusal(421, INVALID, "claudebox: no other host can be reached")
    if any(name == "host" and value.lower().partition(":")[0] not in HOSTS for name, value in headers):
        raise Refusal(421, INVALID, "claudebox: no other host can be reached")
    if any(name == "upgrade" for name, _ in headers):
        raise Refusal(426, INVALID, "claudebox: no other protocol can be spoken")


def shows(headers: Headers, dummy: str) -> bool:
    """Whether every credential in the request is the dummy, and there is one."""
    given = [value for name, value in headers if name == "x-api-key"]
    for name, value in headers:
        if name == "authorization":
            given.append(value[len(BEARER) :] if value.lower().startswith(BEARER) else "")
    # All of them are compared, whatever the first says, so that the time it takes tells nothing.
    right = [compare_digest(value.encode(), dummy.encode()) for value in given]
    return bool(right) and all(right)


def sent_headers(headers: Headers, host: str, credential: Headers) -> Headers:
    """The headers that go to the API: some of the box's, with the real credential."""
    kept = _only(headers, SENT_HEADERS, SENT_PREFIXES)
    if any(name == "authorization" for name, _ in credential) and dict(credential).get("anthropic-beta"):
        kept = _with_beta(kept, dict(credential)["anthropic-beta"])
        credential = tuple(pair for pair in credential if pair[0] != "anthropic-beta")
    # The answer must not be compressed: it is searched for the credential.
    return (("host", host), *kept, ("accept-encoding", "identity"), *credential)


def _with_beta(headers: Headers, beta: str) -> Headers:
    """Ask for this feature, too, beside those that the box asks for."""
    asked = [word for name, value in headers if name == "anthropic-beta" for word in value.split(",")]
    words = [word.strip() for word in asked if word.strip()]
    words += [] if beta in words else [beta]
    return (*(pair for pair in headers if pair[0] != "anthropic-beta"), ("anthropic-beta", ",".join(words)))


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


def malformed(what: str) -> Refusal:
    return Refusal(400, INVALID, f"malformed request: {what}")
