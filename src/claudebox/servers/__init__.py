"""Programs of their own that run beside a box; here is what a launch needs of them without loading them."""

from __future__ import annotations

import os

from claudebox.files import write_whole
from claudebox.process.companion import start_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Login


def start_carrier(listeners: list[tuple[int, int]]) -> None:
    """Start a process in this network that carries what arrives at each listener to a port of the loopback here.

    All that the box can do with it is to reach its own ports.
    """

    def carry() -> None:
        from claudebox.servers.carrier import carry_to_loopback

        carry_to_loopback(listeners)

    start_below(carry, tuple(listener for listener, _ in listeners))


# What was copied between the host's login and that of the boxes


def is_current(login: Login) -> bool:
    """Whether the boxes' copy was made from, or into, the file as it is now. Most launches find it so."""
    kept = login.instance
    return os.path.islink(kept.own_login) and stamp(kept.auth_login) != "" and noted(login)[:1] == [stamp(login.file)]


def noted(login: Login) -> list[str]:
    """The stamp of the host's file when the copy was last made, and hashes of the logins it held then or was to get."""
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
