"""Decides what a program in the box may say to the user's terminal.

A terminal obeys what is written to it. Some codes set the clipboard, some make it type an answer, and whoever reads
next obeys that: the user's shell, if the box has just ended. Terminals also disagree about where a code ends. So only
whole codes pass, each in the one spelling that all of them read alike:

- A code begins with ESC. No byte from 0x80 to 0x9f passes, alone or in UTF-8, which means the same to some terminals.
- Nothing is inside of a code that does not belong there: no line feed, no second ESC. A string ends with `ESC \\`, or
  with BEL where that is usual, and not with what only some terminals take for an end.
- A string (OSC, DCS, APC, a title of `screen`) carries text, and terminals have given strings every power there is: it
  passes only if a row here knows it. The same holds for short escape codes.
- A control sequence (CSI) carries nothing but numbers, and new ones appear every year: it passes unless a row refuses
  it.

What is not whole yet is held until it is, up to a limit. Whatever is dropped, what follows is looked at from the
beginning, so nothing is ever put together by leaving something out.
"""

from __future__ import annotations

import codecs
import re

from claudebox.record import Record


class Passing(Record):
    """What passes if the whole of its text matches."""

    pattern: str
    meaning: str


class Refused(Record):
    """Control sequences that do not pass, unless their numbers match."""

    endings: tuple[str, ...]  # the private marker, what is between numbers and end, and the end: `?h`, `*y`
    reason: str
    unless: str = ""  # a pattern for the numbers


COLOUR = r"(?:\?|[#\w:/., -]{1,40})"
SMALL = r"\d{1,3}"

OSC = (
    Passing(r"[012];(?!\?$).*", "title of the window and its icon; a lone `?` would ask some terminals for it"),
    Passing(rf"[45](?:;{SMALL};{COLOUR})+", "set or ask for colours of the palette; the answer is made of numbers"),
    Passing(rf"1[0-9](?:;{COLOUR})+", "set or ask for colours of text, background, cursor; the same"),
    Passing(rf"10[45](?:;(?:{SMALL})?)*|11[0-9];?", "take these colours back"),
    Passing(
        r"8;[^;]*;(?:(?:https?|mailto|file):[!-~]*)?", "links to the web, mail and files; other kinds start programs"
    ),
    Passing(r"9;(?:4;[0-4]?(?:;\d{0,3})?;?|[^\d; ].*)", "notification, progress; other numbers are ConEmu's commands"),
    Passing(
        r"99;(?:(?:[deifnotuw]=[\w+/=.,-]*|p=(?:title|body)|a=-?focus)(?::(?!;)|(?=;)))*;.*",
        "notification of kitty, without questions and reports, which echo a text",
    ),
    Passing(r"777;notify;.*", "notification; other words run extensions, or open tabs elsewhere"),
    Passing(
        r"133;(?:A(?:;redraw=0)?|C|D(?:;\d{1,3})?)", "where an answer begins and ends; not `B`, a command to repeat"
    ),
    Passing(r"7501;(?:\?|state=[a-z]+(?::.*)?)", "status of Claude Code"),
    Passing(r"21337;(?:indicator|status|status-color)=.*", "status of Claude Code, in a tab of iTerm2"),
)
DCS = (
    Passing(r"\$q(?:[mrst]| q|\"[pq]|\*[x|]|\$[|}~])", "ask for a setting that is known; others are echoed"),
    Passing(r"\+q[0-9A-Fa-f]{2,40}(?:;[0-9A-Fa-f]{2,40})*", "ask what the terminal can do, in hexadecimal digits"),
    Passing(r"=[12]s", "begin and end an update of the screen"),
    Passing(r"zz", "nothing at all: vim looks how it is ignored"),
)
APC = (
    Passing(
        r"G(?:(?:t=d|[a-su-zA-Z]=(?:-?\d{1,10}|[a-zA-Z]))(?:,(?!;|$)|(?=;|$)))*(?:;[\w+/=]*)?",
        "a picture of kitty whose data is in it; others would have the terminal read or remove files",
    ),
)
SCREEN_TITLE = (Passing(r".*", "title of a window of screen and tmux; elsewhere it is text"),)

