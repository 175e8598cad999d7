"""Starts the process that keeps Claude's login up to date beside the box.

It is not the parent of the box: it may die without any harm to it.
"""

from __future__ import annotations

import os

from claudebox.model import Login, Plan
from claudebox.problem import Problem
from claudebox.process.lifetime import detach, watch_own_end

FILE_NAME = ".credentials.json"


def before(plan: Plan) -> None:
    login = plan.login
    assert login is not None
    if login.file:
        keep_in_step(login)
    else:
        forget_if_gone(login)


def keep_in_step(login: Login) -> None:
    if not is_current(login):
        from claudebox.features.login.exchange import exchange

        try:
            exchange(login)
        except OSError as error:
            raise Problem(f"cannot hand over Claude's login: {error.strerror}", "without it: --auth none") from None
    watch = watch_own_end("to keep Claude's login up to date")
    if os.fork() != 0:
        os.close(watch)
        return
    try:
        detach((watch,))
        from claudebox.features.login.exchange import follow

        follow(login, watch)
    finally:
        os._exit(0)


def forget_if_gone(login: Login) -> None:
    """Log the boxes out if the file that their login came from is no longer there: the user logged out."""
    for path in (f"{login.directory}/{FILE_NAME}", _note(login)) if os.path.exists(_note(login)) else ():
        try:
            os.unlink(path)
        except OSError:
            pass


def is_current(login: Login) -> bool:
    """Whether the boxes' copy was made from, or into, the file as it is now. Most launches find it so."""
    return os.path.islink(login.own_file) and stamp(f"{login.directory}/{FILE_NAME}") != "" and was_made_from(login)


def was_made_from(login: Login) -> bool:
    """Whether the host's file is still as it was when it was last copied, in either direction."""
    try:
        with open(_note(login)) as note:
            return note.read() == stamp(login.file)
    except OSError:
        return False


def remember(login: Login) -> None:
    with open(_note(login), "w") as note:
        note.write(stamp(login.file))


def _note(login: Login) -> str:
    # Beside the directory, not in it: the boxes can write there.
    return f"{login.directory}.from"


def stamp(path: str) -> str:
    """How a file is now; "" if there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return ""
    return f"{path} {status.st_ino} {status.st_mtime_ns} {status.st_size}"
