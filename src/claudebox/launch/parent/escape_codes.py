"""Decides what a program in the box may say to the user's terminal.

A terminal obeys what is written to it. Some codes set the clipboard, some make it type an answer, and whoever reads
next obeys that: the user's shell, if the box has just ended. Terminals also disagree about where a code ends. So only
whole codes pass, each in the one spelling that all of them read alike:

- A code begins with ESC. No byte from 0x80 to 0x9f passes, alone or in UTF-8, which means the same to some terminals.
- Nothing is inside of a code that does not belong there: no line feed, no second ESC. A string ends with `ESC \\`, or
  with BEL where that is usual, and not with what only some terminals take for an end.
- A code that passes is one that `escape_rules` lets pass.

What is not whole yet is held until it is, up to a limit. Whatever is dropped, what follows is looked at from the
beginning, so nothing is ever put together by leaving something out.
"""

from __future__ import annotations

import codecs
import re

from claudebox.launch.parent.escape_rules import CONTROL_SEQUENCES, CONTROLS, ESCAPES, STRINGS, Passing
from claudebox.launch.parent.escape_undo import LeftOn

ESC, BEL, STRING_END = "\x1b", "\x07", "\x1b\\"
SHIFT_OUT = "\x0e"  # to another character set
# A picture of kitty comes in pieces of 4096; an address may be longer.
LONGEST_STRING = 8192
LONGEST_NUMBERS = 256

# What breaks off every code. It stands for all control characters that do not pass, and does not pass itself.
CAN = "\x18"
# 0x80 to 0x9f: in UTF-8, and as bytes that are not part of any UTF-8, which Python decodes to the second range.
C1 = r"\x80-\x9f\udc80-\udc9f"
UNWANTED = re.compile(rf"[{''.join(CONTROLS)}{C1}]")
C1_IN_UTF8 = re.compile(rb"\xc2[\x80-\x9f]")
# Control sequences of numbers only that no row refuses, and that leave nothing switched on. Most are of this kind.
HARMLESS = rf"\[[0-9;:]{{0,{LONGEST_NUMBERS}}}+[@A-HJ-MPSTXZ`a-gm]"
# The first of them is what ordinary output costs: a search for one character is fast, one for two is not.
SUSPECT = re.compile(rf"{ESC}(?!{HARMLESS})")
SUSPECT_OR_CAN = re.compile(rf"{CAN}|{SUSPECT.pattern}")
CONTROL_SEQUENCE = re.compile(
    rf"{ESC}\[(?P<private>[<-?]?)(?P<numbers>[0-9;:]{{0,{LONGEST_NUMBERS}}})(?P<middle>[ -/]{{0,2}})(?P<final>[@-~]?)"
)
ESCAPE = re.compile(rf"{ESC}(?P<middle>[ -/]{{0,2}})(?P<final>[0-~]?)")
# Where a string ends, or is broken off, in the reading of any terminal.
END = re.compile(rf"[{BEL}{CAN}\x1a{ESC}]")
NOT_IN_STRINGS = re.compile(r"[\x00-\x1f\x7f]")
# The Linux console sets its palette by strings that have no end. To others they begin a string that nobody knows.
PALETTE = re.compile(rf"{ESC}\](?:P[0-9A-Fa-f]{{7}}|R)")