# By the letter after ESC. SOS (X) and PM (^) have no use that we know.
STRINGS = {"]": OSC, "P": DCS, "_": APC, "k": SCREEN_TITLE, "X": (), "^": ()}

ESCAPES = (
    Passing(r"[78]", "save the cursor, and go back to it"),
    Passing(r"[=>]", "keys of the keypad"),
    Passing(r"[69DEHM]", "move, scroll, set a tab stop"),
    Passing(r"[()*+./-][ -/]?[0-~]", "character sets, for lines and boxes"),
    Passing(r"#[34568]", "large characters; fill the screen"),
    Passing(r"c", "reset: `tsc --watch` clears the screen with it"),
    Passing(r"g", "visible bell of screen"),
    Passing(r"\\", "end of a string; by itself, nothing"),
    Passing(r"%G", "text is UTF-8; the way back would make control codes of letters"),
    Passing(r"<| F", "how terminals begin"),
)

# Modes that pass, with what switches them off again: nothing, if terminals differ in what is usual. The screen is
# first: what follows is about the one that the user goes on with.
_MODES = (
    ("l", "alternate screen", "?1049 ?1047 ?47"),
    ("l", "synchronized output: nothing is shown until it ends", "?2026"),
    ("l", "mouse", "?9 ?1000 ?1001 ?1002 ?1003"),
    ("l", "how the mouse is reported", "?1005 ?1006 ?1015 ?1016"),
    ("l", "reports of focus", "?1004"),
    ("l", "bracketed paste", "?2004"),
    ("l", "reports of pastes", "?5522"),
    ("l", "reports of colours", "?2031"),
    ("l", "reports of the size", "?2048"),
    ("l", "keys as Windows reports them", "?9001"),
    ("l", "Escape key of mintty, which tmux asks for", "?7727"),
    ("l", "application cursor keys", "?1"),
    ("l", "application keypad", "?66"),
    ("l", "backspace key", "?67"),
    ("l", "reverse video", "?5"),
    ("l", "origin of the cursor", "?6"),
    ("l", "reverse wrap", "?45"),
    ("l", "left and right margins", "?69"),
    ("h", "wrapping of long lines", "?7"),
    ("h", "visible cursor", "?25"),
    ("", "columns, as `reset` sets them", "?3"),
    ("", "smooth scrolling, as `reset` sets it", "?4"),
    ("", "repeating keys", "?8"),
    ("", "blinking cursor", "?12"),
    ("", "mouse wheel as cursor keys", "?1007"),
    ("", "Meta key, as readline sets it", "?1034"),
    ("", "saved cursor", "?1048"),
    ("", "width of characters", "?2027"),
    ("l", "inserting", "4"),
    ("h", "no echo by the terminal itself", "12"),
    ("l", "what Enter sends", "20"),
    ("", "form of the cursor in screen", "34"),
)
MODES = {mode: (off, meaning) for off, meaning, modes in _MODES for mode in modes.split()}
MODE_LIST = r"(?:{0})(?:;(?:{0}))*"

