"""Carries what is typed into the box's terminal, and what is shown there to the user's, through a filter.

No more is read on one side while something waits to be written on the other: a terminal that stands still makes the
program wait, and does not make this process grow.
"""

from __future__ import annotations

import os
import select

from claudebox.launch.parent.escape_codes import OutputFilter
from claudebox.launch.parent.keeper import GIVE_UP_STOPPING, GO_ON, GO_ON_BEHIND, GOES_ON, STOP, Line
from claudebox.launch.parent.users_terminal import UsersTerminal, require_one_terminal
from claudebox.process import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

AT_ONCE = 1 << 16  # bytes
LITTLE = 1024  # one read of a terminal gives 4096 bytes at most: after a short one nothing more is there
ESCAPE = b"\x1b"
LAST_WORDS = 1 << 18  # bytes that a box can have written before it stopped or ended
STUCK_MILLISECONDS = 200  # after which a terminal that takes nothing is left alone, if somebody wants us to end
LOOK_MILLISECONDS = 250  # `fg` does not tell a job that was running behind the shell that it is in front now
NOTED = (signal.SIGWINCH, signal.SIGCONT, signal.SIGTSTP, signal.SIGCHLD)
IGNORED = (signal.SIGTTIN, signal.SIGTTOU)
LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")  # the first that is set counts
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