def _any_of(rows: tuple[Passing, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{row.pattern})" for row in rows) or r"(?!)", re.ASCII)


KNOWN_STRINGS = {introducer: _any_of(rows) for introducer, rows in STRINGS.items()}
KNOWN_ESCAPES = _any_of(ESCAPES)
REFUSED = {
    ending: re.compile(row.unless, re.ASCII) if row.unless else None
    for row in CONTROL_SEQUENCES
    for ending in row.endings
}


def _has_unwanted(text: str) -> bool:
    """Whether there is something to replace. Two searches in what it encodes to are faster than one in the text."""
    if any(control in text for control in CONTROLS):
        return True
    if text.isascii():
        return False
    try:
        return C1_IN_UTF8.search(text.encode()) is not None
    except UnicodeEncodeError:  # some bytes are no UTF-8
        return True


class OutputFilter:
    """Give it what the program writes, in pieces of any size, and write what it returns."""

    def __init__(self, *, is_utf8: bool = True) -> None:
        """To a terminal that does not read UTF-8, every byte from 0x80 to 0x9f is a control code."""
        self._encoding = "utf-8" if is_utf8 else "latin-1"
        self._decoder = codecs.getincrementaldecoder(self._encoding)("surrogateescape")
        self._held = ""  # the beginning of a code whose end has not come yet
        self._is_dropping = False  # in a string that is too long
        self._left_on = LeftOn()

    def feed(self, data: bytes) -> bytes:
        """What of it may be written to the terminal, and of what was held before."""
        text = self._decoder.decode(data)
        if _has_unwanted(text):
            text = UNWANTED.sub(CAN, text)
        text, self._held = self._held + text, ""
        position = self._drop_string(text, 0) if self._is_dropping else 0
        search = (SUSPECT_OR_CAN if CAN in text else SUSPECT).search
        passing = []
        while suspect := search(text, position):
            start = suspect.start()
            passing.append(text[position:start])
            code, position = self._judge(text, start)
            passing.append(code)
        passing.append(text[position:])
        passed = "".join(passing)
        if ESC in passed or SHIFT_OUT in passed:
            self._left_on.is_styled = True
        return passed.encode(self._encoding, "surrogateescape")

    def undo(self) -> bytes:
        """Codes that switch off what the program has left on. What was held is forgotten."""
        codes = self.undoing
        self._decoder.reset()
        self._held, self._is_dropping = "", False
        self._left_on = LeftOn()
        return codes

    @property
    def undoing(self) -> bytes:
        """What `undo` would return now, for somebody who has to know it in advance."""
        return self._left_on.undo().encode("ascii")

    def _judge(self, text: str, start: int) -> tuple[str, int]:
        """What passes of the code that begins there, and where the text goes on."""
        if text[start] != ESC:
            return "", start + 1
        introducer = text[start + 1 : start + 2]
        if introducer in KNOWN_STRINGS:
            return self._judge_string(text, start, introducer)
        match = (CONTROL_SEQUENCE if introducer == "[" else ESCAPE).match(text, start)
        assert match is not None
        end = match.end()
        if not match["final"]:
            # Nothing is missing but the rest, or there is something in between.
            return self._hold(text, start) if end == len(text) else ("", end)
        passes = self._passes_control_sequence(match) if introducer == "[" else self._passes_escape(match)
        return match[0] if passes else "", end

    def _passes_control_sequence(self, match: re.Match[str]) -> bool:
        ending = match["private"] + match["middle"] + match["final"]
        if ending in REFUSED:
            unless = REFUSED[ending]
            if unless is None or not unless.fullmatch(match["numbers"]):
                return False
        self._left_on.note_control_sequence(ending, match["numbers"])
        return True

    def _passes_escape(self, match: re.Match[str]) -> bool:
        code = match["middle"] + match["final"]
        if KNOWN_ESCAPES.fullmatch(code) is None:
            return False
        self._left_on.note_escape(code)
        return True

    def _judge_string(self, text: str, start: int, introducer: str) -> tuple[str, int]:
        if palette := PALETTE.match(text, start):
            self._left_on.note_palette()
            return palette[0], palette.end()
        begin = start + 2
        end = END.search(text, begin)
        if end is None:
            if len(text) - begin <= LONGEST_STRING:
                return self._hold(text, start)
            self._is_dropping = True
            return "", len(text)
        if end.start() - begin > LONGEST_STRING:
            return "", self._drop_string(text, end.start())
        if end[0] == ESC and end.end() == len(text):
            return self._hold(text, start)
        body, after = text[begin : end.start()], self._drop_string(text, end.start())
        ended = text[end.start() : after]
        is_whole = ended == STRING_END or (ended == BEL and introducer == "]")
        if not is_whole or NOT_IN_STRINGS.search(body) or not KNOWN_STRINGS[introducer].fullmatch(body):
            return "", after
        self._left_on.note_string(introducer, body)
        return text[start:after], after

    def _drop_string(self, text: str, position: int) -> int:
        """Where the text goes on after the end of the string. A code that breaks it off is not part of it."""
        self._is_dropping = True
        end = END.search(text, position)
        if end is None:
            return len(text)
        if end[0] == ESC:
            following = text[end.end() : end.end() + 1]
            if not following:
                self._held = ESC
                return len(text)
            self._is_dropping = False
            return end.end() + 1 if following == "\\" else end.start()
        self._is_dropping = False
        return end.end()

    def _hold(self, text: str, start: int) -> tuple[str, int]:
        self._held = text[start:]
        return "", len(text)
