"""Sees to it that what is done after a box is done, even if the program in it has killed the parent of the box.

At a terminal they are in one process group, and the parent has to be within reach: who suspends the group suspends it.
So a program can end it with SIGKILL, and all of the box with it; what it has left would not be looked at. This process
is in a group of its own, and outside of the box's pid namespace: from inside, nothing names it.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

from claudebox.process.descriptors import close_all_but

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

END_OF_BOX_MILLISECONDS = 5000  # milliseconds, for the kernel to end the box
DONE = b"."
IGNORED = (
    *(_signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGHUP),
    *(_signal.SIGTSTP, _signal.SIGTTIN, _signal.SIGTTOU, _signal.SIGPIPE),
)


def stand_by(box: int, deeds: Sequence[Callable[[bool], None]]) -> int:
    """A descriptor for the parent, to say in the end that all is done. Without a word, the witness does it."""
    try:
        handle = os.pidfd_open(box)
    except OSError:
        return -1  # before Linux 5.3: then there is only the parent
    reading, writing = os.pipe()
    if os.fork() != 0:
        os.close(reading)
        os.close(handle)
        return writing
    try:
        os.setpgid(0, 0)
        for number in IGNORED:
            _signal.signal(number, _signal.SIG_IGN)
        close_all_but([reading, handle])
        if os.read(reading, len(DONE)) != DONE:
            _wait_for(handle)
            for deed in deeds:
                deed(False)  # nobody is left who could answer
    finally:
        os._exit(0)


def release(witness: int) -> None:
    try:
        os.write(witness, DONE)
    except OSError:
        pass  # somebody has ended it


def _wait_for(handle: int) -> None:
    import select

    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.poll(END_OF_BOX_MILLISECONDS)