CONTROL_SEQUENCES = (
    Refused(
        ("t",),
        "types the title, or moves the window; asking for sizes, and keeping the title aside, passes",
        r"(?:1[134-689]|2[23])(?:;[0-2]){0,2}",
    ),
    Refused((">t", ">T"), "titles in hexadecimal digits, which can hold anything; what the screen shows, typed"),
    Refused(("n",), "rxvt types the name of its display; asking for the cursor passes", r"[56]"),
    Refused(("i", "?i"), "prints, and can send everything that follows to the printer alone"),
    Refused(
        ("*y", "$w", "$u", "&u"), "tells what the screen shows, in checksums, or what was loaded into the terminal"
    ),
    Refused(("*z",), "plays back a text that the terminal has stored"),
    Refused(("'w", "'z", "'{", "'|"), "mouse of DEC: it goes on reporting when the program has ended"),
    Refused(('"p',), "makes another terminal of it, with other control codes"),
    Refused(("$}", "$~"), "writes into a status line, which is not part of the screen"),
    Refused(("]",), "the Linux console: changes to another console, keeps the screen dark"),
    Refused(("$|", "*|"), "another size of the window"),
    Refused(("p",), "programs a key, as DOS did"),
    Refused(
        ("?h", "?l", "?s", "?r"),
        "modes that are not named below: some read letters as control codes, log to a file, or change what keys send",
        MODE_LIST.format("|".join(mode[1:] for mode in MODES if mode[0] == "?")),
    ),
    Refused(
        ("h", "l"),
        "the same; mode 2 locks the keyboard",
        MODE_LIST.format("|".join(mode for mode in MODES if mode[0] != "?")),
    ),
)

CONTROLS = {
    "\x05": "the terminal types its answerback",
    "\x18": "does nothing but start a transfer of files (ZMODEM)",
}

ESC, BEL, STRING_END = "\x1b", "\x07", "\x1b\\"
SHIFT_OUT = "\x0e"  # to another character set
SGR_AND_CHARSET = "\x1b[m\x1b(B\x0f"
MODES_OFF = {f"\x1b[{mode}{normal}": number for number, (mode, (normal, _)) in enumerate(MODES.items())}
ALTERNATE_SCREENS_OFF = ("\x1b[?1049l", "\x1b[?1047l", "\x1b[?47l")
KEYBOARD_OFF = "\x1b[<99u\x1b[=0u"  # kitty's: all that was put aside is forgotten; terminals keep fewer


def _osc(*bodies: object) -> str:
    return "".join(f"{ESC}]{body}{STRING_END}" for body in bodies)


# What else a program may leave behind: the codes, after ESC, and what brings back what is usual. It is sent at the end
# once such a code was passed, also if the program has undone it: that changes nothing.
LASTING = (
    (r"\[[\d;:]+r", "\x1b7\x1b[r\x1b8"),  # margins; to take them back goes to the corner of the screen, too
    (r"\[[\d;:]+ q", "\x1b[0 q"),  # form of the cursor
    (r"\[>.+[mn]", "\x1b[>m\x1b[>4m"),  # xterm's modifyOtherKeys and its like: all of them; some know just the fourth
    (r"\[>.+f", "\x1b[>f\x1b[>4f"),
    (r"=", "\x1b>"),  # keypad
    (r"P=1s.+", "\x1b[?2026l"),  # synchronized output
    (r"\]P.+", "\x1b]R"),  # palette of the Linux console
    (r"\][45];(?!(?:\d+;\?;?)+[\x07\x1b]).+", _osc(104, 105)),  # colours, unless it only asks for them
    (r"\]1\d;(?!(?:\?;?)+[\x07\x1b]).+", _osc(*range(110, 120))),
    (r"\]8;.+", _osc("8;;")),  # link: all that follows would be part of it
    (r"\]9;4;.+", _osc("9;4;0;")),  # progress
    (r"\]7501;state=.+", _osc("7501;state=clear")),
    (r"\]21337;.+", _osc("21337;indicator=;status=;status-color=")),
)
LASTING_CODE = re.compile("|".join(f"({code})" for code, _ in LASTING))
MODE_CODE = re.compile(r"\[(\??)([\d;]+)([hlr])")
KEYBOARD_CODE = re.compile(r"\[[>=].*u")


