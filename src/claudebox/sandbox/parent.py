"""The parent of every box: it waits, passes signals on, relays the terminal, and does what comes afterwards.

The box and what runs in its namespaces are in a pid namespace, and the child is its first process: when that one dies,
the kernel ends everything in there. And the child dies with the parent. Nothing in the box can name the parent: the box
has a process group of its own, and with a terminal a session of its own.
"""

from __future__ import annotations

import os
import select

from claudebox.errors import Problem, suppress
from claudebox.model import Launch, Step
from claudebox.process import signal
from claudebox.process.companion import Companion, forget_arguments, hear
from claudebox.process.isolation import close_all_but
from claudebox.sandbox.gate import FIRST, Gate, children_of, program_of
from claudebox.sandbox.terminal import DONE, BoxTerminal, wake_on_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from claudebox.model import Deed
    from claudebox.sandbox.pump import Pump
    from claudebox.sandbox.terminal.relay import Relay

FROM_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
FOR_THE_PROGRAM = (signal.SIGTERM, signal.SIGHUP)
MANY_SIGNALS = 1024  # more than a read of `waking` ever finds
HANGUP_SECONDS = 5  # for a program to end whose terminal is gone
BWRAP_FAILED = 1  # a failure before it, such as a Problem, has another status
BY_SIGNAL = 128  # and the number, is the exit status of bwrap and of shells
# Signals that nobody types or passes on, so that the user has to be told.
FATAL = (
    *(signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS),
    *(signal.SIGILL, signal.SIGFPE, signal.SIGSYS),
)


