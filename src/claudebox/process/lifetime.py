"""Ends a process with its parent, shows its end to others, and hides its arguments from them."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

from claudebox.problem import Problem
from claudebox.process.descriptors import close_all_but
from claudebox.process.isolation import SET_PARENT_DEATH_SIGNAL, c_function
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NAME = b"claudebox"
# Where the arguments begin and end in memory: fields 48 and 49 of /proc/self/stat, counted from field 3.
ARGUMENTS = slice(45, 47)


class Companion(Record):
    """A process beside the box, as the parent sees it. The box ends with it."""

    life: int  # a pipe that ends when the companion does, or a lock that is held as long
    clear: Callable[[], None]  # removes what it leaves behind if it was killed
    # Waits until it is ready or the box has ended; raises a Problem if it failed.
    require_ready: Callable[[int], None] = lambda _: None
    why_ended: Callable[[], Problem | None] = lambda: None  # says why it has ended


def die_with_parent() -> None:
    control = c_function("prctl")
    if control is None or control(SET_PARENT_DEATH_SIGNAL, int(_signal.SIGKILL), 0, 0, 0) != 0:
        os._exit(1)


def has_ended(descriptor: int) -> bool:
    """Whether nobody is left at the other end of this pipe. Nobody ever writes into it."""
    os.set_blocking(descriptor, False)
    try:
        return os.read(descriptor, 1) == b""
    except BlockingIOError:
        return False


def watch_own_end(purpose: str, without: str) -> int:
    """A descriptor by which others see that this process, the parent of the box, has ended."""
    try:
        return os.pidfd_open(os.getpid())
    except (AttributeError, OSError):  # Python may have been built for an older Linux
        raise Problem(
            f"{purpose}, the kernel has to tell when a process has ended (pidfd_open): Linux 5.3 and later do",
            f"without it: {without}",
        ) from None


def detach(keep: tuple[int, ...]) -> None:
    """Leave the terminal, its signals and the arguments, and close every descriptor: somebody may wait for its end."""
    os.setsid()
    forget_arguments()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    close_all_but(list(keep))
    os.chdir("/")


def forget_arguments() -> None:
    """Overwrite the arguments: everybody can read them (`ps`), and `--env TOKEN=…` may be among them."""
    with open("/proc/self/stat", "rb") as file:
        start, end = map(int, file.read().rpartition(b")")[2].split()[ARGUMENTS])
    memory = os.open("/proc/self/mem", os.O_WRONLY | os.O_CLOEXEC)
    os.pwrite(memory, NAME.ljust(end - start, b"\0")[: end - start], start)
    os.close(memory)