class LeftOn:
    """What is on at the moment, or was, by the codes that switch it off."""

    def __init__(self) -> None:
        self.is_styled = False  # some code was passed, so the text may have a colour or another character set
        self._modes: set[str] = set()
        self._others: set[str] = set()
        self._keyboards: set[bool] = set()  # kitty's protocol was used on the alternate screen, and on the other

    def note(self, code: str) -> None:
        if lasting := LASTING_CODE.fullmatch(code, 1):
            assert lasting.lastindex is not None
            self._others.add(LASTING[lasting.lastindex - 1][1])
        elif mode := MODE_CODE.fullmatch(code, 1):
            private, numbers, switch = mode.groups()
            for number in numbers.split(";"):
                normal = MODES[private + number][0]
                if normal:
                    # `r` brings back what was put aside before: on, perhaps.
                    change = self._modes.discard if switch == normal else self._modes.add
                    change(f"{ESC}[{private}{number}{normal}")
        elif KEYBOARD_CODE.fullmatch(code, 1):
            self._keyboards.add(self._on_alternate)

    def undo(self) -> str:
        """The codes, in an order in which none disturbs another. Nothing if the program has sent no code at all."""
        if not self.is_styled:
            return ""
        return "".join(
            (
                STRING_END,  # in case that a string was cut when its reader was killed
                KEYBOARD_OFF if self._on_alternate and True in self._keyboards else "",
                *sorted(self._modes, key=MODES_OFF.__getitem__),
                KEYBOARD_OFF if False in self._keyboards else "",
                *sorted(self._others),
                SGR_AND_CHARSET,
            )
        )

    @property
    def _on_alternate(self) -> bool:
        return not self._modes.isdisjoint(ALTERNATE_SCREENS_OFF)


# A picture of kitty comes in pieces of 4096; an address may be longer.
LONGEST_STRING = 8192
LONGEST_NUMBERS = 256

# What breaks off every code. It stands for all control characters that do not pass, and does not pass itself.
CAN = "\x18"
# 0x80 to 0x9f: in UTF-8, and as bytes that are not part of any UTF-8, which Python decodes to the second range.
C1 = r"\x80-\x9f\udc80-\udc9f"
UNWANTED = re.compile(rf"[{''.join(CONTROLS)}{C1}]")
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


NOTHING = r"(?!)"  # matches no text


def _any_of(rows: tuple[Passing, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{row.pattern})" for row in rows) or NOTHING, re.ASCII)


KNOWN_STRINGS = {introducer: _any_of(rows) for introducer, rows in STRINGS.items()}
KNOWN_ESCAPES = _any_of(ESCAPES)
REFUSED = {ending: re.compile(row.unless or NOTHING, re.ASCII) for row in CONTROL_SEQUENCES for ending in row.endings}


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
        if not text.isascii() or any(control in text for control in CONTROLS):
            text = UNWANTED.sub(CAN, text)
        text, self._held = self._held + text, ""
        position = self._drop_string(text, 0) if self._is_dropping else 0
        search = (SUSPECT_OR_CAN if CAN in text else SUSPECT).search
        passing = []
        while suspect := search(text, position):
            start = suspect.start()
            passing.append(text[position:start])
            code, position = self._judge(text, start)
            if code:
                self._left_on.note(code)
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
        if introducer == "[":
            ending = match["private"] + match["middle"] + match["final"]
            passes = ending not in REFUSED or REFUSED[ending].fullmatch(match["numbers"])
        else:
            passes = KNOWN_ESCAPES.fullmatch(match["middle"] + match["final"])
        return match[0] if passes else "", end

    def _judge_string(self, text: str, start: int, introducer: str) -> tuple[str, int]:
        if palette := PALETTE.match(text, start):
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
        return text[start:after], after

    def _drop_string(self, text: str, position: int) -> int:
        """Where the text goes on after the end of the string. A code that breaks it off is not part of it."""
        end = END.search(text, position)
        is_unknown = end is not None and end[0] == ESC and end.end() == len(text)  # what follows ESC decides
        self._is_dropping = end is None or is_unknown
        if end is None:
            return len(text)
        if is_unknown:
            self._held = ESC
            return len(text)
        is_broken_off = end[0] == ESC and text[end.end()] != "\\"
        return end.start() if is_broken_off else end.end() + (end[0] == ESC)

    def _hold(self, text: str, start: int) -> tuple[str, int]:
        self._held = text[start:]
        return "", len(text)