class Attendant:
    """Everything that the parent knows of its box."""

    def __init__(
        self,
        child: int,
        terminal: BoxTerminal | None,
        companions: list[Companion],
        pipes: tuple[int, ...],
        pump: Pump | None = None,
        *,
        has_namespace: bool,
    ) -> None:
        self.child = child
        self.terminal = terminal
        self.companions = companions
        self.not_ready = {companion.life: companion for companion in companions}
        self.lives = (*pipes, *self.not_ready)  # each ends with something that the box must not outlive
        self.pump = pump  # there is one if a standard stream is a pipe
        self.has_namespace = has_namespace
        self.relay: Relay | None = None  # there is one if there is a terminal
        self.waking = -1  # a pipe with the numbers of the signals that have come
        self.passed_on: set[int] = set()  # signals for the program: their sender expects it to end, not to ask
        self.is_let_in = False  # whether a program may have started
        self.status = 0
        self.ended_by = 0  # the signal for which claudebox ended the box, because the program did not end itself
        self.can_be_interrupted = False
        self.problem: Problem | None = None  # the reason why the box was ended, raised when all is done

    def attend(self, launch: Launch, gate: Gate, starting: int, above: int) -> NoReturn:
        """Wait for the end of the box, do what comes afterwards, and end as the program in it did.

        `starting` ends when the child has become bwrap, and `above` is what the child sees end with this process.
        """
        try:
            self._wait_until_started(gate, starting, above)
            deeds = self._let_in(launch, gate)
            self._wait_for_end()
        finally:
            self.restore()
            for companion in self.companions:
                companion.clear()
        if not self.ended_by and self.problem is None:
            # A full-screen program that is gone has told nobody why.
            _tell(describe_end(self.status))
        self._do_all(deeds, may_ask=launch.may_ask and not self.passed_on)
        if self.problem is not None:
            raise self.problem
        self.end_likewise()

    def _wait_until_started(self, gate: Gate, starting: int, above: int) -> None:
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            signal.signal(signal.SIGINT, lambda *_: os.kill(self.child, signal.SIGINT))
        terminal = () if self.terminal is None else self.terminal.descriptors
        pump = () if self.pump is None else self.pump.descriptors
        close_all_but([starting, *self.lives, above, *terminal, *gate.descriptors, *pump])
        forget_arguments()
        os.read(starting, 1)
        self.hear_signals()

    def _let_in(self, launch: Launch, gate: Gate) -> list[Deed]:
        """Look around while bwrap makes the mounts, check them, and let the program start. Returns what to do at the
        end."""
        gate.fill()
        deeds = [feature.after(launch) for feature in launch.acts(Step.AFTER)]
        looking = launch.acts(Step.MADE)
        if self.terminal is not None:
            from claudebox.sandbox.terminal.relay import Relay

            self.relay = Relay(self.terminal, self.child, self.read_signals, self._limit_time_after_hangup)
        _let_go_of_streams()
        if self.pump is not None:
            self.pump.start()
        has_mounts = self.wait(gate.ours)
        if self.relay is not None:
            self.relay.begin()
        if not has_mounts:
            return deeds
        lost: list[Deed] = []
        try:
            self.is_let_in = gate.open(
                self.child, lambda root: lost.extend(feature.made(launch, root) for feature in looking)
            )
        except Problem:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            raise
        return [*lost, *deeds]  # what is gone with the box comes before questions about what it has left

    def _wait_for_end(self) -> None:
        """Wait until nothing of the box is left."""
        if self.relay is not None:
            for life in self.lives:
                self.relay.watch(life, self._hear_companion)
            self.relay.run(self.waking)
        else:
            self.wait()
        _, status = os.waitpid(self.child, 0)
        self.status = os.waitstatus_to_exitcode(status)
        if self.status == BWRAP_FAILED and not self.is_let_in:
            self.problem = self.problem or not_made()
        if not self.has_namespace:
            end_orphans()
        if self.pump is not None:
            self._wait_for_streams(self.pump)

    def _wait_for_streams(self, pump: Pump) -> None:
        """Wait until all that the box has written is where it belongs, or somebody wants us to end."""
        os.close(pump.stop)
        poll = select.poll()
        for descriptor in (self.waking, pump.ended):
            poll.register(descriptor, select.POLLIN)
        while pump.ended not in dict(poll.poll()):
            ending = {*_read_waking(self.waking)}.intersection((*FROM_THE_TERMINAL, *FOR_THE_PROGRAM, signal.SIGALRM))
            self.passed_on |= ending
            if ending:
                return

    def wait(self, gate: int = -1) -> bool:
        """Wait until bwrap has made the mounts, if this is the gate, or until the box has ended.

        Returns False, with the box being ended, if something has ended that the box must not outlive.
        """
        poll = select.poll()
        for descriptor in (self.waking, *self.lives):
            poll.register(descriptor, select.POLLIN)
        if gate >= 0:
            poll.register(gate, select.POLLOUT)
        while not has_child_ended(self.child):
            ready = dict(poll.poll())
            if self.waking in ready:
                self.read_signals()
            for life in ready.keys() & {*self.lives}:
                if not self._hear_companion(life):
                    return False
            if gate in ready:
                break
        return True

    def _hear_companion(self, life: int) -> bool:
        """Hear what a companion says. If it has ended or has failed, end the box. Returns whether to go on listening.

        It gets ready while the box starts: that takes longer than bwrap, and Claude does not need it at once.
        """
        if life in self.not_ready:
            try:
                self.not_ready.pop(life).require_ready()
            except Problem as problem:
                self.problem = problem
                os.kill(self.child, signal.SIGKILL)
            return self.problem is None
        notice = hear(life)
        if notice:
            if self.relay is not None:
                self.relay.tell(notice)
            return True
        for companion in self.companions:
            self.problem = self.problem or companion.why_ended()
        os.kill(self.child, signal.SIGKILL)
        return False

    # Signals.

    def hear_signals(self) -> None:
        """Have the number of each signal in the pipe `waking`. Ignored signals stay ignored (nohup).

        Python calls a handler only between two steps of its own. A signal that comes just before a wait would have to
        wait as well, for as long as the box runs. A pipe ends every wait, and one place acts on what it says.
        """
        self.waking = wake_on_signals()
        _handle((*FROM_THE_TERMINAL, *FOR_THE_PROGRAM), _do_nothing)
        for number in (signal.SIGALRM, signal.SIGCHLD):
            signal.signal(number, _do_nothing)

    def read_signals(self) -> bytes:
        """The numbers of the signals that have come. Those that are meant for the program are passed on."""
        numbers = _read_waking(self.waking)
        for number in dict.fromkeys(numbers):
            if number == signal.SIGALRM:
                self._end_box(signal.SIGHUP)
            elif number in (*FROM_THE_TERMINAL, *FOR_THE_PROGRAM):
                self._pass_on(number)
        return numbers

    def _pass_on(self, number: int) -> None:
        """Hand the signal to the program. If that has not started yet, the box ends instead.

        What a terminal sends to a process group, the whole group of the box gets.
        """
        if number in FOR_THE_PROGRAM:
            self.passed_on.add(number)
        program = program_of(self.child)
        if program != 0 and number in FROM_THE_TERMINAL:
            os.killpg(self.child, number)
        elif program == 0 or not _send(number, program, self.child):
            self._end_box(number)
        elif self.has_lost_terminal():
            self._limit_time_after_hangup()

    def _limit_time_after_hangup(self) -> None:
        """Give a program that was told of it some seconds: whoever closed the window believes that it has ended."""
        if signal.SIGHUP in self.passed_on:
            signal.alarm(HANGUP_SECONDS)

    def _end_box(self, number: int) -> None:
        """End the box because of this signal."""
        self.ended_by = self.ended_by or number
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(self.child, signal.SIGKILL)

    # Afterwards.

    def restore(self) -> None:
        """Bring the terminal back and undo the signal handling: what comes afterwards may ask and start programs."""
        if self.relay is not None:
            self.relay.end()
        if self.terminal is not None:
            with suppress(OSError):  # somebody has ended the leader of the session
                os.write(self.terminal.orders, DONE)
        signal.alarm(0)  # the limit that a hang-up has set is for the program
        signal.set_wakeup_fd(-1)
        _handle(FROM_THE_TERMINAL, self._interrupt)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if self.waking >= 0:
            self.passed_on.update({*_read_waking(self.waking)}.intersection(FOR_THE_PROGRAM))
        # A closed window sends several. If one has come, nobody is asked any more, so all of this ends by itself.
        _handle(FOR_THE_PROGRAM, _do_nothing if self.passed_on or self.has_lost_terminal() else signal.SIG_DFL)
        if self.has_lost_terminal() and os.fstat(2).st_rdev:
            # It is a device, so it is that terminal. To fail to say something would end what is being done.
            os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 2)

    def has_lost_terminal(self) -> bool:
        return self.relay is not None and self.relay.user.is_gone()

    def _interrupt(self, _: int, __: object) -> None:
        """Somebody has pressed Ctrl-C, perhaps for a program that has just ended: it ends one deed, not all of them."""
        if self.can_be_interrupted:
            self.can_be_interrupted = False  # a second one would come while the first is being told
            raise KeyboardInterrupt

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

    def end_likewise(self) -> NoReturn:
        if self.status < 0:
            # Only SIGKILL ends bwrap here, from this process or from somebody else.
            if self.ended_by:
                signal.signal(self.ended_by, signal.SIG_DFL)
            os.kill(os.getpid(), self.ended_by or signal.SIGKILL)
        os._exit(self.status)


