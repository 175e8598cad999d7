"""Starts the process that keeps Claude's login up to date beside the box.

It is not the parent of the box: it may die without any harm to it.
"""

from __future__ import annotations

import os

from claudebox.model import Login
from claudebox.problem import Problem

FILE_NAME = ".credentials.json"


def start_beside(login: Login) -> None:
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


def watch_own_end(purpose: str) -> int:
    """A descriptor by which others see that this process, the parent of the box, has ended."""
    try:
        return os.pidfd_open(os.getpid())
    except (AttributeError, OSError):  # Python may be built for an older Linux, too
        raise Problem(
            f"{purpose}, the kernel has to tell when a process has ended (pidfd_open): Linux 5.3 and later do",
            "without it: --auth none",
        ) from None


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


def detach(keep: tuple[int, ...]) -> None:
    """Away from the terminal, its signals, and every descriptor whose end somebody may wait for."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in keep:
            os.closerange(int(name), int(name) + 1)
    os.chdir("/")
