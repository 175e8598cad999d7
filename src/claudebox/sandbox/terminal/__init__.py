"""The terminal that a box has of its own: what every start asks, and what the processes around it say to each other.

The user's terminal stays outside. `session.py` makes the box's own; `relay.py` passes keys and output between the two,
through the filter of `escape_codes.py`.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem
from claudebox.process import signal
from claudebox.record import Record

STREAMS = (0, 1, 2)

# What the parent may say to the leader of the session. Only the leader stops and continues the box, one order after the
# other: with two who do, an older SIGCONT could undo a later stop.
GO_ON = b"f"  # the box goes on, as the foreground of its terminal
GO_ON_BEHIND = b"b"  # the box goes on, and stops if it wants to read
STOP = b"z"  # the box stops, if it likes
GIVE_UP_STOPPING = b"o"  # nobody could continue the caller's job: the same holds for the box
DONE = b"."
# What the leader says: the number of the signal that has stopped the box, or
GOES_ON = b"\0"  # an order to go on is carried out; what was said before it does not count any more


class BoxTerminal(Record):
    """The parent's ends of what connects it with the box's terminal and the leader of its session."""

    users: int  # the user's own terminal
    master: int  # the other end of the box's terminal
    stops: int  # a pipe from the leader
    orders: int  # a pipe to the leader
    note: int  # a file in memory: how to restore the user's terminal
    is_foreground: bool  # whether the box may read from the first moment on

    @property
    def descriptors(self) -> tuple[int, ...]:
        return (self.users, self.master, self.stops, self.orders, self.note)


def open_users_terminal() -> int:
    """A descriptor of the terminal that the caller has; -1 if there is none.

    It is opened anew: to make the descriptors that we were started with non-blocking would affect everybody who has
    them.
    """
    streams = [stream for stream in STREAMS if os.isatty(stream)]
    for path in ("/dev/tty", *(f"/proc/self/fd/{stream}" for stream in streams)):
        try:
            return os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
    if streams:
        raise Problem(
            f"descriptor {streams[0]} is a terminal that is not yours: it cannot be kept out of the box",
            "in a terminal of your own: script -qc 'claudebox …' /dev/null",
        )
    return -1


def is_foreground_of(terminal: int) -> bool:
    """Whether this process may read from the terminal. One that does not control it may, if it is there."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError as error:
        import errno

        return error.errno == errno.ENOTTY


def wake_on_signals() -> int:
    """A descriptor from which the number of each signal can be read that has a handler."""
    waking, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return waking
