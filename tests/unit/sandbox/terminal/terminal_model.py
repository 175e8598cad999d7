"""A terminal that only reads: which actions it would take for some output.

Written from the state machine of the VT500 (Paul Williams) and from what the terminals do differently, not from the
filter: where strings end, what a line feed in the middle of a code does, which bytes begin a code. `DIALECTS` are the
readings that common terminals have.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

# Kinds of strings, by the byte after ESC and by the one of 0x80 to 0x9f that means the same.
INTRODUCERS = {"]": "osc", "P": "dcs", "X": "sos", "^": "pm", "_": "apc"}
EIGHT_BIT = {0x90: "dcs", 0x98: "sos", 0x9D: "osc", 0x9E: "pm", 0x9F: "apc"}


@dataclass(frozen=True)
class Dialect:
    name: str
    decoding: str = "strict"  # how bytes become characters: see `characters`
    has_c1: bool = True  # whether characters from 0x80 to 0x9f are control codes
    bell_ends: tuple[str, ...] = ("osc",)
    escape_dispatches: bool = True  # whether a string counts that another code breaks off
    cancel_dispatches: bool = False  # the same for CAN and SUB
    keeps_controls: bool = False  # whether control characters become part of a string
    extra_strings: tuple[tuple[str, str], ...] = ()  # as `k` of screen
    has_palette: bool = False  # `ESC ] P` and `ESC ] R` have no end
    has_strings: bool = True  # old Linux consoles show DCS, APC and PM as text


DIALECTS = (
    Dialect("xterm"),
    Dialect("VTE", cancel_dispatches=True),
    Dialect("kitty", escape_dispatches=False, keeps_controls=True),
    Dialect("foot", has_c1=False, keeps_controls=True),
    Dialect("alacritty", has_c1=False, cancel_dispatches=True, bell_ends=("osc", "dcs", "apc")),
    Dialect("tmux", has_c1=False, extra_strings=(("k", "title"),)),
    Dialect("screen", decoding="lenient", extra_strings=(("k", "title"), ("!", "message"))),
    Dialect("screen of one byte", decoding="invalid bytes", extra_strings=(("k", "title"), ("!", "message"))),
    Dialect("Linux", has_c1=False, bell_ends=("osc", "dcs", "apc", "pm", "sos"), has_palette=True),
    Dialect("old Linux", has_c1=False, has_palette=True, has_strings=False),
    Dialect("iTerm2", keeps_controls=True, bell_ends=("osc", "dcs", "apc", "pm"), has_palette=True),
)
EIGHT_BIT_DIALECT = Dialect("xterm without UTF-8", decoding="bytes")


@dataclass
class Action:
    kind: str  # control, escape, csi, or a kind of string
    text: str  # the whole of it, without what introduces and ends it

    numbers: list[int] = field(default_factory=list)  # of a csi
    ending: str = ""  # of a csi: private marker, intermediates, final


def characters(data: bytes, decoding: str) -> Iterator[int]:
    """`lenient` takes overlong UTF-8; with `invalid bytes`, what is no UTF-8 counts as the byte that it is."""
    if decoding == "bytes":
        yield from data
    elif decoding == "lenient":
        yield from _lenient(data)
    elif decoding == "invalid bytes":
        yield from (code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code for code in _decoded(data, "surrogateescape"))
    else:
        yield from _decoded(data, "replace")


def _decoded(data: bytes, errors: str) -> list[int]:
    return [ord(character) for character in data.decode("utf-8", errors)]


def _lenient(data: bytes) -> Iterator[int]:
    position = 0
    while position < len(data):
        lead = data[position]
        length = 2 if 0xC0 <= lead < 0xE0 else 3 if 0xE0 <= lead < 0xF0 else 4 if 0xF0 <= lead < 0xF8 else 1
        tail = data[position + 1 : position + length]
        if length > 1 and len(tail) == length - 1 and all(0x80 <= byte < 0xC0 for byte in tail):
            code = lead & (0x7F >> length)
            for byte in tail:
                code = code << 6 | byte & 0x3F
            yield code
            position += length
        else:
            yield lead if lead < 0x80 else 0xFFFD
            position += 1


class Terminal:
    """Reads characters one by one, and keeps what it was told to do."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.actions: list[Action] = []
        self.state = "ground"
        self.collected = ""
        self.has_escape = False  # in a string, just seen

    def read(self, data: bytes) -> list[Action]:
        for code in characters(data, self.dialect.decoding):
            self._take(code)
        return self.actions

    def _do(self, kind: str, text: str) -> None:
        self.actions.append(Action(kind, text))

    def _enter(self, state: str) -> None:
        self.state, self.collected, self.has_escape = state, "", False

    def _take(self, code: int) -> None:
        if self.state not in ("ground", "escape", "csi", "ignored csi"):
            self._take_in_string(code)
        elif code in (0x18, 0x1A):
            self._enter("ground")
            self._do("control", chr(code))
        elif code == 0x1B:
            self._enter("escape")
        elif 0x80 <= code < 0xA0 and self.dialect.has_c1:
            self._take_eight_bit(code)
        elif code < 0x20:
            self._do("control", chr(code))  # carried out, also in the middle of a code
        elif code != 0x7F and self.state == "escape":
            self._take_after_escape(code)
        elif code != 0x7F and self.state != "ground":
            self._take_in_csi(code)

    def _take_eight_bit(self, code: int) -> None:
        if code == 0x9B:
            self._enter("csi")
        elif code in EIGHT_BIT:
            self._enter(EIGHT_BIT[code])
        else:
            self._enter("ground")
            self._do("escape", chr(code - 0x40))

    def _take_after_escape(self, code: int) -> None:
        character = chr(code)
        strings = {**INTRODUCERS, **dict(self.dialect.extra_strings)}
        if not self.dialect.has_strings:
            strings = {"]": "osc"}
        if not self.collected and character == "[":
            self._enter("csi")
        elif not self.collected and character in strings:
            self._enter(strings[character])
        elif 0x20 <= code < 0x30:
            self.collected += character
        else:
            text = self.collected + character
            self._enter("ground")
            if 0x30 <= code < 0x7F:
                self._do("escape", text)

    def _take_in_csi(self, code: int) -> None:
        if 0x40 <= code < 0x7F:
            text, is_ignored = self.collected + chr(code), self.state == "ignored csi"
            self._enter("ground")
            if not is_ignored:
                self._finish_csi(text)
        elif code >= 0x80 or (self.collected and chr(code) in "<=>?") or len(self.collected) > 4096:
            self.state = "ignored csi"
        else:
            self.collected += chr(code)

    def _finish_csi(self, text: str) -> None:
        numbers = text.lstrip("<=>?").rstrip(text[-1]).rstrip(" !\"#$%&'()*+,-./")
        parsed = [int(number) if number.isdigit() else 0 for number in numbers.replace(":", ";").split(";")]
        self.actions.append(Action("csi", text, parsed, text.replace(numbers, "", 1) if numbers else text))

    def _take_in_string(self, code: int) -> None:
        kind = self.state
        if self.has_escape:
            is_end = code == ord("\\")
            self._finish_string(counts=is_end or self.dialect.escape_dispatches)
            if not is_end:
                self.state = "escape"
                self._take(code)
        elif code == 0x1B:
            self.has_escape = True
        elif code in (0x18, 0x1A):
            self._finish_string(counts=self.dialect.cancel_dispatches)
        elif (code == 0x07 and kind in self.dialect.bell_ends) or (code == 0x9C and self.dialect.has_c1):
            self._finish_string(counts=True)
        elif 0x80 <= code < 0xA0 and self.dialect.has_c1:
            self._finish_string(counts=self.dialect.escape_dispatches)
            self._take(code)
        elif code >= 0x20 or self.dialect.keeps_controls:
            self.collected += chr(code)
            self._end_early(kind)

    def _end_early(self, kind: str) -> None:
        """The Linux console: a palette has no end, and old ones knew no other string."""
        if kind != "osc" or not self.dialect.has_palette:
            return
        is_palette = self.collected == "R" or (self.collected.startswith("P") and len(self.collected) == 8)
        if is_palette or (not self.dialect.has_strings and self.collected[0] not in "PR"):
            self._enter("ground")

    def _finish_string(self, counts: bool) -> None:
        kind, text = self.state, self.collected
        self._enter("ground")
        if counts:
            self._do(kind, text)
