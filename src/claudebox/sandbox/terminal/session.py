"""Gives the box a terminal of its own.

Three processes outside of the box have to do with it:

  parent      is in the job of the caller and has the user's terminal. It carries what is typed and shown (relay.py).
  keeper      leads the session of the box's terminal. It sees the box stop, and brings the user's terminal back if
              somebody kills the parent.
  sentinel    does nothing. It is in the process group of the box, so it stops when that group is told to, and the
              keeper is told. bwrap cannot stop: it is the first process of a pid namespace.

Without a keeper and its sentinel Ctrl-Z would do nothing: the kernel does not stop a process group none of whose
members has a parent elsewhere in the session, because nobody could continue it.

The box is a child of the parent, not of the keeper, so all else is as it is without a terminal.

Imports: the first half runs before bwrap starts, so what the second half needs is imported there.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem
from claudebox.process import signal
from claudebox.process.companion import die_with_parent, forget_arguments
from claudebox.process.isolation import close_all_but, fork_into_namespaces, fork_sibling, scope_to_box
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

STREAMS = (0, 1, 2)
STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
IGNORED = (*STOPS, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)

# What the parent may say to the keeper. Only the keeper stops and continues the box, one order after the other: with
# two who do, an older SIGCONT could undo a later stop.
GO_ON = b"f"  # the box goes on, as the foreground of its terminal
GO_ON_BEHIND = b"b"  # the box goes on, and stops if it wants to read
STOP = b"z"  # the box stops, if it likes
GIVE_UP_STOPPING = b"o"  # nobody could continue the caller's job: the same holds for the box
DONE = b"."
# What the keeper says: the number of the signal that has stopped the box, or
GOES_ON = b"\0"  # an order to go on is carried out; what was said before it does not count any more

LONGEST_NUMBER = 20
LONGEST_NOTE = 4096
STOPPING_SECONDS = 2.0  # for a program to put its screen in order and stop
STOPPING_PAUSE_MILLISECONDS = 10
STUCK_MILLISECONDS = 2000  # after which a terminal that takes nothing is left alone


class Line(Record):
    """The parent's ends of what connects it with the box's terminal and its keeper."""

    terminal: int  # the user's own
    master: int  # the other end of the box's terminal
    stops: int  # a pipe from the keeper
    orders: int  # a pipe to the keeper
    note: int  # a file in memory: how to bring the user's terminal back
    is_foreground: bool  # whether the box may read from the first moment on

    @property
    def descriptors(self) -> tuple[int, ...]:
        return (self.terminal, self.master, self.stops, self.orders, self.note)


def open_users_terminal() -> int:
    """A descriptor of the terminal that the caller has; -1 if there is none.

    It is opened anew: not to block on the descriptors that we were started with would be everybody's problem.
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


def fork_on_terminal(terminal: int, *, into_namespaces: bool) -> tuple[int, Line | None]:
    """Fork, with a terminal of its own for the child wherever it would have the user's.

    Returns the child and the line to it in the parent, and 0 in the child. The keeper never returns.
    """
    try:
        master, slave = os.openpty()
    except OSError as error:
        raise Problem(
            f"the box cannot have a terminal of its own: {error.strerror}", "ls -l /dev/ptmx /dev/pts"
        ) from None
    # In a pipeline somebody else may be reading keys: the box gets the terminal when it asks for it.
    is_foreground = os.isatty(0) and os.isatty(1) and is_foreground_of(terminal)
    stops, telling = os.pipe()
    hearing, orders = os.pipe()
    note = os.memfd_create("terminal", os.MFD_CLOEXEC)
    keeper = os.fork()
    if keeper != 0:
        for descriptor in (slave, telling, hearing):
            os.close(descriptor)
        number = os.read(stops, LONGEST_NUMBER)
        if not number:
            # It has said why.
            raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1]) or 1)
        return int(number), Line(terminal, master, stops, orders, note, is_foreground)
    for descriptor in (master, stops, orders):
        os.close(descriptor)
    os.setsid()
    # The first terminal that the leader of a session opens controls that session.
    os.close(os.open(os.ttyname(slave), os.O_RDWR | os.O_CLOEXEC))
    # The sentinel included, which a program has to reach that suspends its process group.
    scope_to_box()
    ready, joined = os.pipe()
    child = fork_into_namespaces(as_sibling=True) if into_namespaces else fork_sibling()
    if child == 0:
        os.setpgid(0, 0)
        for stream in STREAMS:
            if os.isatty(stream):
                os.dup2(slave, stream)
        os.write(joined, b".")
        return 0, None
    os.close(joined)
    os.read(ready, 1)
    try:
        SessionLeader(child, terminal, slave, hearing, telling, note).keep(is_foreground=is_foreground)
    finally:
        os._exit(1)


