"""Makes sure that what comes after a box is done, even if the program in the box has killed its parent.

At a terminal, program and parent are in one process group, and the program has to reach the parent: whoever suspends
the group suspends both. So the program can end the parent with SIGKILL, and the box with it; nobody would look at what
it has left. This process is in a group of its own, outside the box's pid namespace: nothing in the box can name it.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

from claudebox.process.descriptors import close_all_but

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

END_OF_BOX_MILLISECONDS = 5000  # for the kernel to end the box
DONE = b"."
IGNORED = (
    *(_signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGHUP),
    *(_signal.SIGTSTP, _signal.SIGTTIN, _signal.SIGTTOU, _signal.SIGPIPE),
)


def stand_by(box: int, deeds: Sequence[Callable[[bool], None]]) -> int:
    """Fork the witness. The parent says on the returned descriptor that all is done; if it does not, this one acts."""
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
