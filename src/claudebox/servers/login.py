"""Keeps Claude's login the same on the host and in the boxes of a project while a box runs.

A refresh token is good for one use. Claude in the box stores a new one by rename, in the directory that the boxes of
its project share; Claude on the host does the same with the user's own file. This process runs beside the box, not
above it, and copies whichever is newer. It ends when the box does.

Projects share nothing with each other: a new login goes from one's directory to the user's file, and from there, by the
processes of the others, to theirs. For each of them the user's file has changed then, and what changed there wins. So
each notes which logins it has itself put there or taken from there, before it does so: wherever it is killed, it does
not mistake its own copy for a change by somebody else, and replace by it what a box has stored since.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from typing import Any

from claudebox import files
from claudebox.host.tree import sha256
from claudebox.model import Login
from claudebox.servers import note, noted, stamp
from claudebox.state import LOGIN_FILE
from claudebox.state import login as logins

GLANCE_MILLISECONDS = 250  # between two looks at the files
SETTLE_SECONDS = 0.2
HOST_LOCK_PATIENCE_SECONDS = 2.0
BOX_LOCK_PATIENCE_SECONDS = 0.02
SOONER_AT_MOST = 20 * 60 * logins.MILLISECONDS
LONGEST_VALIDITY = 24 * 3600 * logins.MILLISECONDS  # Claude's own are good for eight hours


def run(login: Login, end: int) -> None:
    """Copy whenever one of the files changed, until the box has ended."""
    poll = select.poll()
    poll.register(end, select.POLLIN)
    seen = _stamps(login)
    ended = False
    while not ended:
        ended = bool(poll.poll(GLANCE_MILLISECONDS))
        if ended:
            # The last processes of the box may still be writing.
            time.sleep(SETTLE_SECONDS)
        now = _stamps(login)
        if now != seen or ended:
            copy_newer(login, may_switch=False)
            # The state from before the copy counts: what a box stores meanwhile is a change, too.
            seen = now


def _stamps(login: Login) -> tuple[str, ...]:
    return stamp(login.file), stamp(login.instance.auth_login), stamp(login.instance.own_login)


def copy_newer(login: Login, *, may_switch: bool = True) -> None:
    """Copy the newer login. All boxes do so one at a time: a copy must not look like a change by the user.

    Only a launch may switch to another file. Two boxes that share different ones would replace the copy in turns.
    """
    with files.Open(files.open_lock(login.all_projects.auth_lock)) as descriptor:
        files.take_lock(descriptor, waits=True)
        copied = "".join(noted(login)[:1])
        if may_switch or not copied or copied.startswith(f"{login.file} "):
            _copy(login)


def _copy(login: Login) -> None:
    """A login that changed on the host wins, else the newer one. What is not a login never wins."""
    kept, known = login.instance, noted(login)[1:]
    _adopt(login)
    current = stamp(login.file)  # from before it is read: what changes it meanwhile is a change
    host, boxes = logins.read(login.file), logins.read(kept.auth_login)
    ours, theirs = _usable(host), _usable(boxes)
    has_changed = logins.fingerprint(logins.login_in(host)) not in known
    is_same = logins.fingerprint(ours) == logins.fingerprint(theirs)
    known = [logins.fingerprint(logins.login_in(host))]
    if ours and not is_same and (has_changed or logins.expiry_ms(ours) > logins.expiry_ms(theirs)):
        note(login, f"{login.file} ", *known)
        _give_to_boxes(login, {**(boxes or {}), logins.KEY: _ending_sooner(login, ours)})
    elif not ours and has_changed:
        with contextlib.suppress(OSError):
            os.unlink(kept.auth_login)  # the user logged out
    elif ours and not is_same and logins.expiry_ms(theirs) > logins.expiry_ms(ours):
        known.append(logins.fingerprint(theirs))
        note(login, f"{login.file} ", *known)
        current = _give_to_host(login, ours, theirs) or f"{login.file} "  # no stamp: the next launch looks again
    note(login, current, *known)


def _ending_sooner(login: Login, ours: dict[str, Any]) -> dict[str, Any]:
    """The login with an earlier expiry: by some minutes, another number for each project.

    All boxes have the same login. Those of different projects do not see each other's locks, and if they renewed it in
    the same moment, the second would use a token that the first has used up. So they renew it one after the other, and
    a new login is everywhere before the next would ask for one.
    """
    part = int(sha256(login.instance.directory.encode())[:8], 16) / (1 << 32)
    return {**ours, "expiresAt": int(logins.expiry_ms(ours) - part * SOONER_AT_MOST)}


def _adopt(login: Login) -> None:
    """Take over a login that a Claude stored in its own home instead, and put the symlink back."""
    own_login = login.instance.own_login
    if stamp(own_login) == "" or os.path.islink(own_login):
        return
    own, boxes = _usable(logins.read(own_login)), logins.read(login.instance.auth_login)
    if logins.expiry_ms(own) > logins.expiry_ms(_usable(boxes)):
        _give_to_boxes(login, {**(boxes or {}), logins.KEY: own})
    temporary = f"{own_login}.{os.getpid()}"
    with contextlib.suppress(OSError):
        if os.path.isdir(own_login):
            files.put_aside(None, own_login)
        os.symlink(f"{login.place}/{LOGIN_FILE}", temporary)
        os.rename(temporary, own_login)


def _usable(credentials: dict[str, Any] | None) -> dict[str, Any]:
    """The login, if it can be used now or after a refresh. Claude blanks the tokens of one that was refused."""
    login = logins.login_in(credentials)
    # The box can write this file: a validity that no server gives must not win for long.
    is_valid = 0 < logins.expiry_ms(login) < time.time() * logins.MILLISECONDS + LONGEST_VALIDITY
    return login if is_valid and logins.is_whole(login) else {}


def _give_to_boxes(login: Login, credentials: dict[str, Any]) -> None:
    """Store it, under Claude's lock if that is free. The agent owns that directory, so a lock that it holds does not
    stop us."""
    kept = login.instance
    with contextlib.suppress(OSError):
        try:
            with logins.storage_lock(kept.auth, BOX_LOCK_PATIENCE_SECONDS):
                logins.replace(kept.auth_login, credentials)
        except (logins.Busy, OSError):
            logins.replace(kept.auth_login, credentials)


def _give_to_host(login: Login, ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Store it only under Claude's lock, and if nobody was quicker. The next change, or the end of the box, tries
    again. Returns the stamp of the file; "" if it was not stored."""
    with contextlib.suppress(OSError, logins.Busy), logins.storage_lock(login.locks, HOST_LOCK_PATIENCE_SECONDS):
        credentials = logins.read(login.file)
        if logins.login_in(credentials) == ours:
            logins.replace(login.file, {**(credentials or {}), logins.KEY: {**ours, **logins.known_fields(theirs)}})
            return stamp(login.file)
    return ""
