"""What a file with Claude's login holds: a JSON object. One member is the login, the others are not our business."""

from __future__ import annotations

import json

from claudebox.host.digest import sha256
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

KEY = "claudeAiOauth"  # beside it are tokens of MCP servers: those stay outside
MILLISECONDS = 1000
LATEST = 1e15  # milliseconds: no moment that counts is later
LONGEST_TOKEN = 16_384
LONGEST_WORD = 256
MOST_SCOPES = 64


class Tokens(Record):
    """A login as it is used."""

    access: str
    refresh: str
    expires_at: float  # seconds
    scopes: tuple[str, ...] = ()
    client: str = ""
    subscription: str = ""


def parse(content: bytes) -> dict[str, Any] | None:
    """The object, or None if it is none or cannot be written again as JSON that others understand."""
    try:
        value = json.loads(content, parse_constant=_refuse)
        dump(value)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def dump(credentials: dict[str, Any]) -> bytes:
    return json.dumps(credentials, allow_nan=False).encode()


def login_in(credentials: dict[str, Any] | None) -> dict[str, Any]:
    """What there is of a login; nothing if there is none."""
    login = (credentials or {}).get(KEY)
    return login if isinstance(login, dict) else {}


def tokens_in(credentials: dict[str, Any] | None) -> Tokens | None:
    """None if nobody is logged in, or Claude has blanked the login."""
    login = login_in(credentials)
    if not can_be_sent(login.get("accessToken")):
        return None
    scopes = login.get("scopes")
    return Tokens(
        access=_sendable(login, "accessToken"),
        refresh=_sendable(login, "refreshToken"),
        expires_at=min(expiry_ms(login), LATEST) / MILLISECONDS,
        scopes=tuple(filter(None, map(str, scopes))) if isinstance(scopes, list) else (),
        client=_sendable(login, "clientId"),
        subscription=_sendable(login, "subscriptionType"),
    )


def with_tokens(credentials: dict[str, Any] | None, tokens: Tokens) -> dict[str, Any]:
    """The same file with a renewed login."""
    renewed = {
        "accessToken": tokens.access,
        "refreshToken": tokens.refresh,
        "expiresAt": int(tokens.expires_at * MILLISECONDS),
        "scopes": list(tokens.scopes),
    }
    return {**(credentials or {}), KEY: {**login_in(credentials), **renewed}}


def expiry_ms(login: dict[str, Any]) -> float:
    """0 if it does not say when it ends."""
    value = login.get("expiresAt")
    try:
        return float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:
        return 0.0


def fingerprint(login: dict[str, Any]) -> str:
    """Tells one login from another without telling any; "" if there is none."""
    tokens = [login.get("accessToken"), login.get("refreshToken")]
    return sha256(json.dumps(tokens).encode()) if any(tokens) else ""


def known_fields(login: dict[str, Any]) -> dict[str, Any]:
    """What a login consists of, and nothing else that a box may have put there: it goes into a file of the host."""
    return {name: login[name] for name, is_sound in FIELDS.items() if name in login and is_sound(login[name])}


def is_whole(login: dict[str, Any]) -> bool:
    """Whether it has all that makes a login: a part of one must not be mixed with a part of another."""
    return known_fields(login).keys() >= {"accessToken", "refreshToken", "expiresAt"}


def can_be_sent(value: object) -> bool:
    """Whether it is a token that can stand in a header."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_TOKEN and _is_plain(value)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def _sendable(login: dict[str, Any], name: str) -> str:
    value = login.get(name)
    return value if isinstance(value, str) and can_be_sent(value) else ""


def _is_word(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_WORD and _is_plain(value)


def _is_moment(value: object) -> bool:
    """In milliseconds. What is no number is not between two."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < LATEST


def _are_scopes(value: object) -> bool:
    return isinstance(value, list) and len(value) <= MOST_SCOPES and all(map(_is_word, value))


# Every field that Claude Code stores of a login (2.1.325), and what it has to be like to leave a box.
FIELDS: dict[str, Callable[[object], bool]] = {
    "accessToken": can_be_sent,
    "refreshToken": can_be_sent,
    "expiresAt": _is_moment,
    "refreshTokenExpiresAt": _is_moment,
    "scopes": _are_scopes,
    "subscriptionType": _is_word,
    "subscriptionTypeSource": _is_word,
    "subscriptionTypeVerifiedAt": _is_moment,
    "rateLimitTier": _is_word,
    "clientId": _is_word,
}
