"""Formats text for a terminal of 80 columns: it escapes, wraps and, where that is welcome, colours."""

from __future__ import annotations

import os

from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 80
LEFT_OUT = "--quiet leaves this out"
NARROWEST = 40

BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"


class Style(Record):
    """Whether to use colours, on which the meaning never depends; and how wide the lines may be."""

    colour: bool
    width: int = WIDTH

    def paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def style_for(is_terminal: bool, environ: dict[str, str], columns: int = WIDTH) -> Style:
    """A wider terminal is not used: long lines are harder to read. A very narrow one has to wrap them itself."""
    colour = is_terminal and not environ.get("NO_COLOR") and environ.get("TERM", "dumb") != "dumb"
    return Style(colour, within_limits(columns))


def within_limits(columns: int) -> int:
    return min(max(columns, NARROWEST), WIDTH)


def terminal_width() -> int:
    """How wide lines may be that do not say where they are shown."""
    try:
        return within_limits(os.get_terminal_size(2).columns or WIDTH)
    except OSError:
        return WIDTH


# What Python takes for printable although nothing is to be seen: variation selectors, fillers of Hangul and others, the
# empty pattern of Braille, and whatever else Unicode lets a terminal ignore.
INVISIBLE = {
    *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0x16FE4, 0x1D159),
    *(*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
}


def escape(text: str) -> str:
    """Make every character visible: a file name may hold codes that rewrite the screen, or what nobody sees."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if character.isprintable() and ord(character) not in INVISIBLE else _escape_character(character)
        for character in text
    )


def _escape_character(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return named.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def counted(number: int, thing: str, things: str = "") -> str:
    """How many there are of something: `1 file`, `2 files`. Whatever is called otherwise says how."""
    return f"{number} {thing if number == 1 else things or f'{thing}s'}"


def some(names: Sequence[str], most: int) -> list[str]:
    """The first of the names, and how many more there are."""
    return [*names[:most], *([f"and {len(names) - most} more"] if len(names) > most else [])]


def bytes_text(size: int) -> str:
    amount = float(size)
    for unit in "BKMGT":
        if amount < 1000 or unit == "T":
            break
        amount /= 1024
    return f"{amount:.0f}{unit}"


def width(text: str) -> int:
    """The number of columns that a text takes."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def cut(text: str, room: int) -> str:
    """The text, cut if there is not enough room for it."""
    if width(text) <= room:
        return text
    text = text[: room - 1]
    while width(text) > room - 1:
        text = text[:-1]
    return text + "…"


def fill(words: list[str], indent: int, *, break_words: bool = True, columns: int = 0) -> list[str]:
    """The words on as few lines as possible. A longer word is broken, or stands out if it must stay whole."""
    room = (columns or terminal_width()) - indent
    lines: list[str] = []
    line = ""
    for word in words:
        for piece in _pieces(word, room) if break_words else (word,):
            if line and width(line) + 1 + width(piece) > room:
                lines.append(line)
                line = ""
            line = f"{line} {piece}" if line else piece
    return [*lines, line] if line else lines


def _pieces(word: str, room: int) -> list[str]:
    pieces = []
    while width(word) > room:
        cut = room
        while width(word[:cut]) > room:
            cut -= 1
        # A path, or a list of paths, is easier to read if it is broken between its parts.
        natural = (word.rfind(separator, room // 3, cut) + 1 for separator in " :,/")
        cut = next((place for place in natural if place), cut)
        pieces.append(word[:cut])
        word = word[cut:]
    return [*pieces, word]


def beside(head: str, words: list[str], indent: int, columns: int = 0) -> list[str]:
    """The wrapped words, the first line of them after the head."""
    first, *rest = fill(words, indent, columns=columns) or [""]
    return [f"{head}{first}".rstrip(), *(" " * indent + line for line in rest)]


def table_row(label: str, words: list[str], indent: int, style: Style, colour: str = DIM) -> list[str]:
    """A label and, beside it, the wrapped words."""
    head = f"  {style.paint(label, colour)}"
    if len(label) > indent - 3:
        return [head, *beside(" " * indent, words, indent, style.width)]
    return beside(head + " " * (indent - 2 - len(label)), words, indent, style.width)
