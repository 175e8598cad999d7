"""The user's terminal: its modes, its size, and who may read from it."""

from __future__ import annotations

import fcntl
import marshal
import os
import select
import termios

from claudebox.launch.parent.keeper import STREAMS, is_foreground_of
from claudebox.problem import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    Modes = list[int | list[bytes | int]]

GET_DEVICE = 0x80045432  # TIOCGDEV; st_rdev says 5:0 for /dev/tty, whatever that is
SIZE = bytes(8)  # struct winsize
LONGEST_INPUT = 4096  # bytes that a terminal keeps for its reader
INPUT, OUTPUT, LOCAL, CHARACTERS = 0, 1, 3, 6  # what tcgetattr returns
INPUT_PROCESSING = (
    *(termios.IGNBRK, termios.BRKINT, termios.PARMRK, termios.ISTRIP, termios.INLCR, termios.IGNCR, termios.ICRNL),
    *(termios.IXON, termios.IXOFF, termios.IXANY),
)
LINE_EDITING = (termios.ECHO, termios.ECHONL, termios.ICANON, termios.ISIG, termios.IEXTEN)


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
        self.typed_ahead = b""  # before `take`, and not asked for yet

    def is_foreground(self) -> bool:
        return is_foreground_of(self.descriptor)

    def is_gone(self) -> bool:
        poll = select.poll()
        poll.register(self.descriptor, 0)
        return bool(poll.poll(0))

    def take(self) -> bool:
        """Have every key as it is typed, if the terminal is ours to read from. Whether it is."""
        if self.is_raw or not self.is_foreground():
            return self.is_raw
        try:
            # Not before: behind a shell these may be the modes of its line editor.
            now = termios.tcgetattr(self.descriptor)
            if now != self.raw:
                self.typed_ahead += self._read_typed_lines(now)
                self.before, self.raw = now, _made_raw(termios.tcgetattr(self.descriptor), self.is_output)
            termios.tcsetattr(self.descriptor, termios.TCSANOW, self.raw)
        except termios.error:
            return False  # it is gone
        self.is_raw = True
        self._write_note()
        return True

    def take_typed_ahead(self) -> bytes:
        keys, self.typed_ahead = self.typed_ahead, b""
        return keys

    def _read_typed_lines(self, modes: Modes) -> bytes:
        """The keys of all lines that wait to be read, with those that have ended one, or the whole input.

        The kernel keeps an end of input as a zero byte. Once the modes are raw, nobody can tell what it was.
        """
        local_modes, characters = modes[LOCAL], modes[CHARACTERS]
        assert isinstance(local_modes, int)
        assert isinstance(characters, list)
        end_of_input = characters[termios.VEOF]
        assert isinstance(end_of_input, bytes)
        ends = (b"\n", characters[termios.VEOL], characters[termios.VEOL2])
        keys = b""
        while local_modes & termios.ICANON and len(keys) < LONGEST_INPUT and not self.is_gone():
            try:
                line = os.read(self.descriptor, LONGEST_INPUT)
            except OSError:
                break  # no whole line is left
            keys += line if line[-1:] in ends else line + end_of_input
        return keys

    def give_back(self) -> None:
        """Undo `take`."""
        if not self.is_raw:
            return
        self.is_raw = False
        if self.is_foreground():
            try:
                termios.tcsetattr(self.descriptor, termios.TCSANOW, self.before)
            except termios.error:
                pass  # it is gone
        self._write_note()

    def lose(self) -> None:
        """Know that somebody has taken the terminal, and perhaps changed its modes."""
        self.is_raw = False
        self._write_note()

    def note_undo(self, undo: bytes) -> None:
        """Note what would undo the modes that the program has set by escape codes."""
        if undo != self.undo:
            self.undo = undo
            self._write_note()

    def _write_note(self) -> None:
        """Tell the keeper what to do if this process is killed."""
        if self.is_raw:
            os.pwrite(self.note, marshal.dumps((self.before, self.raw, self.undo)), 0)
        else:
            os.ftruncate(self.note, 0)

    def copy_modes(self, other: int) -> None:
        """Give another terminal the modes of this one."""
        try:
            modes = termios.tcgetattr(self.descriptor)
            # Somebody else, such as a pager in a pipeline, may have it already.
            if modes[LOCAL] & termios.ICANON:
                termios.tcsetattr(other, termios.TCSANOW, modes)
        except termios.error:
            pass  # it is gone

    def copy_size(self, other: int) -> None:
        """Give another terminal the size of this one. The kernel tells its programs, if that is a change."""
        if other < 0:
            return
        try:
            fcntl.ioctl(other, termios.TIOCSWINSZ, fcntl.ioctl(self.descriptor, termios.TIOCGWINSZ, SIZE))
        except OSError:
            pass  # it is gone


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
    input_modes, output_modes, local_modes, characters = (modes[n] for n in (INPUT, OUTPUT, LOCAL, CHARACTERS))
    assert isinstance(input_modes, int)
    assert isinstance(output_modes, int)
    assert isinstance(local_modes, int)
    assert isinstance(characters, list)
    for flag in INPUT_PROCESSING:
        input_modes &= ~flag
    for flag in LINE_EDITING:
        local_modes &= ~flag
    modes[INPUT], modes[LOCAL] = input_modes, local_modes
    modes[OUTPUT] = output_modes & ~termios.OPOST if is_output else output_modes
    characters[termios.VMIN], characters[termios.VTIME] = 1, 0
    return modes
