"""Gives the box a terminal of its own, and controls its jobs.

Three processes outside of the box have to do with it:

  parent      is in the job of the caller and has the user's terminal. It relays what is typed and shown (relay.py).
  leader      leads the session of the box's terminal. It sees the box stop, and restores the user's terminal if
              somebody kills the parent.
  sentinel    does nothing. It is in the process group of the box, so it stops when that group is told to, and the
              leader, its parent, is told. bwrap cannot stop: it is the first process of a pid namespace.

Without a leader and its sentinel Ctrl-Z would do nothing: the kernel does not stop a process group none of whose
members has a parent elsewhere in the session, because nobody could continue it.

The box is a child of the parent, not of the leader, so everything else is as it is without a terminal.

Imports: the first half runs before bwrap starts, so what the second half needs is imported there.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem, suppress
from claudebox.process import signal
from claudebox.process.companion import die_with_parent, forget_arguments
from claudebox.process.isolation import close_all_but, fork_into_namespaces, fork_sibling, scope_to_box
from claudebox.sandbox.gate import program_of
from claudebox.sandbox.terminal import (
    DONE,
    GIVE_UP_STOPPING,
    GO_ON,
    GO_ON_BEHIND,
    GOES_ON,
    STOP,
    STREAMS,
    BoxTerminal,
    is_foreground_of,
    wake_on_signals,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
IGNORED = (*STOPS, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
LONGEST_NUMBER = 20
LONGEST_NOTE = 4096
STOPPING_SECONDS = 2.0  # for a program to put its screen in order and stop
STOPPING_PAUSE_MILLISECONDS = 10
STUCK_MILLISECONDS = 2000  # after which a terminal that takes nothing is left alone


def fork_on_terminal(terminal: int, *, into_namespaces: bool) -> tuple[int, BoxTerminal | None]:
    """Fork, with a terminal of its own for the child wherever it would have the user's.

    Returns the child and its terminal in the parent, and 0 in the child. The leader of the session never returns.
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
    leader = os.fork()
    if leader != 0:
        for descriptor in (slave, telling, hearing):
            os.close(descriptor)
        number = os.read(stops, LONGEST_NUMBER)
        if not number:
            # It has said why.
            raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(leader, 0)[1]) or 1)
        return int(number), BoxTerminal(terminal, master, stops, orders, note, is_foreground)
    for descriptor in (master, stops, orders):
        os.close(descriptor)
    os.setsid()
    # The first terminal that the leader of a session opens controls that session.
    os.close(os.open(os.ttyname(slave), os.O_RDWR | os.O_CLOEXEC))
    # The sentinel included: a program that suspends its process group has to reach it.
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
        Leader(child, terminal, slave, hearing, telling, note).lead(is_foreground=is_foreground)
    finally:
        os._exit(1)


class Leader:
    """The leader of the session of the box's terminal."""

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
        self.sentinel = -1  # not once it was waited for: another process may have its number

    def lead(self, *, is_foreground: bool) -> NoReturn:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in STREAMS:
            os.dup2(null, stream)
        close_all_but([self.terminal, self.slave, self.hearing, self.telling, self.note])
        forget_arguments()
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        self.sentinel = fork_sentinel(self.box)
        if is_foreground:
            self._set_foreground(self.box)
        os.write(self.telling, b"%d" % self.box)
        self.serve()

    def serve(self) -> NoReturn:
        # All of it now: an agent may be able to change what is imported later.
        import marshal  # noqa: F401
        import select
        import termios  # noqa: F401

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
        if self.sentinel < 0:
            return
        pid, status = os.waitpid(self.sentinel, os.WNOHANG | os.WUNTRACED)
        if pid == 0:
            return
        if not os.WIFSTOPPED(status):
            self.sentinel = -1
            return
        import time

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
            self._remember_foreground()
            self._set_foreground(self.front if order == GO_ON else os.getpgrp())
            # Once each: whoever goes on may stop again at once, and the second signal would undo that.
            for group in {self.front, self.box}:
                self._send(group, signal.SIGCONT)
            self._tell(GOES_ON)
        elif order == STOP:
            self._send(self.box, signal.SIGTSTP)
        elif order == GIVE_UP_STOPPING:
            if self.sentinel >= 0:  # a box can end it, and can have its parent say this twice
                os.kill(self.sentinel, signal.SIGKILL)
            self._send(self.box, signal.SIGCONT)
        else:
            self._restore_terminal()
            os._exit(1)

    def _tell(self, word: bytes) -> None:
        with suppress(BrokenPipeError):  # somebody has killed the parent: what is left to hear is the end of its orders
            os.write(self.telling, word)

    def _remember_foreground(self) -> None:
        """Remember the foreground group unless it is ours: a shell in the box may have changed it."""
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
        with suppress(OSError):  # nobody is left in it
            os.killpg(group, number)

    def _restore_terminal(self) -> None:
        """Do what the parent, which somebody has killed, can do no more. A shell may have done some of it."""
        import marshal
        import termios

        note = os.pread(self.note, LONGEST_NOTE, 0)
        if not note:
            return
        before, raw, undo = marshal.loads(note)  # noqa: S302  (the parent has written it)
        with suppress(OSError, termios.error):  # the terminal is gone, too
            if termios.tcgetattr(self.terminal) == raw:
                termios.tcsetattr(self.terminal, termios.TCSANOW, before)
            self._show(undo)

    def _show(self, codes: bytes) -> None:
        """Write them, as soon as the terminal has taken what the parent wrote last."""
        import select

        poll = select.poll()
        poll.register(self.terminal, select.POLLOUT)
        while codes and poll.poll(STUCK_MILLISECONDS):
            with suppress(BlockingIOError):
                codes = codes[os.write(self.terminal, codes) :]


def fork_sentinel(group: int) -> int:
    sentinel = os.fork()
    if sentinel != 0:
        with suppress(OSError):  # the box has ended already
            os.setpgid(sentinel, group)
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
