"""The small parent of every box: it waits, passes signals on, and does what comes afterwards.

The box and what runs beside it are in a pid namespace, and the child is its first process: whenever that one dies, the
kernel ends everything in there. And the child dies with the parent.

Imports: every start has a parent. What it needs only when a signal comes is in signals.py.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

from claudebox.features.table import act
from claudebox.model import Step
from claudebox.problem import Problem
from claudebox.process.descriptors import close_all_but
from claudebox.process.isolation import ADOPT_ORPHANS, c_function, fork_into_namespaces
from claudebox.process.lifetime import Companion, die_with_parent, forget_arguments, has_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from claudebox.launch.parent.gate import Gate
    from claudebox.model import Plan

    Deed = Callable[[bool], None]  # something to do afterwards; it is told whether somebody can be asked

FROM_THE_TERMINAL = (_signal.SIGINT, _signal.SIGQUIT)
FOR_THE_PROGRAM = (_signal.SIGTERM, _signal.SIGHUP)

passed_on: list[int] = []  # signals that were meant for the program: their sender expects it to end, not to ask


def fork_below(
    plan: Plan, gate: Gate, companions: list[Companion], lives: list[tuple[int, int]], *, shares_group: bool
) -> None:
    """Return only in the child. The parent waits, does what comes afterwards, and ends as the child did.

    The gate opens when the child has become bwrap. Each of `lives` is a pipe whose second end belongs to something that
    the box must not outlive. `shares_group` says whether the program may be in the process group of the caller: it can
    signal that group, unless something else prevents it.
    """
    # A network of its own needs a namespace that claudebox makes.
    has_namespace = plan.owns_pid_namespace or bool(lives)
    starting, started = os.pipe()  # it ends when the child becomes another program
    below, above = os.pipe()  # it ends when the parent does
    terminal = _open_terminal()
    # At a terminal it has to be the caller's group: the terminal and the shell know the job by it.
    is_apart = terminal < 0 and not shares_group
    child = fork_into_namespaces() if has_namespace else _fork_and_adopt()
    if child != 0:
        for descriptor in (started, below, *(theirs for _, theirs in lives)):
            os.close(descriptor)
        attendant = Attendant(child, terminal, has_namespace=has_namespace, is_apart=is_apart)
        attendant.attend(plan, gate, companions, starting, above, tuple(ours for ours, _ in lives))
    os.close(starting)
    os.close(above)
    if is_apart:
        os.setpgid(0, 0)
    die_with_parent()
    if has_ended(below):
        os._exit(1)  # the parent died before the kernel was asked to watch it
    os.close(below)


def _open_terminal() -> int:
    """A descriptor of the terminal; -1 if there is none."""
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return -1


class Attendant:
    """The parent, once there is a child."""

    def __init__(self, child: int, terminal: int, *, has_namespace: bool, is_apart: bool) -> None:
        self.child = child
        self.terminal = terminal
        self.has_namespace = has_namespace
        self.is_apart = is_apart
        self.status = 0
        self.witness = -1
        self.ended_by = 0  # the signal for which claudebox ended the box, because the program did not end itself
        self.problem: Problem | None = None  # the reason why the box was ended, raised when all is done
        self.was_foreground = self._foreground() == os.getpgrp()

    def attend(
        self,
        plan: Plan,
        gate: Gate,
        companions: list[Companion],
        starting: int,
        above: int,
        lives: tuple[int, ...],
    ) -> NoReturn:
        """Attend the box to its end, do what comes afterwards, and end."""
        try:
            deeds = self._wait(plan, gate, companions, starting, above, lives)
        finally:
            for companion in companions:
                companion.clear()
        self.be_ordinary_again()
        for deed in deeds:
            deed(plan.may_ask and not passed_on)
        self.release_witness()
        if self.problem is not None:
            raise self.problem
        self.end_likewise()

    def _wait(
        self,
        plan: Plan,
        gate: Gate,
        companions: list[Companion],
        starting: int,
        above: int,
        lives: tuple[int, ...],
    ) -> list[Deed]:
        """Wait until nothing of the box is left. Standard output is closed: its reader need not wait for the parent."""
        _signal.signal(_signal.SIGINT, lambda *_: os.kill(self.child, _signal.SIGINT))
        lives = (*lives, *(companion.life for companion in companions))
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 1)
        close_all_but([starting, *lives, above, self.terminal, *gate.descriptors])
        forget_arguments()
        os.read(starting, 1)
        self._relay_signals()
        gate.fill()
        # Each looks around while bwrap makes the mounts, and returns what to do when the box has ended.
        deeds: list[Deed] = [act(feature, Step.AFTER, plan) for feature in plan.acts(Step.AFTER)]
        if deeds:
            from claudebox.launch.parent.witness import stand_by

            self.witness = stand_by(self.child, deeds)
        if not lives or self._lasts(lives, until_writable=gate.ours):
            self._let_in(gate)
        for companion in companions:
            # Only now: it takes longer to load than bwrap, and Claude does not need it at once.
            self._rely_on(companion)
        if lives and not self._lasts(lives):
            for companion in companions:
                self.problem = self.problem or companion.why_ended()
        _, status = os.waitpid(self.child, 0)
        self.status = os.waitstatus_to_exitcode(status)
        if not self.has_namespace:
            from claudebox.launch.parent.signals import end_orphans

            end_orphans()
        return deeds

    def _relay_signals(self) -> None:
        """Pass signals on, unless the terminal sends them to the program, too. Ignored ones stay ignored (nohup)."""
        for number in FROM_THE_TERMINAL:
            _signal.signal(number, self._pass_on if self.is_apart else _signal.SIG_IGN)
        for number in FOR_THE_PROGRAM:
            if _signal.getsignal(number) != _signal.SIG_IGN:
                _signal.signal(number, self._pass_on)

    def _pass_on(self, number: int, _: object) -> None:
        passed_on.append(number)
        from claudebox.launch.parent.signals import pass_on

        pass_on(number, self)

    def _let_in(self, gate: Gate) -> None:
        try:
            gate.open(self.child)
        except Problem:
            os.kill(self.child, _signal.SIGKILL)
            os.waitpid(self.child, 0)
            raise

    def _rely_on(self, companion: Companion) -> None:
        try:
            companion.require_ready(os.pidfd_open(self.child))
        except Problem as problem:
            self.problem = problem
            os.kill(self.child, _signal.SIGKILL)

    def _lasts(self, lives: tuple[int, ...], until_writable: int = -1) -> bool:
        """Wait until the box ends or the pipe can be written to. If one of `lives` ends first, end the box."""
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
        """End the box because of this signal."""
        self.ended_by = self.ended_by or number
        os.kill(self.child, _signal.SIGKILL)

    def be_ordinary_again(self) -> None:
        """Undo the signal handling: what comes afterwards may ask something and start programs."""
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        _signal.signal(_signal.SIGQUIT, _signal.SIG_DFL)
        for number in FOR_THE_PROGRAM:
            if _signal.getsignal(number) != _signal.SIG_IGN:
                _signal.signal(number, _signal.SIG_DFL)
        group = self._foreground()
        if self.was_foreground and group != os.getpgrp() and _is_gone(group):
            # A shell in the box made itself the foreground, and could not give it back: it cannot name this group.
            _signal.signal(_signal.SIGTTOU, _signal.SIG_IGN)
            os.tcsetpgrp(self.terminal, os.getpgrp())
            _signal.signal(_signal.SIGTTOU, _signal.SIG_DFL)

    def release_witness(self) -> None:
        if self.witness < 0:
            return
        from claudebox.launch.parent.witness import release

        release(self.witness)

    def has_lost_terminal(self) -> bool:
        return self.terminal >= 0 and self._foreground() == 0

    def _foreground(self) -> int:
        """The foreground process group of the terminal; 0 if there is no terminal, or it is gone."""
        try:
            return os.tcgetpgrp(self.terminal)
        except OSError:
            return 0

    def end_likewise(self) -> NoReturn:
        if self.status < 0:
            # Only SIGKILL ends bwrap here, from this process or from somebody else.
            os.kill(os.getpid(), self.ended_by or _signal.SIGKILL)
        os._exit(self.status)


def _is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def _fork_and_adopt() -> int:
    """Fork without a namespace: what bwrap leaves behind becomes a child of this process, which ends it."""
    control = c_function("prctl")
    if control is not None:
        control(ADOPT_ORPHANS, 1, 0, 0, 0)
    return os.fork()
