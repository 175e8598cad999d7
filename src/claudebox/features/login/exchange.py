"""Keeps Claude's login the same on the host and in the boxes while a box runs.

A refresh token is good for one use. Claude in the box stores a new one by rename, in the directory that all boxes
share; Claude on the host does the same with the user's own file. This process runs beside the box, not above it,
and copies whichever is newer. It ends when the box does.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import stat
import time

from claudebox.features.login.act import FILE_NAME, remember, stamp, was_made_from
from claudebox.model import Login

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEY = "claudeAiOauth"  # the file holds tokens of MCP servers too: those stay outside
INTERVAL_MS = 250
SETTLE_SECONDS = 0.2
LOCK = ".storage-write.lock"  # the one that Claude takes
LOCK_PATIENCE = 2.0
LOCK_PAUSE = 0.02
STALE_LOCK = 10.0
MILLISECONDS = 1000
LONGEST_VALIDITY = 24 * 3600 * MILLISECONDS  # Claude's own are good for eight hours
LARGEST_FILE = 1 << 20


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
            # As it was before: what a box stores meanwhile is a change too.
            seen = now


def _stamps(login: Login) -> tuple[str, ...]:
    return stamp(login.file), stamp(f"{login.directory}/{FILE_NAME}"), stamp(login.own_file)


def exchange(login: Login) -> None:
    """One at a time, whichever boxes run: what one has just copied must not look like a change by the user."""
    descriptor = os.open(f"{login.directory}.lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        _exchange(login)
    finally:
        os.close(descriptor)


def _exchange(login: Login) -> None:
    """A login that changed on the host wins; else the newer one. What is not a login never wins."""
    shared = f"{login.directory}/{FILE_NAME}"
    host_changed = not was_made_from(login)
    _adopt(login, shared)
    host, boxes = _read(login.file), _read(shared)
    ours, theirs = _login_of(host), _login_of(boxes)
    if ours is not None and (theirs is None or host_changed or _expiry(ours) > _expiry(theirs)):
        if ours != theirs:
            # The agent owns that directory: a lock which it left there decides nothing.
            _replace(shared, {**(boxes or {}), KEY: ours}, needs_lock=False)
    elif ours is None and host_changed:
        with contextlib.suppress(OSError):
            os.unlink(shared)  # the user logged out
    elif host is not None and ours is not None and theirs is not None and _expiry(theirs) > _expiry(ours):
        _replace(login.file, {**host, KEY: {**ours, **_plain(theirs)}}, needs_lock=True)
    remember(login)


def _adopt(login: Login, shared: str) -> None:
    """Take what a Claude stored in its own home instead, and put the symlink to the shared file back in its place."""
    if stamp(login.own_file) == "" or os.path.islink(login.own_file):
        return
    own = _login_of(_read(login.own_file))
    theirs = _login_of(_read(shared))
    if own is not None and (theirs is None or _expiry(own) > _expiry(theirs)):
        _replace(shared, {**(_read(shared) or {}), KEY: own}, needs_lock=False)
    temporary = f"{login.own_file}.{os.getpid()}"
    with contextlib.suppress(OSError):
        if os.path.isdir(login.own_file):
            os.rename(login.own_file, f"{login.own_file}.aside.{os.getpid()}")
        os.symlink(f"{login.place}/{FILE_NAME}", temporary)
        os.rename(temporary, login.own_file)


def _read(path: str) -> dict[str, Any] | None:
    """A JSON object. Anything else that the box may have put there is nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        value = json.loads(os.read(descriptor, LARGEST_FILE))
        json.dumps(value)  # nested so deeply that it cannot be written again, it is nothing either
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(descriptor)
    return value if isinstance(value, dict) else None


def _login_of(credentials: dict[str, Any] | None) -> dict[str, Any] | None:
    """A login that can be used, now or after a refresh. Claude blanks the tokens of one that was refused."""
    login = (credentials or {}).get(KEY)
    if not isinstance(login, dict):
        return None
    tokens = [login.get(name) for name in ("accessToken", "refreshToken")]
    if not all(isinstance(token, str) and token for token in tokens):
        return None
    # The box can write this file: a validity that no server gives must not win for long.
    return login if 0 < _expiry(login) < time.time() * MILLISECONDS + LONGEST_VALIDITY else None


def _plain(login: dict[str, Any]) -> dict[str, Any]:
    """What a login consists of, and nothing else that a box may have put there: it goes into a file of the host."""
    fields: dict[str, Any] = {name: value for name, value in login.items() if isinstance(value, str | int | float)}
    scopes = login.get("scopes")
    if isinstance(scopes, list) and all(isinstance(scope, str) for scope in scopes):
        fields["scopes"] = scopes
    return fields


def _expiry(login: dict[str, Any]) -> float:
    value = login.get("expiresAt")
    try:
        return float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:
        return 0.0


def _replace(path: str, credentials: dict[str, Any], *, needs_lock: bool) -> None:
    """Atomically, under the lock that Claude itself uses for this file, and in the directory as it is now."""
    directory, name = os.path.split(path)
    parent = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        locked = _take_lock(parent, LOCK_PATIENCE if needs_lock else LOCK_PAUSE)
        if locked or not needs_lock:
            _write(parent, name, json.dumps(credentials).encode())
        if locked:
            with contextlib.suppress(OSError):
                os.rmdir(LOCK, dir_fd=parent)
    finally:
        os.close(parent)


def _write(parent: int, name: str, content: bytes) -> None:
    temporary = f".credentials.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(temporary, flags, 0o600, dir_fd=parent)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        with contextlib.suppress(OSError):
            if stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
                os.rename(name, f"{name}.aside.{os.getpid()}", src_dir_fd=parent, dst_dir_fd=parent)
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=parent)


def _take_lock(parent: int, patience: float) -> bool:
    """Where it is needed, nothing is written without it: the next change, or the end of the box, tries again."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            os.mkdir(LOCK, dir_fd=parent)
        except FileExistsError:
            if not 0 <= _lock_age(parent) <= STALE_LOCK:
                with contextlib.suppress(OSError):
                    os.rmdir(LOCK, dir_fd=parent)
            time.sleep(LOCK_PAUSE)
        except OSError:
            return False
        else:
            return True
    return False


def _lock_age(parent: int) -> float:
    try:
        return time.time() - os.lstat(LOCK, dir_fd=parent).st_mtime
    except OSError:
        return 0.0
