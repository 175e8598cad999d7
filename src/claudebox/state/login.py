"""Claude's login as it lies in a file: what is in it, how it is read and replaced, and the locks around it.

One process beside a box copies it between the host and the boxes, another one, the broker, renews the host's. Claude
Code works on the same files at the same time, on the host and in the boxes, so both do as it does.

The file is a JSON object. One member is the login, the others are not our business.

The locks are directories. Whoever makes one holds it. One that nobody has touched for a while was left by a process
that died, and may be taken over; so a process that holds one for long keeps touching it. How long that while is, each
lock has from Claude Code (measured with 2.1.325).
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeGuard

from claudebox.files import Replacement
from claudebox.host.tree import Tree, sha256
from claudebox.record import Record

LARGEST_FILE = 1 << 20
RESERVED = 8192  # bytes, more than new tokens need
KEY = "claudeAiOauth"  # beside it are tokens of MCP servers: those stay outside
MILLISECONDS = 1000
LATEST = 1e15  # milliseconds: no moment that counts is later
LONGEST_TOKEN, LONGEST_WORD, MOST_SCOPES = 16_384, 256, 64
REFRESH = ".oauth_refresh.lock"  # around a renewal
OLD_SUFFIX = ".lock"  # of the directory itself, which older versions lock around a renewal
STORAGE = ".storage-write.lock"  # around a change of the file
REFRESH_STALE_SECONDS, STORAGE_STALE_SECONDS = 10.0, 15.0
HEARTBEAT_SECONDS, PAUSE_SECONDS = 2.0, 0.02


def read(path: str) -> dict[str, Any] | None:
    """Read a JSON object; None for anything else that a box may have put there."""
    content = Tree().read_plain(path, LARGEST_FILE + 1) or b""
    return parse(content) if len(content) <= LARGEST_FILE else None


def reserve(path: str) -> Replacement:
    """A new file beside the old one, with room for what will be in it.

    A refresh token is good for one use. So whoever renews a login makes this before: a disk that turns out to be full
    afterwards would log the user out.
    """
    return Replacement(path, room=len(dump(read(path) or {})) + RESERVED)


def replace(path: str, credentials: dict[str, Any]) -> None:
    """Raises OSError, and leaves the file as it was then."""
    with reserve(path) as replacement:
        replacement.put(dump(credentials))


class Tokens(Record):
    """The tokens of a login."""

    access: str
    refresh: str
    expires_at: float  # seconds
    scopes: tuple[str, ...] = ()
    client: str = ""


def parse(content: bytes) -> dict[str, Any] | None:
    """Parse an object; None if it is not one, or cannot be written again as JSON that others understand."""
    try:
        value = json.loads(content)
        dump(value)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def dump(credentials: dict[str, Any]) -> bytes:
    return json.dumps(credentials, allow_nan=False).encode()


def login_in(credentials: dict[str, Any] | None) -> dict[str, Any]:
    """The login; empty if there is none."""
    login = (credentials or {}).get(KEY)
    return login if isinstance(login, dict) else {}


def tokens_in(credentials: dict[str, Any] | None) -> Tokens | None:
    """None if nobody is logged in, or Claude has blanked the login."""
    login = known_fields(login_in(credentials))
    if not login.get("accessToken"):
        return None
    return Tokens(
        access=login["accessToken"],
        refresh=login.get("refreshToken", ""),
        expires_at=login.get("expiresAt", 0) / MILLISECONDS,
        scopes=tuple(login.get("scopes", ())),
        client=login.get("clientId", ""),
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
    """Expiry in milliseconds; 0 if missing."""
    value = login.get("expiresAt")
    return value if _is_moment(value) else 0.0


def fingerprint(login: dict[str, Any]) -> str:
    """Hash of the tokens; "" if there are none."""
    tokens = [login.get("accessToken"), login.get("refreshToken")]
    return sha256(json.dumps(tokens).encode()) if any(tokens) else ""


def known_fields(login: dict[str, Any]) -> dict[str, Any]:
    """Only the fields of a login, not what else a box may have put there: it goes into a file of the host."""
    return {name: login[name] for name, is_sound in FIELDS.items() if name in login and is_sound(login[name])}


def is_whole(login: dict[str, Any]) -> bool:
    """Whether it is complete: parts of two logins must not be mixed."""
    return known_fields(login).keys() >= {"accessToken", "refreshToken", "expiresAt"}


def can_be_sent(value: object) -> bool:
    """Whether it is a token that can stand in a header."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_TOKEN and _is_plain(value)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def _is_word(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_WORD and _is_plain(value)


def _is_moment(value: object) -> TypeGuard[float]:
    """In milliseconds. NaN is not between two numbers."""
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


class Busy(Exception):
    """Somebody else holds the lock."""


@contextmanager
def locked(*locks: tuple[str, float], patience_seconds: float = 0.0, stays_fresh: bool = False) -> Iterator[None]:
    """Hold these directories, each with the seconds after which it counts as left behind.

    Raises Busy if somebody else has one of them for too long, and OSError if one cannot be made.
    """
    deadline = time.monotonic() + patience_seconds
    held: list[str] = []
    done = threading.Event()
    try:
        while len(held) < len(locks):
            try:
                for path, stale_seconds in locks:
                    _take(path, stale_seconds)
                    held.append(path)
            except Busy:
                _release(held)
                if time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE_SECONDS)
        if stays_fresh:
            threading.Thread(target=_keep_fresh, args=(held, done), daemon=True).start()
        yield
    finally:
        done.set()
        _release(held)


def _take(path: str, stale_seconds: float) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        _take_over(path, stale_seconds)
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            raise Busy from None


def _take_over(path: str, stale_seconds: float) -> None:
    """Remove one that was left behind. It is moved first: of several who try that at once, one succeeds."""
    try:
        seen = os.lstat(path)
        if abs(time.time() - seen.st_mtime) <= stale_seconds:
            raise Busy
        aside = f"{path}.{os.urandom(8).hex()}"
        os.rename(path, aside)
        taken = os.lstat(aside)
        if (taken.st_ino, taken.st_mtime_ns) != (seen.st_ino, seen.st_mtime_ns):
            os.rename(aside, path)  # it was somebody's who was quicker
            raise Busy
        os.rmdir(aside)
    except OSError:
        raise Busy from None


def _release(held: list[str]) -> None:
    while held:
        with suppress(OSError):  # one that was taken from us as stale
            os.rmdir(held.pop())


def _keep_fresh(held: list[str], done: threading.Event) -> None:
    """An old lock would pass for one that a dead process has left."""
    while not done.wait(HEARTBEAT_SECONDS):
        for path in tuple(held):
            with suppress(OSError):
                os.utime(path)


def refresh_locks(directory: str) -> AbstractContextManager[None]:
    """The locks for renewing a login, in Claude's order."""
    new, old = f"{directory}/{REFRESH}", f"{os.path.realpath(directory)}{OLD_SUFFIX}"
    return locked((new, REFRESH_STALE_SECONDS), (old, REFRESH_STALE_SECONDS), stays_fresh=True)


def storage_lock(directory: str, patience_seconds: float, *, stays_fresh: bool = False) -> AbstractContextManager[None]:
    """The lock for changing the file."""
    lock = (f"{directory}/{STORAGE}", STORAGE_STALE_SECONDS)
    return locked(lock, patience_seconds=patience_seconds, stays_fresh=stays_fresh)
