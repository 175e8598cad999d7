"""One small parent of every box: it waits, passes signals on, and does what is to be done when the box has ended.

The box and what runs beside it live in a pid namespace, of which the child is the first process: when it dies, the
kernel ends everything in there, at whatever moment. And the child dies with the parent.

Imports: the parent is there at every start. What it needs only when a signal comes is in relay.py.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

from claudebox.launch.descriptors import close_all_but
from claudebox.launch.namespaces import fork_into_namespaces
from claudebox.launch.system_calls import (
    ADOPT_ORPHANS,
    SET_PARENT_DEATH_SIGNAL,
    c_function,
)
from claudebox.problem import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from claudebox.features.broker.act import Companion
    from claudebox.launch.inspection import Gate

    Deed = Callable[[], None]
    Watch = Callable[[], Deed]

FROM_THE_TERMINAL = (_signal.SIGINT, _signal.SIGQUIT)
NAME = b"claudebox"
# Where they begin and end in memory: fields 48 and 49 of /proc/self/stat, of which 3 is first.
ARGUMENTS = slice(45, 47)
FOR_THE_PROGRAM = (_signal.SIGTERM, _signal.SIGHUP)

passed_on: list[int] = []  # signals that were meant for the program: who sent them waits for its end, and for no answer


def fork_below(
    watch: Watch | None,
    life: tuple[int, int] | None = None,
    gate: Gate | None = None,
    *,
    alone: bool = True,
    shares_group: bool = True,
    broker: Companion | None = None,
) -> None:
    """Return in the child alone. The parent waits, does what is to be done afterwards, and ends as the child did.

    The gate is opened when the child has become bwrap. `watch` looks before that, while bwrap makes the mounts, and
    returns what is to be done afterwards. `life` is a pipe whose other end belongs to something that the
    box must not outlive. `alone` says whether this machine lets us make a pid namespace; `shares_group`, whether the
    program may be in the process group of the caller, which it can signal if nothing else keeps it from that. The box
    ends with the broker.
    """
    starting, started = os.pipe()  # ends when the child becomes another program
    below, above = os.pipe()  # ends when the parent does
    terminal = _open_terminal()
    # At a terminal the group has to be the caller's: it is how the terminal, and a shell, know the job.
    is_apart = terminal < 0 and not shares_group
    child = fork_into_namespaces() if alone else _fork_and_adopt()
    if child != 0:
        for descriptor in (started, below, *(life or ())[1:]):
            os.close(descriptor)
        attendant = Attendant(child, terminal, alone=alone, is_apart=is_apart)
        try:
            afterwards = attendant.wait(starting, life[:1] if life else (), above, gate, watch, broker)
        finally:
            if broker is not None:
                broker.clear()
        attendant.be_ordinary_again()
        if afterwards is not None:
            afterwards()
            attendant.release_witness()
        if attendant.problem is not None:
            raise attendant.problem
        attendant.end_likewise()
    os.close(starting)
    os.close(above)
    if is_apart:
        os.setpgid(0, 0)
    die_with_parent()
    if has_ended(below):
        os._exit(1)  # it died before it was asked for
    os.close(below)


def _open_terminal() -> int:
    """-1 if there is none."""
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return -1


def die_with_parent() -> None:
    control = c_function("prctl")
    if control is None or control(SET_PARENT_DEATH_SIGNAL, int(_signal.SIGKILL), 0, 0, 0) != 0:
        os._exit(1)


def has_ended(descriptor: int) -> bool:
    """Whether nobody is left at the other end of this pipe, into which nobody writes."""
    os.set_blocking(descriptor, False)
    try:
        return os.read(descriptor, 1) == b""
    except BlockingIOError:
        return False


class Attendant:
    """The parent, once there is a child."""

    def __init__(self, child: int, terminal: int, *, alone: bool, is_apart: bool) -> None:
        self.child = child
        self.terminal = terminal
        self.alone = alone
        self.is_apart = is_apart
        self.status = 0
        self.witness = -1
        self.ended_by = 0  # a signal for which the box was ended, because the program did not do that itself
        self.problem: Problem | None = None  # for which it was, to be told when all is done
        self.was_foreground = self._foreground() == os.getpgrp()

    def wait(
        self,
        starting: int,
        lives: tuple[int, ...],
        above: int,
        gate: Gate | None,
        watch: Watch | None,
        broker: Companion | None,
    ) -> Deed | None:
        """Until nothing of the box is left. Who reads what it prints does not have to wait for us as well."""
        _signal.signal(_signal.SIGINT, lambda *_: os.kill(self.child, _signal.SIGINT))
        lives = lives if broker is None else (*lives, broker.life)
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 1)
        close_all_but([starting, *lives, above, self.terminal, *(gate.descriptors if gate else ())])
        forget_arguments()
        os.read(starting, 1)
        self._relay_signals()
        if gate is not None:
            gate.fill()
        afterwards = watch() if watch is not None else None
        if afterwards is not None:
            from claudebox.launch.witness import stand_by

            self.witness = stand_by(self.child, afterwards)
        if gate is not None and (not lives or self._lasts(lives, until_writable=gate.ours)):
            self._let_in(gate)
        if broker is not None:
            # Not before: it takes longer to load than bwrap does, and Claude does not need it at once.
            self._rely_on(broker)
        if lives and not self._lasts(lives) and broker is not None:
            self.problem = self.problem or broker.end()
        _, status = os.waitpid(self.child, 0)
        self.status = os.waitstatus_to_exitcode(status)
        if not self.alone:
            from claudebox.launch.relay import end_orphans

            end_orphans()
        return afterwards

    def _relay_signals(self) -> None:
        """What the terminal sends reaches the program by itself. What was ignored before we came stays so (nohup)."""
        for number in FROM_THE_TERMINAL:
            _signal.signal(number, self._pass_on if self.is_apart else _signal.SIG_IGN)
        for number in FOR_THE_PROGRAM:
            if _signal.getsignal(number) != _signal.SIG_IGN:
                _signal.signal(number, self._pass_on)

    def _pass_on(self, number: int, _: object) -> None:
        passed_on.append(number)
        from claudebox.launch.relay import pass_on

        pass_on(number, self)

    def _let_in(self, gate: Gate) -> None:
        try:
            gate.open(self.child)
        except Problem:
            os.kill(self.child, _signal.SIGKILL)
            os.waitpid(self.child, 0)
            raise

    def _rely_on(self, broker: Companion) -> None:
        try:
            broker.require_ready(os.pidfd_open(self.child))
        except Problem as problem:
            self.problem = problem
            os.kill(self.child, _signal.SIGKILL)

    def _lasts(self, lives: tuple[int, ...], until_writable: int = -1) -> bool:
        """Wait for the end of the box, or until this pipe can be written to. If another life ends first, end it."""
        import select

        poll = select.poll()
        for life in lives:
            poll.register(life, 0)
        poll.register(os.pidfd_open(self.child), select.POLLIN)
        if until_writable >= 0:
            poll.register(until_writable, select.POLLOUT)
        if dict(poll.poll()).keys().isdisjoint(lives):
            return True
        os.kill(self.child, _signal.SIGKILL)
        return False

    def end_box(self, number: int) -> None:
        """On account of this signal."""
        self.ended_by = self.ended_by or number
        os.kill(self.child, _signal.SIGKILL)

    def be_ordinary_again(self) -> None:
        """For what is done afterwards, which may ask something and start programs."""
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        _signal.signal(_signal.SIGQUIT, _signal.SIG_DFL)
        for number in FOR_THE_PROGRAM:
            if _signal.getsignal(number) != _signal.SIG_IGN:
                _signal.signal(number, _signal.SIG_DFL)
        group = self._foreground()
        if self.was_foreground and group != os.getpgrp() and _is_gone(group):
            # A shell in the box made itself the foreground, and could not name whose turn it was before.
            _signal.signal(_signal.SIGTTOU, _signal.SIG_IGN)
            os.tcsetpgrp(self.terminal, os.getpgrp())
            _signal.signal(_signal.SIGTTOU, _signal.SIG_DFL)

    def release_witness(self) -> None:
        from claudebox.launch.witness import release

        release(self.witness)

    def has_lost_terminal(self) -> bool:
        return self.terminal >= 0 and self._foreground() == 0

    def _foreground(self) -> int:
        """The group that the terminal belongs to now; 0 if there is no terminal, or no more."""
        try:
            return os.tcgetpgrp(self.terminal)
        except OSError:
            return 0

    def end_likewise(self) -> NoReturn:
        if self.status < 0:
            # Nothing but SIGKILL ends bwrap here: from us, or from somebody else.
            os.kill(os.getpid(), self.ended_by or _signal.SIGKILL)
        os._exit(self.status)


def forget_arguments() -> None:
    """Everybody can read them (`ps`), for as long as the box lives: `--env TOKEN=…` may be among them."""
    with open("/proc/self/stat", "rb") as file:
        start, end = map(int, file.read().rpartition(b")")[2].split()[ARGUMENTS])
    memory = os.open("/proc/self/mem", os.O_WRONLY | os.O_CLOEXEC)
    os.pwrite(memory, NAME.ljust(end - start, b"\0")[: end - start], start)
    os.close(memory)


def _is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def _fork_and_adopt() -> int:
    """The next best: what bwrap leaves behind becomes a child of this process, which ends it."""
    control = c_function("prctl")
    if control is not None:
        control(ADOPT_ORPHANS, 1, 0, 0, 0)
    return os.fork()
