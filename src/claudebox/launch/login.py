"""Keeps Claude's login the same on the host and in the boxes while a box runs.

A refresh token is good for one use. Claude in the box stores a new one by rename, in the directory that all boxes
share; Claude on the host does the same with the user's own file. This process runs beside the box, not above it,
and copies whichever is newer. It ends when the box does.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import time

from claudebox.launch.beside import FILE_NAME, remember, stamp
from claudebox.model import Login

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEY = "claudeAiOauth"  # the file holds tokens of MCP servers too: those stay outside
INTERVAL_MS = 250
SETTLE_SECONDS = 0.2
LOCK = ".storage-write.lock"  # the one that Claude takes
LOCK_PATIENCE = 5.0
STALE_LOCK = 10.0
MILLISECONDS = 1000
LONGEST_VALIDITY = 370 * 24 * 3600 * MILLISECONDS


def follow(login: Login, watch: int) -> None:
    """Copy whenever one of the files changed, until the box has ended."""
    poll = select.poll()
    poll.register(watch, select.POLLIN)
    seen = _stamps(login)
    ended = False
    while not ended:
        ended = bool(poll.poll(INTERVAL_MS))
        if ended:
            # The last processes of the box may still be writing.
            time.sleep(SETTLE_SECONDS)
        now = _stamps(login)
        if now != seen or ended:
            exchange(login)
            seen = _stamps(login)


def _stamps(login: Login) -> tuple[str, str]:
    return stamp(login.file), stamp(f"{login.directory}/{FILE_NAME}")


def exchange(login: Login) -> None:
    """The newer login wins. What is not a login never wins."""
    shared = f"{login.directory}/{FILE_NAME}"
    host, boxes = _read(login.file), _read(shared)
    ours, theirs = _login_of(host), _login_of(boxes)
    if ours is not None and (theirs is None or _expiry(ours) > _expiry(theirs)):
        _replace(shared, {KEY: ours})
    elif theirs is not None and host is not None and (ours is None or _expiry(theirs) > _expiry(ours)):
        _replace(login.file, {**host, KEY: theirs})
    remember(login)


def _read(path: str) -> dict[str, Any] | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        try:
            value = json.loads(file.read(1 << 20))
        except (OSError, ValueError):
            return None
    return value if isinstance(value, dict) else None


def _login_of(credentials: dict[str, Any] | None) -> dict[str, Any] | None:
    """A login that can be used, now or after a refresh. Claude blanks the tokens of one that was refused."""
    login = (credentials or {}).get(KEY)
    if not isinstance(login, dict) or not login.get("accessToken") or not login.get("refreshToken"):
        return None
    # The box can write this file: a validity that no server would give must not win for ever.
    return login if 0 < _expiry(login) < time.time() * MILLISECONDS + LONGEST_VALIDITY else None


def _expiry(login: dict[str, Any]) -> float:
    value = login.get("expiresAt")
    return float(value) if isinstance(value, int | float) else 0.0


def _replace(path: str, credentials: dict[str, Any]) -> None:
    """Atomically, and under the lock that Claude itself uses for this file."""
    directory = os.path.dirname(path)
    lock = f"{directory}/{LOCK}"
    locked = _take(lock)
    temporary = f"{directory}/.credentials.{os.getpid()}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w") as file:
            json.dump(credentials, file)
            file.flush()
            os.fsync(descriptor)
        os.rename(temporary, path)
    except OSError:
        _forget(temporary)
    finally:
        if locked:
            os.rmdir(lock)


def _take(lock: str) -> bool:
    deadline = time.monotonic() + LOCK_PATIENCE
    while time.monotonic() < deadline:
        try:
            os.mkdir(lock)
        except FileExistsError:
            if _age(lock) > STALE_LOCK:
                break
            time.sleep(0.02)
        except OSError:
            break
        else:
            return True
    return False


def _age(path: str) -> float:
    try:
        return time.time() - os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _forget(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
