"""Carries bytes between the pipes that are the caller's standard streams and those that the box gets in their place.

Whoever has a pipe can open it again through /proc/self/fd with other rights, and sets its flags for everybody else who
has it. So the box gets pipes of its own. Sockets cannot be opened again, but `/dev/stdin`, `/dev/stdout` and
`/dev/stderr`, which scripts use, could not be opened either then.

Each pipe has a thread of the parent, so that one that stands still does not stop the others.
"""

from __future__ import annotations

import fcntl
import os
import select
import stat

from claudebox.errors import suppress
from claudebox.files import c_call

CHUNK = 1 << 16
NOT_WAITING = 2  # SPLICE_F_NONBLOCK
EXACT = 1 << 20  # bytes: whoever has read so many is going to read the rest, too
UNREAD = 0x541B  # FIONREAD
NUMBER = bytes(4)


class Pump:
    """The pipes of one box."""

    def __init__(self, streams: list[int]) -> None:
        self.for_box: dict[int, int] = {}  # its descriptors, by the number of the stream
        self.flows: list[tuple[int, int, bool]] = []  # the caller's descriptor, ours, and whether it is input
        made: dict[tuple[int, int, bool], int] = {}
        for stream in streams:
            status, is_input = os.fstat(stream), stream == 0
            # Output and errors into one pipe stay in one, and so in their order.
            which = (status.st_dev, status.st_ino, is_input)
            if which not in made:
                ends = os.pipe()
                made[which] = ends[not is_input]
                self.flows.append((os.dup(stream), ends[is_input], is_input))
            self.for_box[stream] = made[which]
        self.stopped, self.stop = os.pipe()  # ends when the threads have to
        self.ended, self.ending = os.pipe()  # ends when they have

    @property
    def streams(self) -> dict[int, os.stat_result]:
        """What the box gets, for the judge."""
        return {stream: os.fstat(descriptor) for stream, descriptor in self.for_box.items()}

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The descriptors that the parent of the box needs."""
        ends = (descriptor for theirs, ours, _ in self.flows for descriptor in (theirs, ours))
        return (*ends, self.stopped, self.stop, self.ended, self.ending)

    def enter(self) -> None:
        """Have these pipes as standard streams, in the process that becomes bwrap."""
        for stream, descriptor in self.for_box.items():
            os.dup2(descriptor, stream)

    def start(self) -> None:
        import _thread

        for flow in self.flows:
            _thread.start_new_thread(self._run, (*flow, os.dup(self.ending)))
        os.close(self.ending)

    def _run(self, theirs: int, ours: int, is_input: bool, ending: int) -> None:
        carry = carry_in if is_input else carry_out
        with suppress(OSError):  # nobody reads any more
            carry(theirs, ours, self.stopped)
        for descriptor in (ours, theirs, ending):
            os.close(descriptor)


def carry_out(theirs: int, ours: int, stopped: int) -> None:
    """Carry what the box writes until nobody can write or read it any more, or the box has ended."""
    os.set_blocking(ours, False)  # the box can have read what it wrote itself
    carried = 0
    while not (ready := _wait({ours: select.POLLIN, theirs: 0, stopped: 0})).keys() & {theirs, stopped}:
        if not ready[ours] & select.POLLIN:
            return
        carried += _copy(ours, theirs, CHUNK) if carried < EXACT else max(_move(ours, theirs, CHUNK), 0)
    # Not more than there is: who was handed a descriptor of the box could write for ever.
    left = _count(ours)
    while left > 0 and _count(ours):
        left -= _copy(ours, theirs, left)


def _copy(source: int, target: int, most: int) -> int:
    """Write what there is, all of it. Returns how much that was.

    To move it would be faster. But each line that is moved keeps a page of the target, which has sixteen, and a caller
    that waits for the end before it reads would wait for ever.
    """
    try:
        data = rest = os.read(source, most)
    except BlockingIOError:
        return 0
    while rest:
        try:
            rest = rest[os.write(target, rest) :]
        except BlockingIOError:
            _wait({target: select.POLLOUT})
    return len(data)


def carry_in(theirs: int, ours: int, stopped: int) -> None:
    """Carry what the box reads. What it leaves is for whoever reads the pipe next, such as the loop of a script.

    So the box gets a copy of what is next in the pipe (tee), and as much is taken from there as it has read. To be told
    of that, its pipe has room for one piece alone. Once the box has read a lot, bytes are moved ahead, which is faster.
    """
    fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, 1)  # a page
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    taken = 0 if stat.S_ISFIFO(os.fstat(theirs).st_mode) else EXACT  # nothing can be copied from a socket
    while taken < EXACT:
        ready = _wait({theirs: select.POLLIN, ours: 0, stopped: 0})
        if ready.keys() & {ours, stopped}:
            return
        copied = c_call("tee", theirs, ours, CHUNK, NOT_WAITING)
        if copied < 0 and ready[theirs] == select.POLLIN and not _count(theirs):
            continue  # somebody else has read it meanwhile
        if copied <= 0:
            break  # it has ended
        has_ended = _wait({ours: select.POLLOUT, stopped: 0}) != {ours: select.POLLOUT}
        # A program that gives its pipe more room has not read all yet, but gets no piece twice.
        if (read := copied - (_count(ours) if has_ended else 0)) > 0:
            taken += os.splice(theirs, null, read, flags=NOT_WAITING)
    with suppress(OSError):  # this account has too many pipes
        fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, CHUNK)
    while not _wait({theirs: select.POLLIN, ours: 0, stopped: 0}).keys() & {ours, stopped}:
        if _move(theirs, ours, CHUNK, stopped) == 0:
            return


def _move(source: int, target: int, most: int, *stopped: int) -> int:
    """Move what there is; 0 at its end. If the target is full, wait until that changes, and return -1."""
    try:
        return os.splice(source, target, most, flags=NOT_WAITING)
    except BlockingIOError:
        _wait({target: select.POLLOUT, **dict.fromkeys(stopped, 0)})
        return -1


def _wait(events: dict[int, int]) -> dict[int, int]:
    """Wait for one of these events, or the end of one of the descriptors."""
    poll = select.poll()
    for descriptor, event in events.items():
        poll.register(descriptor, event)
    return dict(poll.poll())


def _count(pipe: int) -> int:
    """The bytes that nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, UNREAD, NUMBER), "little")
