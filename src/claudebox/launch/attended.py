"""One small parent of a box that something has to run beside.

The box and what runs beside it live in a pid namespace, of which the child is the first process: when it dies, the
kernel ends everything in there, at whatever moment. And the child dies with the parent.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

from claudebox.launch.descriptors import close_all_but
from claudebox.launch.system_calls import SET_PARENT_DEATH_SIGNAL, c_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def fork_below(life: int, others_end: int) -> None:
    """Return in the child alone. The parent waits, and ends as the child does.

    The parent ends the child, once that has become another program, when nobody is left at the other end of `life`.
    """
    starting, started = os.pipe()  # ends when the child becomes another program
    below, above = os.pipe()  # ends when the parent does
    child = os.fork()
    if child != 0:
        os.close(others_end)
        os.close(started)
        os.close(below)
        _attend(child, starting, life, above)
    os.close(starting)
    os.close(above)
    die_with_parent()
    if has_ended(below):
        os._exit(1)  # it died before it was asked for
    os.close(below)


def die_with_parent() -> None:
    control = c_function("prctl")
    if control is None or control(SET_PARENT_DEATH_SIGNAL, int(_signal.SIGKILL), 0, 0, 0) != 0:
        os._exit(1)


def has_ended(descriptor: int) -> bool:
    """Whether nobody is left at the other end of this pipe."""
    import select

    poll = select.poll()
    poll.register(descriptor, 0)
    return bool(poll.poll(0))


def _attend(child: int, starting: int, life: int, above: int) -> NoReturn:
    """What the terminal sends is meant for the program. Nothing that the program has open stays open here."""
    _signal.signal(_signal.SIGINT, lambda *_: os.kill(child, _signal.SIGINT))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    end = os.pidfd_open(child)
    close_all_but([starting, life, above, end])
    has_started = _ends_first(starting, end)
    for number in (_signal.SIGINT, _signal.SIGQUIT):
        _signal.signal(number, _signal.SIG_IGN)
    if has_started and _ends_first(life, end):
        os.kill(child, _signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        # bwrap itself is ended by nothing but this.
        os.kill(os.getpid(), _signal.SIGKILL)
    os._exit(code)


def _ends_first(pipe: int, process: int) -> bool:
    import select

    poll = select.poll()
    poll.register(pipe, 0)
    poll.register(process, select.POLLIN)
    return process not in dict(poll.poll())
