"""The parent of every box: it waits, passes signals on, carries the terminal, and does what comes afterwards.

The box and what runs beside it are in a pid namespace, and the child is its first process: whenever that one dies, the
kernel ends everything in there. And the child dies with the parent. Nothing in the box can name the parent: the box has
a process group of its own, and with a terminal a session of its own.

Imports: every start has a parent. What only the parent needs for signals is in signals.py, what it needs only at a
terminal in keeper.py and relay.py.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem
from claudebox.files import c_call
from claudebox.launch.gate import Gate
from claudebox.launch.keeper import DONE, Line, fork_on_terminal, open_users_terminal, wake_on_signals
from claudebox.model import Launch, Step
from claudebox.process import signal
from claudebox.process.companion import Companion, die_with_parent, forget_arguments, has_ended, hear
from claudebox.process.isolation import ADOPT_ORPHANS, close_all_but, fork_into_namespaces, scope_to_box

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from claudebox.launch.relay import Relay
    from claudebox.model import Deed


FROM_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
FOR_THE_PROGRAM = (signal.SIGTERM, signal.SIGHUP)
MANY_SIGNALS = 1024  # more than a read of `waking` ever finds

passed_on: list[int] = []  # signals that were meant for the program: their sender expects it to end, not to ask


def fork_below(launch: Launch, gate: Gate, companions: list[Companion], lives: list[tuple[int, int]]) -> None:
    """Return only in the child. The parent waits, does what comes afterwards, and ends as the child did.

    The gate opens when the child has become bwrap. Each of `lives` is a pipe whose second end belongs to something that
    the box must not outlive.
    """
    # A network of its own needs a namespace that claudebox makes.
    has_namespace = launch.plan.kernel.owns_pid_namespace or bool(lives)
    starting, started = os.pipe()  # it ends when the child becomes another program
    below, above = os.pipe()  # it ends when the parent does
    if not has_namespace:
        _adopt_orphans()
    terminal = open_users_terminal()
    if terminal >= 0:
        child, line = fork_on_terminal(terminal, into_namespaces=has_namespace)
    else:
        child, line = fork_into_namespaces() if has_namespace else os.fork(), None
    if child != 0:
        for descriptor in (started, below, *(theirs for _, theirs in lives)):
            os.close(descriptor)
        attendant = Attendant(child, line, has_namespace=has_namespace)
        attendant.companions = companions
        attendant.lives = (*(ours for ours, _ in lives), *(companion.life for companion in companions))
        attendant.attend(launch, gate, starting, above)
    os.close(starting)
    os.close(above)
    if terminal < 0:
        os.setpgid(0, 0)
        scope_to_box()
    die_with_parent()
    if has_ended(below):
        os._exit(1)  # the parent died before the kernel was asked to watch it
    os.close(below)


class Attendant:
    """The parent, once there is a child."""

    def __init__(self, child: int, line: Line | None, *, has_namespace: bool) -> None:
        self.child = child
        self.line = line
        self.has_namespace = has_namespace
        self.companions: list[Companion] = []
        self.lives: tuple[int, ...] = ()  # pipes of all that the box must not outlive
        self.relay: Relay | None = None  # there is one if there is a terminal
        self.waking = -1  # a pipe with the numbers of the signals that have come
        self.status = 0
        self.ended_by = 0  # the signal for which claudebox ended the box, because the program did not end itself
        self.coming: list[int] = []  # the signal that is being passed on, and those that have come meanwhile
        self.can_be_interrupted = False
        self.problem: Problem | None = None  # the reason why the box was ended, raised when all is done

    def attend(self, launch: Launch, gate: Gate, starting: int, above: int) -> NoReturn:
        """Attend the box to its end, do what comes afterwards, and end."""
        try:
            deeds = self._wait(launch, gate, starting, above)
        finally:
            self.be_ordinary_again()
            for companion in self.companions:
                companion.clear()
        self._say_what_ended_it(launch)
        self._do_all(deeds, may_ask=launch.may_ask and not passed_on)
        if self.problem is not None:
            raise self.problem
        self.end_likewise()

    def _do_all(self, deeds: list[Deed], *, may_ask: bool) -> None:
        """Do each of them, whether or not another one fails or is interrupted: an agent could see to that."""
        failure: Exception | None = None
        for deed in deeds:
            try:
                try:
                    self.can_be_interrupted = True
                    deed(may_ask)
                finally:
                    self.can_be_interrupted = False
            except KeyboardInterrupt:
                self.can_be_interrupted = False  # it may have come just before the same line above
                _tell("\nclaudebox: interrupted\n")
            except BrokenPipeError:
                pass  # nobody reads what it says
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _say_what_ended_it(self, launch: Launch) -> None:
        """Say so if a signal came from elsewhere: a full-screen program that is gone has told nobody why."""
        is_ordinary = 0 <= self.status < 128
        if is_ordinary or self.ended_by or self.problem is not None:
            return
        from claudebox.launch.signals import describe_end

        _tell(describe_end(self.status, launch.limits_memory))

    def _wait(self, launch: Launch, gate: Gate, starting: int, above: int) -> list[Deed]:
        """Wait until nothing of the box is left."""
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            signal.signal(signal.SIGINT, lambda *_: os.kill(self.child, signal.SIGINT))
        line = () if self.line is None else self.line.descriptors
        close_all_but([starting, *self.lives, above, *line, *gate.descriptors])
        forget_arguments()
        os.read(starting, 1)
        self._relay_signals()
        gate.fill()
        # Each looks around while bwrap makes the mounts, and returns what to do when the box has ended.
        deeds = [feature.after(launch) for feature in launch.acts(Step.AFTER)]
        looking = launch.acts(Step.MADE)
        self._meet_terminal()
        may_start = not self.lives or self._lasts(until_writable=gate.ours)
        if self.relay is not None:
            self.relay.begin()
        if may_start:
            lost: list[Deed] = []
            self._let_in(gate, lambda root: lost.extend(feature.made(launch, root) for feature in looking))
            deeds[:0] = lost  # what is gone with the box comes before questions about what it has left
        if self.relay is not None:
            self._carry_terminal(self.relay)
        else:
            self._stay()
        _, status = os.waitpid(self.child, 0)
        self.status = os.waitstatus_to_exitcode(status)
        if not self.has_namespace:
            from claudebox.launch.signals import end_orphans

            end_orphans()
        return deeds

    def _relay_signals(self) -> None:
        """Pass signals on. Ignored ones stay ignored (nohup).

        Python calls a handler only between two steps of its own. A signal that comes just before a wait would have to
        wait as well, for as long as the box runs: so each wait below ends when a signal is in this pipe.
        """
        # Before one can come: a closed window sends several, and the second would find a module that is half imported.
        from claudebox.launch import signals  # noqa: F401

        self.waking = wake_on_signals()
        _hear((*FROM_THE_TERMINAL, *FOR_THE_PROGRAM), self._pass_on)

    def _pass_on(self, number: int, _: object) -> None:
        if number in FOR_THE_PROGRAM:
            passed_on.append(number)
        from claudebox.launch.signals import pass_on

        # One after the other: a handler within a handler within a handler would be too deep at some time.
        if number not in self.coming[1:]:
            self.coming.append(number)
        if len(self.coming) == 1:
            while self.coming:
                try:
                    pass_on(self.coming[0], self)
                finally:
                    del self.coming[0]

    def _hang_up(self) -> None:
        """The terminal is gone. If the program was told to end for that, it has a while."""
        from claudebox.launch.signals import set_limit

        if signal.SIGHUP in passed_on:
            set_limit(self)

    def _meet_terminal(self) -> None:
        """Load what carries the terminal, and let go of standard input and output: nobody need wait for the parent."""
        if self.line is not None:
            from claudebox.launch.relay import Relay

            self.relay = Relay(self.line, self.child, self.waking, self._hang_up)
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for stream in (0, 1):
            if stream == 1 or not os.isatty(stream):
                os.dup2(null, stream)

    def _let_in(self, gate: Gate, look: Callable[[str], None]) -> None:
        try:
            gate.open(self.child, look)
        except Problem:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            raise

    def _stay(self) -> None:
        """Wait for the end of the box, or of something that it must not outlive."""
        for companion in self.companions:
            # Only now: it takes longer to load than bwrap, and Claude does not need it at once.
            self._rely_on(companion)
        if self.lives:
            if not self._lasts():
                self._find_why_ended()
            return
        # For the end of the box alone nothing has to be imported.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        os.set_blocking(self.waking, True)
        while os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            os.read(self.waking, MANY_SIGNALS)

    def _carry_terminal(self, relay: Relay) -> None:
        """Like `_stay`, while relaying the terminal."""
        not_ready = {companion.life: companion for companion in self.companions}

        def answer(life: int) -> bool:
            if life in not_ready:
                self._rely_on(not_ready.pop(life))
                return True
            notice = hear(life)
            if notice:
                relay.tell(notice)
                return True
            self._find_why_ended()
            os.kill(self.child, signal.SIGKILL)
            return False

        for life in self.lives:
            relay.watch(life, answer)
        relay.run()

    def _find_why_ended(self) -> None:
        for companion in self.companions:
            self.problem = self.problem or companion.why_ended()

    def _rely_on(self, companion: Companion) -> None:
        try:
            companion.require_ready(os.pidfd_open(self.child))
        except Problem as problem:
            self.problem = problem
            os.kill(self.child, signal.SIGKILL)

    def _lasts(self, until_writable: int = -1) -> bool:
        """Wait until the box ends or the pipe can be written to. If one of `lives` ends first, end the box."""
        import select

        poll = select.poll()
        for life in self.lives:
            poll.register(life, 0)
        poll.register(os.pidfd_open(self.child), select.POLLIN)
        if until_writable >= 0:
            poll.register(until_writable, select.POLLOUT)
        poll.register(self.waking, select.POLLIN)
        while (ready := dict(poll.poll())).keys() == {self.waking}:
            os.read(self.waking, MANY_SIGNALS)
        if ready.keys().isdisjoint(self.lives):
            return True
        os.kill(self.child, signal.SIGKILL)
        return False

    def end_box(self, number: int) -> None:
        """End the box because of this signal."""
        self.ended_by = self.ended_by or number
        try:
            os.kill(self.child, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has just ended by itself

    def be_ordinary_again(self) -> None:
        """Bring the terminal back and undo the signal handling: what comes afterwards may ask and start programs."""
        if self.relay is not None:
            self.relay.end()
        if self.line is not None:
            try:
                os.write(self.line.orders, DONE)
            except OSError:
                pass  # somebody has ended the keeper
        signal.alarm(0)  # the limit that a hang-up has set is for the program
        signal.set_wakeup_fd(-1)
        _hear(FROM_THE_TERMINAL, self._interrupt)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # A closed window sends several. If one has come, nobody is asked any more, so all of this ends by itself.
        _hear(FOR_THE_PROGRAM, _do_nothing if passed_on or self.has_lost_terminal() else signal.SIG_DFL)
        os.set_blocking(2, True)  # if it is a pipe, the program had it, too
        if self.has_lost_terminal() and os.fstat(2).st_rdev:
            # It is a device, so it is that terminal. To fail to say something would end what is being done.
            os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 2)

    def _interrupt(self, _: int, __: object) -> None:
        """Somebody has pressed Ctrl-C, perhaps for a program that has just ended: it ends one deed, not all of them."""
        if self.can_be_interrupted:
            raise KeyboardInterrupt

    def has_lost_terminal(self) -> bool:
        return self.relay is not None and self.relay.user.is_gone()

    def end_likewise(self) -> NoReturn:
        if self.status < 0:
            # Only SIGKILL ends bwrap here, from this process or from somebody else.
            if self.ended_by:
                signal.signal(self.ended_by, signal.SIG_DFL)
            os.kill(os.getpid(), self.ended_by or signal.SIGKILL)
        os._exit(self.status)


def _hear(numbers: tuple[int, ...], handler: Callable[[int, object], None] | signal.Handlers) -> None:
    """Have this function called for each of the signals. Ignored ones stay ignored (nohup)."""
    for number in numbers:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def _do_nothing(_: int, __: object) -> None:
    """Hear a signal here, and leave it to programs that are started from here: they would inherit SIG_IGN."""


def _tell(text: str) -> None:
    try:
        os.write(2, text.encode()) if text else None
    except OSError:
        pass  # the terminal is gone, or whoever reads the pipe


def _adopt_orphans() -> None:
    """What bwrap leaves behind becomes a child of this process, which ends it."""
    c_call("prctl", ADOPT_ORPHANS, 1, 0, 0, 0)
