"""Every request that the broker does not let pass, and what is left of the ones that it does."""

import pytest

from claudebox.servers.broker.policy import (
    OAUTH_BETA,
    Refusal,
    answered_headers,
    check_request,
    sent_headers,
    shows,
)

pytestmark = pytest.mark.req("AUTH-03")

DUMMY = "dummy-0123456789"
HEADERS = (("host", "localhost"), ("authorization", f"Bearer {DUMMY}"), ("content-type", "application/json"))

PASS = ("/v1/messages", "/v1/messages?beta=true", "/v1/messages/count_tokens", "/v1/messages/count_tokens?beta=true")

OTHER_PATHS = (
    # What mints keys, or shows or changes the account.
    *("/api/oauth/claude_cli/create_api_key", "/api/oauth/claude_cli/roles", "/v1/oauth/token"),
    *("/v1/oauth/token/revoke",),
    *("/api/oauth/profile", "/api/oauth/usage", "/api/claude_cli_profile", "/api/oauth/account/settings"),
    *("/v1/organizations/me", "/v1/organizations/api_keys", "/v1/organizations/users", "/v1/api_keys"),
    # The rest of the API.
    *("/v1/models", "/v1/files", "/v1/messages/batches", "/v1/complete", "/v1/skills", "/v1/environments"),
    *("/v1/sessions",),
    *("/api/event_logging/batch", "/api/claude_code/metrics", "/api/hello", "/", ""),
    # Another spelling of a path that passes is another path.
    *("/v1/messages/", "/v1//messages", "//v1/messages", "/v1/./messages", "/v1/x/../messages", "/V1/messages"),
    *("/v1/%6dessages", "/v1%2fmessages", "/v1/messages%00", "/v1/messages;a=b", "/v1\\messages", "/v1/messages#x"),
    *("/v1/messages?beta=false", "/v1/messages?", "/v1/messages?beta=true&x=1", "/v1/messages?x=/../../"),
    *("/v1/messages?beta=true#",),
    *("/v1/messages/../organizations/me", "/v1/messages/count_tokens/../../models", "/v1/messages/batches?beta=true"),
)


@pytest.mark.parametrize("target", PASS)
def test_what_claude_needs_passes(target: str) -> None:
    assert check_request("POST", target, HEADERS, DUMMY)


def test_whether_somebody_is_there_is_answered_here() -> None:
    assert not check_request("HEAD", "/", (("host", "localhost"),), DUMMY)


Headers = tuple[tuple[str, str], ...]


def status_of(method: str = "POST", target: str = PASS[0], headers: Headers = HEADERS) -> int:
    """With which status such a request is refused."""
    with pytest.raises(Refusal) as refusal:
        check_request(method, target, headers, DUMMY)
    return refusal.value.status


def test_other_request_is_refused() -> None:
    for target in OTHER_PATHS:
        for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
            assert (target, status_of(method, target)) == (target, 404)
    for target in PASS:
        for method in ("GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT", "post"):
            assert (method, status_of(method, target)) == (method, 405)


OTHER_TARGETS = (
    *("http://localhost/v1/messages", "https://api.anthropic.com/v1/messages", "http://169.254.169.254/v1/messages"),
    *("example.org:443", "*", "localhost/v1/messages", "@example.org/v1/messages"),
)


def test_request_to_somebody_else_is_refused() -> None:
    for target in OTHER_TARGETS:
        for method in ("POST", "GET", "OPTIONS"):
            assert (target, status_of(method, target)) == (target, 404)


@pytest.mark.parametrize(
    "credentials",
    [
        (),
        (("authorization", ""),),
        (("authorization", DUMMY),),
        (("authorization", f"Basic {DUMMY}"),),
        (("authorization", f"Bearer {DUMMY}x"),),
        (("authorization", f"Bearer {DUMMY[:-1]}"),),
        (("authorization", f"Bearer  {DUMMY}"),),
        (("x-api-key", "sk-ant-api03-other"),),
        (("x-api-key", ""),),
        (("x-api-key", "\xe9"),),
        # One that is right does not excuse another.
        (("authorization", f"Bearer {DUMMY}"), ("x-api-key", "sk-ant-api03-other")),
        (("x-api-key", DUMMY), ("x-api-key", "sk-ant-api03-other")),
        (("proxy-authorization", f"Bearer {DUMMY}"),),
    ],
)
def test_without_the_token_of_this_box_it_is_refused(credentials: Headers) -> None:
    assert status_of(headers=(HEADERS[0], *credentials)) == 403


@pytest.mark.parametrize("name", ["authorization", "x-api-key"])
def test_token_is_taken_where_claude_puts_it(name: str) -> None:
    assert shows(((name, f"bearer {DUMMY}" if name == "authorization" else DUMMY),), DUMMY)


OAUTH = (("authorization", "Bearer real"), ("anthropic-beta", OAUTH_BETA))


def test_only_known_headers_are_sent() -> None:
    headers = (
        *HEADERS,
        ("x-api-key", DUMMY),
        ("cookie", "a=b"),
        ("x-forwarded-for", "1.2.3.4"),
        ("proxy-authorization", "Basic x"),
        ("accept-encoding", "gzip"),
        ("transfer-encoding", "chunked"),
        ("content-length", "3"),
        ("connection", "x-app"),
        ("x-organization-uuid", "u"),
        ("x-app", "cli"),
        ("x-stainless-os", "Linux"),
        ("anthropic-version", "2023-06-01"),
    )
    assert sent_headers(headers, "api.example", (("x-api-key", "real"),)) == (
        ("host", "api.example"),
        ("content-type", "application/json"),
        ("x-app", "cli"),
        ("x-stainless-os", "Linux"),
        ("anthropic-version", "2023-06-01"),
        ("accept-encoding", "identity"),
        ("x-api-key", "real"),
    )


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ((), OAUTH_BETA),
        ((("anthropic-beta", "a, b"),), f"a,b,{OAUTH_BETA}"),
        ((("anthropic-beta", f"a,{OAUTH_BETA},b"),), f"a,{OAUTH_BETA},b"),
        ((("anthropic-beta", "a"), ("anthropic-beta", "b")), f"a,b,{OAUTH_BETA}"),
    ],
)
def test_login_asks_for_its_feature(asked: tuple[tuple[str, str], ...], sent: str) -> None:
    found = [pair for pair in sent_headers(asked, "h", OAUTH) if pair[0] == "anthropic-beta"]
    assert found == [("anthropic-beta", sent)]


def test_only_known_headers_are_answered() -> None:
    headers = (
        ("content-type", "application/json"),
        ("set-cookie", "session=1"),
        ("location", "https://example.org/"),
        ("anthropic-organization-id", "whose"),
        ("connection", "keep-alive"),
        ("request-id", "req_1"),
        ("retry-after", "3"),
        ("anthropic-ratelimit-unified-status", "allowed"),
        ("x-should-retry", "true real"),
    )
    assert answered_headers(headers, lambda value: "real" not in value) == (
        ("content-type", "application/json"),
        ("request-id", "req_1"),
        ("retry-after", "3"),
        ("anthropic-ratelimit-unified-status", "allowed"),
    )