def is_foreground_of(terminal: int) -> bool:
    """Whether this process may read from the terminal. One that does not control it may, if it is there."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError as error:
        import errno

        return error.errno == errno.ENOTTY


class SessionLeader:
    def __init__(self, box: int, terminal: int, slave: int, hearing: int, telling: int, note: int) -> None:
        self.box = box
        self.terminal = terminal
        self.slave = slave
        self.hearing = hearing
        self.telling = telling
        self.note = note
        self.front = box  # the process group that is, or was, the foreground of the box's terminal
        self.stopped_by = 0  # the signal, while the program has not stopped yet
        self.program = 0
        self.deadline = 0.0
        self.sentinel = -1
        self.has_sentinel = True  # as long as it was not waited for, nobody else has its number

    def keep(self, *, is_foreground: bool) -> NoReturn:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in STREAMS:
            os.dup2(null, stream)
        close_all_but([self.terminal, self.slave, self.hearing, self.telling, self.note])
        forget_arguments()
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        self.sentinel = _post_sentinel(self.box)
        if is_foreground:
            self._set_foreground(self.box)
        os.write(self.telling, b"%d" % self.box)
        self._serve()

    def _serve(self) -> NoReturn:
        # All of it now: an agent may be able to change what is imported later.
        import marshal  # noqa: F401
        import select
        import termios  # noqa: F401

        from claudebox.sandbox import signals  # noqa: F401

        signal.signal(signal.SIGCHLD, lambda *_: None)
        waking = wake_on_signals()
        self._look_at_sentinel()  # it may have stopped before
        poll = select.poll()
        for descriptor in (self.hearing, waking):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = dict(poll.poll(STOPPING_PAUSE_MILLISECONDS if self.stopped_by else None))
            if waking in ready:
                os.read(waking, LONGEST_NOTE)
                self._look_at_sentinel()
            if self.stopped_by:
                self._see_whether_stopped()
            if self.hearing in ready:
                self._obey(os.read(self.hearing, 1))

    def _look_at_sentinel(self) -> None:
        if not self.has_sentinel:
            return
        pid, status = os.waitpid(self.sentinel, os.WNOHANG | os.WUNTRACED)
        self.has_sentinel = pid == 0 or os.WIFSTOPPED(status)
        if pid == 0 or not self.has_sentinel:
            return
        import time

        from claudebox.sandbox.signals import program_of

        self.stopped_by = os.WSTOPSIG(status)
        self.program = program_of(self.box)
        self.deadline = time.monotonic() + STOPPING_SECONDS

    def _see_whether_stopped(self) -> None:
        """The sentinel stops at once; a program first puts its screen in order, or does not want to stop at all."""
        import time

        if self.stopped_by in (signal.SIGTTIN, signal.SIGTTOU) or _is_stopped(self.program):
            self._tell(bytes([self.stopped_by]))
            self.stopped_by = 0
        elif time.monotonic() > self.deadline:
            self.stopped_by = 0
            self._send(self.box, signal.SIGCONT)

    def _obey(self, order: bytes) -> None:
        if order == DONE:
            os._exit(0)
        elif order in (GO_ON, GO_ON_BEHIND):
            self.stopped_by = 0
            self._note_front()
            self._set_foreground(self.front if order == GO_ON else os.getpgrp())
            # Once each: whoever goes on may stop again at once, and the second signal would undo that.
            for group in {self.front, self.box}:
                self._send(group, signal.SIGCONT)
            self._tell(GOES_ON)
        elif order == STOP:
            self._send(self.box, signal.SIGTSTP)
        elif order == GIVE_UP_STOPPING:
            if self.has_sentinel:  # a box can end it, and can have its parent say this twice
                os.kill(self.sentinel, signal.SIGKILL)
            self._send(self.box, signal.SIGCONT)
        else:
            self._bring_back()
            os._exit(1)

    def _tell(self, word: bytes) -> None:
        try:
            os.write(self.telling, word)
        except BrokenPipeError:
            pass  # somebody has killed the parent; what it has left to hear is the end of its orders

    def _note_front(self) -> None:
        """Note who is in front, unless nobody of the box is: a shell in there may have changed it."""
        try:
            front = os.tcgetpgrp(self.slave)
        except OSError:
            return  # the user's window is closed
        if front != os.getpgrp():
            self.front = front

    def _set_foreground(self, group: int) -> None:
        try:
            os.tcsetpgrp(self.slave, group)
        except OSError:
            self.front = self.box  # the group is gone

    def _send(self, group: int, number: int) -> None:
        try:
            os.killpg(group, number)
        except OSError:
            pass  # nobody is left in it

    def _bring_back(self) -> None:
        """Do what the parent, which somebody has killed, can do no more. A shell may have done some of it."""
        import marshal
        import termios

        note = os.pread(self.note, LONGEST_NOTE, 0)
        if not note:
            return
        before, raw, undo = marshal.loads(note)  # noqa: S302  (the parent has written it)
        try:
            if termios.tcgetattr(self.terminal) == raw:
                termios.tcsetattr(self.terminal, termios.TCSANOW, before)
            self._show(undo)
        except (OSError, termios.error):
            pass  # the terminal is gone, too

    def _show(self, codes: bytes) -> None:
        """Write them, as soon as the terminal has taken what the parent wrote last."""
        import select

        poll = select.poll()
        poll.register(self.terminal, select.POLLOUT)
        while codes and poll.poll(STUCK_MILLISECONDS):
            try:
                codes = codes[os.write(self.terminal, codes) :]
            except BlockingIOError:
                pass


def wake_on_signals() -> int:
    """A descriptor from which the number of each signal can be read that has a handler."""
    waking, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return waking


def _post_sentinel(group: int) -> int:
    sentinel = os.fork()
    if sentinel != 0:
        try:
            os.setpgid(sentinel, group)
        except OSError:
            pass  # the box has ended already
        return sentinel
    try:
        die_with_parent()
        for number in STOPS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - {*STOPS})
        close_all_but([])
        while True:
            signal.pause()
    finally:
        os._exit(1)


def _is_stopped(process: int) -> bool:
    """Whether it has stopped, or is not there."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] in (b"T", b"t")
    except OSError:
        return True