class Relay:
    def __init__(self, line: Line, box: int, waking: int, hang_up: Callable[[], None]) -> None:
        require_one_terminal(line.terminal)
        self.line = line
        self.box = box
        self.hang_up = hang_up  # is told that the terminal is gone
        self.user = UsersTerminal(line.terminal, line.note, is_output=os.isatty(1))
        self.master = line.master
        self.filter = OutputFilter(is_utf8=_reads_utf8())
        self.keys = b""  # typed, and not taken by the box yet
        self.output = b""  # shown, and not taken by the user's terminal yet
        # In a pipeline somebody else may be reading keys: we do when the program asks for some.
        self.wants_keys = os.isatty(0) and os.isatty(1)
        self.poll = select.poll()
        self.masks: dict[int, int] = {}
        self.watched: dict[int, Callable[[int], bool]] = {}
        self.has_ended = False
        self.noted: set[int] = set()  # signals
        self.waking = waking
        self.awaited = 0  # orders to go on that the keeper has not carried out yet

    def watch(self, descriptor: int, answer: Callable[[int], bool]) -> None:
        """Call this function if the pipe has something to read or ends; and again if it has returned True."""
        self.watched[descriptor] = answer
        self.poll.register(descriptor, select.POLLIN)

    def begin(self) -> None:
        """Prepare both terminals. The program has not started yet."""
        os.set_blocking(self.master, False)
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        for number in NOTED:
            signal.signal(number, lambda *_: None)
        self.user.copy_size(self.master)
        if self.user.is_foreground():
            self.user.copy_modes(self.master)
        if self.line.is_foreground:
            self._take_keys()

    def run(self) -> None:
        """Return when the box has ended."""
        self.watch(self.waking, self._hear_signals)
        self.watch(self.line.stops, self._hear_keeper)
        self._look_for_end()
        while not self.has_ended:
            self._choose()
            may_come_to_front = self.wants_keys and not self.user.is_raw
            ready = self.poll.poll(LOOK_MILLISECONDS if may_come_to_front else None)
            if may_come_to_front and self.user.is_foreground():
                self._go_on()
            for descriptor, event in ready:
                self._serve(descriptor, event)
            self._act_on_signals()
        self._drain()

    def end(self) -> None:
        """Bring the user's terminal back, and be an ordinary process again."""
        for number in (*NOTED, *IGNORED):
            signal.signal(number, signal.SIG_DFL)
        self._undo_modes()
        self.user.give_back()

    def _choose(self) -> None:
        """Wait for what can be used now."""
        is_reading = self.user.is_raw and not self.keys
        self._wait_for(self.user.descriptor, is_reading, bool(self.output))
        self._wait_for(self.master, not self.output, bool(self.keys) and not self.awaited)

    def _wait_for(self, descriptor: int, to_read: bool, to_write: bool) -> None:
        mask = (select.POLLIN if to_read else 0) | (select.POLLOUT if to_write else 0)
        if descriptor >= 0 and self.masks.get(descriptor) != mask:
            self.masks[descriptor] = mask
            self.poll.register(descriptor, mask)

    def _serve(self, descriptor: int, event: int) -> None:
        if descriptor == self.user.descriptor:
            self._serve_user(event)
        elif descriptor == self.master:
            self._serve_box(event)
        elif descriptor in self.watched and not self.watched[descriptor](descriptor):
            self.poll.unregister(descriptor)
            del self.watched[descriptor]

    def _serve_user(self, event: int) -> None:
        if event & (select.POLLHUP | select.POLLERR):
            self._lose_terminal()
            return
        if event & select.POLLIN:
            self._read_keys()
        if event & select.POLLOUT:
            self._write_output()

    def _serve_box(self, event: int) -> None:
        if event & select.POLLIN:
            self._read_output()
        elif event & select.POLLHUP:
            self.poll.unregister(self.master)  # nobody has it open any more
            self.master = -1
        if event & select.POLLOUT:
            self._write_keys()

    def _take_keys(self) -> bool:
        """Have the user's keys from now on, if they are ours. Whether they are."""
        has_keys = self.user.take()
        self.keys += self.user.take_typed_ahead()
        return has_keys

    def _read_keys(self) -> None:
        if not self.user.is_raw:
            return
        try:
            self.keys += os.read(self.user.descriptor, AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            # SIGTTIN is ignored, so this is what a process in the background gets.
            if not self.user.is_foreground():
                self.user.lose()
            return
        self._write_keys()

    def _write_keys(self) -> None:
        if self.awaited:
            return  # if one of them is Ctrl-Z, the SIGCONT that is still to come would undo it
        try:
            self.keys = self.keys[os.write(self.master, self.keys) :]
        except BlockingIOError:
            pass
        except OSError:
            self.keys = b""

    def _read_output(self) -> int:
        """Read as much as is there, up to a limit, and show it."""
        pieces: list[bytes] = []
        total = 0
        try:
            while total < AT_ONCE:
                pieces.append(os.read(self.master, AT_ONCE))
                total += len(pieces[-1])
                if len(pieces[-1]) < LITTLE:
                    break
        except OSError:
            pass  # nothing more is there
        self.output = self.filter.feed(b"".join(pieces))
        if ESCAPE in self.output:
            # Before it is shown: who is killed in between has noted too much, which does no harm.
            self.user.note_undo(self.filter.undoing)
        self._write_output()
        return total

    def _write_output(self) -> None:
        try:
            self.output = self.output[os.write(self.user.descriptor, self.output) :] if self.output else b""
        except BlockingIOError:
            pass
        except OSError:
            self.output = b""  # the terminal is gone

    def _drain(self) -> None:
        """Show what the box has written before it stopped or ended."""
        box = select.poll()
        if self.master >= 0:
            box.register(self.master, select.POLLIN)
        left = LAST_WORDS
        # To poll means to wait until the kernel has handed over what was written.
        while self._flush() and left > 0 and any(event & select.POLLIN for _, event in box.poll(0)):
            left -= self._read_output() or left

    def _flush(self) -> bool:
        """Write what waits to be shown. False if the terminal takes nothing and somebody wants us to end."""
        user = select.poll()
        user.register(self.user.descriptor, select.POLLOUT)
        while self.output:
            if not user.poll(STUCK_MILLISECONDS):
                self._note_signals()
                if not self.noted.isdisjoint(ENDING):
                    return False
            self._write_output()
        return True

    def _undo_modes(self) -> None:
        self.output = self.filter.undo()
        self._flush()

    def _note_signals(self) -> None:
        try:
            numbers = os.read(self.waking, LITTLE)
        except BlockingIOError:
            return
        for number in numbers:
            if number == signal.SIGCONT:
                self.noted.discard(signal.SIGTSTP)  # it undoes an earlier stop, and not a later one
            self.noted.add(number)

    def _hear_signals(self, _: int) -> bool:
        self._note_signals()
        return True

    def _act_on_signals(self) -> None:
        numbers, self.noted = self.noted, self.noted.intersection(ENDING)
        if signal.SIGCHLD in numbers:
            self._look_for_end()
        if signal.SIGWINCH in numbers:
            self.user.copy_size(self.master)
        if signal.SIGCONT in numbers:
            # Somebody may have stopped and continued this process alone, and the shell may have changed the modes.
            self.user.lose()
            self._go_on()
        if signal.SIGTSTP in numbers:
            self._order(STOP)

    def _look_for_end(self) -> None:
        self.has_ended = os.waitid(os.P_PID, self.box, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _hear_keeper(self, _: int) -> bool:
        said = os.read(self.line.stops, 1)
        if not said:
            os.kill(self.box, signal.SIGKILL)  # somebody has killed the keeper
        elif said == GOES_ON:
            self.awaited -= 1
            self._write_keys()  # now: a box that stops again and again would have the keys held for ever
        elif not self.awaited and signal.SIGCONT not in self.noted:
            self._stop(said[0])
        return bool(said)

    def _stop(self, number: int) -> None:
        """The box has stopped. So do we and the rest of our job, unless all that it wants is the terminal."""
        is_for_terminal = number in (signal.SIGTTIN, signal.SIGTTOU)
        if is_for_terminal and self.user.is_foreground():
            self.wants_keys = True
            self._go_on()
            return
        self._drain()
        self._undo_modes()
        self.user.give_back()
        if self._stop_job(number if is_for_terminal else signal.SIGTSTP) or not is_for_terminal:
            self._go_on()
        else:
            self._order(GIVE_UP_STOPPING)

    def _stop_job(self, number: int) -> bool:
        """Stop the caller's job, with the script that started us. False if nobody could continue it."""
        self._note_signals()
        self.noted -= {signal.SIGTSTP, signal.SIGCONT}
        handler = signal.signal(number, signal.SIG_DFL)
        os.kill(0, number)
        # Here we are continued.
        signal.signal(number, handler)
        self._note_signals()
        was_continued = signal.SIGCONT in self.noted
        # To be continued twice might undo the next stop. If Ctrl-Z was pressed again already, that is still to be done.
        self.noted.discard(signal.SIGCONT)
        return was_continued

    def _go_on(self) -> None:
        """Let the box go on, with the keys if they are ours."""
        has_keys = self.wants_keys and self._take_keys()
        self.user.copy_size(self.master)
        self.awaited += 1
        self._order(GO_ON if has_keys else GO_ON_BEHIND)

    def _order(self, order: bytes) -> None:
        try:
            os.write(self.line.orders, order)
        except BrokenPipeError:
            pass  # somebody has killed the keeper; `_hear_keeper` sees to it

    def _lose_terminal(self) -> None:
        """The window is closed. The programs in the box see the same of their terminal.

        Whether they get a signal, too, is up to the shell and the kernel, who know who runs in front or is disowned.
        """
        self.poll.unregister(self.user.descriptor)
        self.masks[self.user.descriptor] = 0
        self.user.lose()
        self.wants_keys = False
        self.output = b""
        self.hang_up()
        if self.master >= 0:
            self.poll.unregister(self.master)
            os.close(self.master)
            self.master = -1


def _reads_utf8() -> bool:
    """Whether the user's terminal reads UTF-8: nearly all do, whether or not the locale says so."""
    locale = next((os.environ[name] for name in LOCALE if os.environ.get(name)), "")
    charset = locale.partition(".")[2].partition("@")[0]
    return charset.lower().replace("-", "") in ("", "utf8")
