"""Passes what is typed to the box's terminal, and what is shown there to the user's, through a filter.

No more is read on one side while something waits to be written on the other: a terminal that stands still makes the
program wait, and does not make this process grow.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import select
import struct
import termios
import time

from claudebox.errors import Problem, suppress
from claudebox.process import signal
from claudebox.sandbox.parent import has_child_ended
from claudebox.sandbox.terminal import (
    GIVE_UP_STOPPING,
    GO_ON,
    GO_ON_BEHIND,
    GOES_ON,
    STOP,
    STREAMS,
    BoxTerminal,
    is_foreground_of,
)
from claudebox.sandbox.terminal.escape_codes import OutputFilter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Modes = list[Any]  # as tcgetattr returns them: numbers, and a list of characters

GET_DEVICE = 0x80045432  # TIOCGDEV; st_rdev says 5:0 for /dev/tty, whatever that is
SIZE = bytes(8)  # struct winsize
LONGEST_INPUT = 4096  # bytes that a terminal keeps for its reader
INPUT, OUTPUT, LOCAL, CHARACTERS = 0, 1, 3, 6  # what tcgetattr returns
INPUT_PROCESSING = termios.IGNBRK | termios.BRKINT | termios.PARMRK | termios.ISTRIP | termios.INLCR | termios.IGNCR
INPUT_PROCESSING |= termios.ICRNL | termios.IXON | termios.IXOFF | termios.IXANY
LINE_EDITING = termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN


class UsersTerminal:
    def __init__(self, descriptor: int, note: int, *, is_output: bool) -> None:
        self.descriptor = descriptor
        self.note = note
        # If only the input is a terminal, somebody else writes to it and counts on its ends of lines.
        self.is_output = is_output
        self.is_raw = False
        self.before: Modes = []
        self.raw: Modes = []
        self.undo = b""

    def is_foreground(self) -> bool:
        return is_foreground_of(self.descriptor)

    def is_gone(self) -> bool:
        poll = select.poll()
        poll.register(self.descriptor, 0)
        return bool(poll.poll(0))

    def take(self) -> bytes | None:
        """Have every key as it is typed. Returns what was typed before; None if we may not read from the terminal."""
        if self.is_raw:
            return b""
        if not self.is_foreground():
            return None
        typed_ahead = b""
        try:
            # Not before: behind a shell these may be the modes of its line editor.
            now = termios.tcgetattr(self.descriptor)
            if now != self.raw:
                typed_ahead = self._read_typed_lines(now)
                self.before, self.raw = now, _made_raw(termios.tcgetattr(self.descriptor), self.is_output)
            termios.tcsetattr(self.descriptor, termios.TCSANOW, self.raw)
        except termios.error:
            return None  # it is gone
        self.is_raw = True
        self._write_note()
        return typed_ahead

    def _read_typed_lines(self, modes: Modes) -> bytes:
        """The keys of all lines that wait to be read, with those that have ended one, or the whole input.

        The kernel keeps an end of input as a zero byte. Once the modes are raw, nobody can tell what it was.
        """
        characters = modes[CHARACTERS]
        ends = (b"\n", characters[termios.VEOL], characters[termios.VEOL2])
        keys = b""
        while modes[LOCAL] & termios.ICANON and len(keys) < LONGEST_INPUT and not self.is_gone():
            try:
                line = os.read(self.descriptor, LONGEST_INPUT)
            except OSError:
                break  # no whole line is left
            keys += line if line[-1:] in ends else line + characters[termios.VEOF]
        return keys

    def give_back(self) -> None:
        """Undo `take`."""
        if not self.is_raw:
            return
        self.is_raw = False
        if self.is_foreground():
            with suppress(termios.error):  # it is gone
                termios.tcsetattr(self.descriptor, termios.TCSANOW, self.before)
        self._write_note()

    def lose(self) -> None:
        """Somebody has taken the terminal, and perhaps changed its modes."""
        self.is_raw = False
        self._write_note()

    def note_undo(self, undo: bytes) -> None:
        """Keep what would undo the modes that the program has set by escape codes."""
        if undo != self.undo:
            self.undo = undo
            self._write_note()

    def _write_note(self) -> None:
        """Tell the leader of the session what to do if this process is killed."""
        if self.is_raw:
            os.pwrite(self.note, marshal.dumps((self.before, self.raw, self.undo)), 0)
        else:
            os.ftruncate(self.note, 0)

    def copy_modes(self, other: int) -> None:
        """Set the modes of another terminal as they are here."""
        with suppress(termios.error):  # it is gone
            modes = termios.tcgetattr(self.descriptor)
            # Somebody else, such as a pager in a pipeline, may have it already.
            if modes[LOCAL] & termios.ICANON:
                termios.tcsetattr(other, termios.TCSANOW, modes)

    def copy_size(self, other: int) -> None:
        """Set the size of another terminal as it is here. The kernel tells its programs if that is a change."""
        if other < 0:
            return
        with suppress(OSError):  # it is gone
            fcntl.ioctl(other, termios.TIOCSWINSZ, fcntl.ioctl(self.descriptor, termios.TIOCGWINSZ, SIZE))


def require_one_terminal(terminal: int, streams: tuple[int, ...] = STREAMS) -> None:
    """Refuse standard streams that are different terminals: the box has one."""
    for stream in streams:
        if os.isatty(stream) and _device(stream) != _device(terminal):
            raise Problem(
                f"descriptor {stream} is another terminal than the one that claudebox runs in",
                "put a pipe in between: claudebox … | cat >TERMINAL",
            )


def _device(terminal: int) -> bytes:
    return fcntl.ioctl(terminal, GET_DEVICE, bytes(4))


def _made_raw(modes: Modes, is_output: bool) -> Modes:
    modes[INPUT] &= ~INPUT_PROCESSING
    modes[LOCAL] &= ~LINE_EDITING
    modes[OUTPUT] &= ~termios.OPOST if is_output else ~0
    modes[CHARACTERS][termios.VMIN], modes[CHARACTERS][termios.VTIME] = 1, 0
    return modes


LONGEST_READ = 1 << 16  # bytes
SHORT_READ = 1024  # one read of a terminal gives 4096 bytes at most: after a short one nothing more is there
ESCAPE = b"\x1b"
MOST_UNREAD = 1 << 18  # bytes that a box can have written before it stopped or ended
STUCK_MILLISECONDS = 200  # after which a terminal that takes nothing is left alone, if somebody wants us to end
LOOK_MILLISECONDS = 250  # `fg` does not tell a job that was running behind the shell that it is in front now
NOTICE_SECONDS, REDRAW_SECONDS = 6, 0.3
HANDLED = (signal.SIGWINCH, signal.SIGCONT, signal.SIGTSTP)
IGNORED = (signal.SIGTTIN, signal.SIGTTOU)
LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")  # the first that is set counts
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


class Relay:
    def __init__(
        self, terminal: BoxTerminal, box: int, read_signals: Callable[[], bytes], hang_up: Callable[[], None]
    ) -> None:
        require_one_terminal(terminal.users)
        self.terminal = terminal
        self.box = box
        self.read_signals = read_signals  # returns the numbers of those that have come
        self.hang_up = hang_up  # is told that the terminal is gone
        self.user = UsersTerminal(terminal.users, terminal.note, is_output=os.isatty(1))
        self.master = terminal.master
        self.filter = OutputFilter(is_utf8=_reads_utf8())
        self.keys = b""  # typed, and not taken by the box yet
        self.output = b""  # shown, and not taken by the user's terminal yet
        # In a pipeline somebody else may be reading keys: we do when the program asks for some.
        self.wants_keys = os.isatty(0) and os.isatty(1)
        self.poll = select.poll()
        self.has_lost_user = False  # the window is closed
        self.watched: dict[int, Callable[[int], bool]] = {}
        self.signals: set[int] = set()  # those that nothing was done about yet
        self.sizes: list[tuple[float, int]] = []  # when to give the box's terminal so many rows
        self.awaited = 0  # orders to go on that the leader of the session has not carried out yet

    def watch(self, descriptor: int, answer: Callable[[int], bool]) -> None:
        """Call `answer` whenever the pipe can be read or has ended, until it returns False."""
        self.watched[descriptor] = answer
        self.poll.register(descriptor, select.POLLIN)

    def tell(self, notice: bytes) -> None:
        """Tell the user something while the program has the terminal: a line of its own, if that reads lines.

        A program that reads keys draws the screen itself. So the first row shows the notice, as if it were a bar, and
        the program is made to draw again afterwards by a change of the size.
        """
        words = b" ".join(notice.split())
        try:
            rows, columns, *_ = struct.unpack("4H", fcntl.ioctl(self.master, termios.TIOCGWINSZ, SIZE))
            if termios.tcgetattr(self.master)[LOCAL] & termios.ICANON:
                self.output += b"\r\n%s\r\n" % b"\r\n".join(notice.splitlines())
            else:
                self.output += b"\x1b7\x1b[H\x1b[0;7m%s\x1b[0m\x1b[K\x1b8" % words[: max(columns - 1, 0)]
                shown = time.monotonic() + NOTICE_SECONDS
                self.sizes = [(shown, max(rows - 1, 1)), (shown + REDRAW_SECONDS, rows)]
        except (OSError, termios.error):
            return  # one of them is gone
        self._write_output()

    def _change_size(self) -> None:
        """Take away a row for a moment: every program draws again then."""
        while self.sizes and self.sizes[0][0] <= time.monotonic():
            rows = self.sizes.pop(0)[1]
            with suppress(OSError):  # the box has ended
                size = fcntl.ioctl(self.master, termios.TIOCGWINSZ, SIZE)
                fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("H", rows) + size[2:])

    def begin(self) -> None:
        """Prepare both terminals. The program has not started yet."""
        os.set_blocking(self.master, False)
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        for number in HANDLED:
            signal.signal(number, lambda *_: None)
        self.user.copy_size(self.master)
        if self.user.is_foreground():
            self.user.copy_modes(self.master)
        if self.terminal.is_foreground:
            self._take_keys()

    def run(self, waking: int) -> None:
        """Return when the box has ended. `waking` can be read when a signal has come."""
        self.watch(waking, self._hear_signals)
        self.watch(self.terminal.stops, self._hear_leader)
        while not has_child_ended(self.box):
            self._choose_what_to_poll()
            may_come_to_front = self.wants_keys and not self.user.is_raw
            ready = self.poll.poll(LOOK_MILLISECONDS if may_come_to_front or self.sizes else None)
            self._change_size()
            if may_come_to_front and self.user.is_foreground():
                self._go_on()
            for descriptor, event in ready:
                self._serve(descriptor, event)
            self._act_on_signals()
        self._drain()

    def end(self) -> None:
        """Restore the user's terminal and the handling of signals."""
        for number in (*HANDLED, *IGNORED):
            signal.signal(number, signal.SIG_DFL)
        self._undo_modes()
        self.user.give_back()

    def _choose_what_to_poll(self) -> None:
        """Poll a side only for what can be handled now."""
        if not self.has_lost_user:
            is_reading = self.user.is_raw and not self.keys
            self._wait_for(self.user.descriptor, is_reading, bool(self.output))
        if self.master >= 0:
            self._wait_for(self.master, not self.output, bool(self.keys) and not self.awaited)

    def _wait_for(self, descriptor: int, to_read: bool, to_write: bool) -> None:
        self.poll.register(descriptor, (select.POLLIN if to_read else 0) | (select.POLLOUT if to_write else 0))

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
        """Read the user's keys from now on. Returns False if they are not for us."""
        typed_ahead = self.user.take()
        self.keys += typed_ahead or b""
        return typed_ahead is not None

    def _read_keys(self) -> None:
        if not self.user.is_raw:
            return
        try:
            self.keys += os.read(self.user.descriptor, LONGEST_READ)
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
        with suppress(OSError):  # nothing more is there
            while total < LONGEST_READ:
                pieces.append(os.read(self.master, LONGEST_READ))
                total += len(pieces[-1])
                if len(pieces[-1]) < SHORT_READ:
                    break
        self.output = self.filter.feed(b"".join(pieces))
        if ESCAPE in self.output:
            # Before it is shown: if we are killed in between, too much is undone, which does no harm.
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
        left = MOST_UNREAD
        # To poll means to wait until the kernel has handed over what was written.
        while self._flush() and left > 0 and any(event & select.POLLIN for _, event in box.poll(0)):
            left -= self._read_output() or left

    def _flush(self) -> bool:
        """Write what waits to be shown. Returns False if the terminal takes nothing and somebody wants us to end."""
        user = select.poll()
        user.register(self.user.descriptor, select.POLLOUT)
        while self.output:
            if not user.poll(STUCK_MILLISECONDS):
                self._note_signals()
                if not self.signals.isdisjoint(ENDING):
                    return False
            self._write_output()
        return True

    def _undo_modes(self) -> None:
        self.output = self.filter.undo()
        self._flush()

    def _note_signals(self) -> None:
        for number in self.read_signals():
            if number == signal.SIGCONT:
                self.signals.discard(signal.SIGTSTP)  # it undoes an earlier stop, and not a later one
            self.signals.add(number)

    def _hear_signals(self, _: int) -> bool:
        self._note_signals()
        return True

    def _act_on_signals(self) -> None:
        numbers, self.signals = self.signals, self.signals.intersection(ENDING)
        if signal.SIGWINCH in numbers:
            self.user.copy_size(self.master)
        if signal.SIGCONT in numbers:
            # Somebody may have stopped and continued this process alone, and the shell may have changed the modes.
            self.user.lose()
            self._go_on()
        if signal.SIGTSTP in numbers:
            self._order(STOP)

    def _hear_leader(self, _: int) -> bool:
        said = os.read(self.terminal.stops, 1)
        if not said:
            os.kill(self.box, signal.SIGKILL)  # somebody has killed the leader
        elif said == GOES_ON:
            self.awaited -= 1
            self._write_keys()  # now: a box that stops again and again would have the keys held for ever
        elif not self.awaited and signal.SIGCONT not in self.signals:
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
        self.signals -= {signal.SIGTSTP, signal.SIGCONT}
        handler = signal.signal(number, signal.SIG_DFL)
        os.kill(0, number)
        # Here we are continued.
        signal.signal(number, handler)
        self._note_signals()
        was_continued = signal.SIGCONT in self.signals
        # To be continued twice might undo the next stop. If Ctrl-Z was pressed again already, that is still to be done.
        self.signals.discard(signal.SIGCONT)
        return was_continued

    def _go_on(self) -> None:
        """Continue the box: in the foreground if the user's keys are ours, else behind."""
        has_keys = self.wants_keys and self._take_keys()
        self.user.copy_size(self.master)
        self.awaited += 1
        self._order(GO_ON if has_keys else GO_ON_BEHIND)

    def _order(self, order: bytes) -> None:
        with suppress(BrokenPipeError):  # somebody has killed the leader; `_hear_leader` sees to it
            os.write(self.terminal.orders, order)

    def _lose_terminal(self) -> None:
        """The window is closed. The programs in the box see the same of their terminal.

        Whether they get a signal, too, is up to the shell and the kernel, who know who runs in front or is disowned.
        """
        self.poll.unregister(self.user.descriptor)
        self.has_lost_user = True
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
