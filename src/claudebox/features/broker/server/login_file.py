"""Claude's file with the login of a subscription: read, and replaced without ever losing it."""

from __future__ import annotations

import json
import os

from claudebox.features.broker.server.locks import storage_lock
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEY = "claudeAiOauth"
LARGEST_FILE = 1 << 20
RESERVED = 8192  # more than new tokens need


class Tokens(Record):
    """A login as it is used."""

    access: str
    refresh: str
    expires_at: float  # seconds
    scopes: tuple[str, ...] = ()
    client: str = ""
    subscription: str = ""


def read_tokens(path: str) -> Tokens | None:
    """None if nobody is logged in, or Claude has blanked the login."""
    return _tokens(_read(path))


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            value = json.loads(file.read(LARGEST_FILE))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _tokens(credentials: dict[str, Any]) -> Tokens | None:
    login = credentials.get(KEY)
    if not isinstance(login, dict) or not _text(login, "accessToken"):
        return None
    expiry, scopes = login.get("expiresAt"), login.get("scopes")
    return Tokens(
        access=_text(login, "accessToken"),
        refresh=_text(login, "refreshToken"),
        expires_at=min(float(expiry), 1e15) / 1000 if isinstance(expiry, int | float) else 0.0,
        scopes=tuple(filter(None, map(str, scopes))) if isinstance(scopes, list) else (),
        client=_text(login, "clientId"),
        subscription=_text(login, "subscriptionType"),
    )


def _text(login: dict[str, Any], name: str) -> str:
    """One that can stand in a header."""
    value = login.get(name)
    return value if isinstance(value, str) and value.isascii() and value.isprintable() and " " not in value else ""


class Replacement:
    """A new file beside the old one, with room for what will be in it.

    Made before the refresh token is used: it is good for one use, and a disk that turns out to be full afterwards would
    log the user out.
    """

    def __init__(self, path: str, directory: str) -> None:
        self.path = path
        self.directory = directory  # where Claude locks
        self.temporary = f"{path}.{os.getpid()}.tmp"
        size = len(json.dumps(_read(path)).encode()) + RESERVED
        try:
            os.unlink(self.temporary)
        except FileNotFoundError:
            pass
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = os.open(self.temporary, flags, 0o600)
        try:
            os.posix_fallocate(self.descriptor, 0, size)
        except OSError:
            self.drop()
            raise

    def store(self, tokens: Tokens) -> None:
        """Put it in the place of the file as it is now, with everything else in there."""
        with storage_lock(self.directory):
            credentials = _read(self.path)
            old = credentials.get(KEY)
            new = {
                "accessToken": tokens.access,
                "refreshToken": tokens.refresh,
                "expiresAt": int(tokens.expires_at * 1000),
                "scopes": list(tokens.scopes),
            }
            credentials[KEY] = {**(old if isinstance(old, dict) else {}), **new}
            content = json.dumps(credentials).encode()
            written = 0
            while written < len(content):
                written += os.pwrite(self.descriptor, content[written:], written)
            os.ftruncate(self.descriptor, len(content))
            os.fsync(self.descriptor)
            os.rename(self.temporary, self.path)

    def drop(self) -> None:
        if self.descriptor < 0:
            return
        os.close(self.descriptor)
        self.descriptor = -1
        try:
            os.unlink(self.temporary)
        except OSError:
            pass  # it is in its place
