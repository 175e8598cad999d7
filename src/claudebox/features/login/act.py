"""Starts the process that keeps the login of the host and that of a project's boxes in step.

That process runs beside the box, not above it: it may die without any harm to the box.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem
from claudebox.files import write_whole
from claudebox.model import Launch, Login
from claudebox.process.companion import start_beside, watch_own_end


def before(launch: Launch) -> None:
    login = launch.get(Login)
    if login.file:
        start_keeping_in_step(login)
    else:
        forget_if_gone(login)


def start_keeping_in_step(login: Login) -> None:
    if not is_current(login):
        from claudebox.features.login.keep_in_step import bring_into_step

        try:
            bring_into_step(login)
        except OSError as error:
            raise Problem(f"cannot hand over Claude's login: {error.strerror}", "without it: --auth none") from None
    watch = watch_own_end("to keep Claude's login up to date", "--auth none")
    os.close(start_beside(lambda _: _keep_in_step(login, watch), (watch,)))


def _keep_in_step(login: Login, watch: int) -> None:
    from claudebox.features.login.keep_in_step import keep_in_step

    keep_in_step(login, watch)


def forget_if_gone(login: Login) -> None:
    """Log the boxes out if the file that their login came from is no longer there: the user logged out."""
    kept = login.instance
    for path in (kept.auth_login, kept.auth_note) if os.path.exists(kept.auth_note) else ():
        try:
            os.unlink(path)
        except OSError:
            pass


def is_current(login: Login) -> bool:
    """Whether the boxes' copy was made from, or into, the file as it is now. Most launches find it so."""
    kept = login.instance
    return os.path.islink(kept.own_login) and stamp(kept.auth_login) != "" and noted(login)[:1] == [stamp(login.file)]


def is_shared_no_more(login: Login) -> bool:
    """Whether a later launch shares another file: the user began to keep a login for boxes only, or ended that."""
    known = "".join(noted(login)[:1])
    return known != "" and not known.startswith(f"{login.file} ")


def noted(login: Login) -> list[str]:
    """The stamp of the host's file when it was last in step, and which logins it held then or was about to hold."""
    try:
        with open(login.instance.auth_note) as note:
            return note.read().split("\n")
    except (OSError, ValueError):
        return []


def note(login: Login, *lines: str) -> None:
    """Write the note whole: half of one would mean that the user has logged in anew."""
    write_whole(login.instance.auth_note, os.fsencode("\n".join(lines)), is_safe=False)


def stamp(path: str) -> str:
    """What changes whenever a file does; "" if there is no file."""
    try:
        status = os.lstat(path)
    except OSError:
        return ""
    return f"{path} {status.st_ino} {status.st_mtime_ns} {status.st_size}"