def not_made() -> Problem:
    hint = "see what this machine lacks: claudebox --check\n      print the command: claudebox --dry-run"
    return Problem("bwrap could not make the box, and says why above", hint)


def _handle(numbers: tuple[int, ...], handler: Callable[[int, object], None] | signal.Handlers) -> None:
    """Have this function called for each of the signals. Ignored ones stay ignored (nohup)."""
    for number in numbers:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def _do_nothing(_: int, __: object) -> None:
    """Handle a signal without ignoring it: programs that are started from here would inherit SIG_IGN."""


def _read_waking(waking: int) -> bytes:
    try:
        return os.read(waking, MANY_SIGNALS)
    except BlockingIOError:
        return b""


def _let_go_of_streams() -> None:
    """Close standard input, unless it is the terminal, and standard output: nobody need wait for the parent."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for stream in (0, 1):
        if stream == 1 or not os.isatty(stream):
            os.dup2(null, stream)


def _tell(text: str) -> None:
    with suppress(OSError):  # the terminal is gone, or whoever reads the pipe
        os.write(2, text.encode())


def has_child_ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _send(number: int, program: int, builder: int) -> bool:
    try:
        handle = os.pidfd_open(program)
        # The program may have ended meanwhile, and another process may have its number.
        if program_of(builder) != program:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    return True


def describe_end(status: int) -> str:
    """What to say if a signal ended the box or the program in it; "" if none did, or if it was meant to."""
    is_box, number = status < 0, -status if status < 0 else status - BY_SIGNAL
    if number == signal.SIGINT and os.isatty(2):
        return "\n"  # the terminal shows ^C; a shell ends that line only for who dies of the signal itself
    if number not in FATAL:
        return ""
    name, who = signal.strsignal(number), "box" if is_box else "program"
    why = ": perhaps memory ran out, or what --memory allows" if number == signal.SIGKILL else ""
    return f"claudebox: the {who} was ended by signal {number} ({name}){why}\n"


def end_orphans() -> None:
    """End what bwrap left behind: by now it is a child of this process, and its whole namespace ends with it."""
    for pid, inner in children_of(os.getpid()).items():
        if inner == FIRST:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
