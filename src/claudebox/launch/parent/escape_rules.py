"""What a program in the box may say to the user's terminal, each row with its reason.

A string (OSC, DCS, APC, a title of `screen`) carries text, and terminals have given strings every power there is: they
pass only if a row here knows them. The same holds for short escape codes. A control sequence (CSI) carries nothing but
numbers, and new ones appear every year: they pass unless a row refuses them.

docs/terminal.md shows these tables; a test compares them.
"""

from __future__ import annotations

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
MODES = {
    "?1049": ("l", "alternate screen"),
    "?1047": ("l", "alternate screen"),
    "?47": ("l", "alternate screen"),
    "?2026": ("l", "synchronized output: nothing is shown until it ends"),
    "?9": ("l", "mouse"),
    "?1000": ("l", "mouse"),
    "?1001": ("l", "mouse"),
    "?1002": ("l", "mouse"),
    "?1003": ("l", "mouse"),
    "?1005": ("l", "how the mouse is reported"),
    "?1006": ("l", "how the mouse is reported"),
    "?1015": ("l", "how the mouse is reported"),
    "?1016": ("l", "how the mouse is reported"),
    "?1004": ("l", "reports of focus"),
    "?2004": ("l", "bracketed paste"),
    "?5522": ("l", "reports of pastes"),
    "?2031": ("l", "reports of colours"),
    "?2048": ("l", "reports of the size"),
    "?9001": ("l", "keys as Windows reports them"),
    "?7727": ("l", "Escape key of mintty, which tmux asks for"),
    "?1": ("l", "application cursor keys"),
    "?66": ("l", "application keypad"),
    "?67": ("l", "backspace key"),
    "?5": ("l", "reverse video"),
    "?6": ("l", "origin of the cursor"),
    "?45": ("l", "reverse wrap"),
    "?69": ("l", "left and right margins"),
    "?7": ("h", "wrapping of long lines"),
    "?25": ("h", "visible cursor"),
    "?3": ("", "columns, as `reset` sets them"),
    "?4": ("", "smooth scrolling, as `reset` sets it"),
    "?8": ("", "repeating keys"),
    "?12": ("", "blinking cursor"),
    "?1007": ("", "mouse wheel as cursor keys"),
    "?1034": ("", "Meta key, as readline sets it"),
    "?1048": ("", "saved cursor"),
    "?2027": ("", "width of characters"),
    "4": ("l", "inserting"),
    "12": ("h", "no echo by the terminal itself"),
    "20": ("l", "what Enter sends"),
    "34": ("", "form of the cursor in screen"),
}
ALTERNATE_SCREENS = ("?1049", "?1047", "?47")
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

# Strings that leave something on, by how they begin, with how each of them may end it, and what ends it here.
LASTING_STRINGS = {
    "8;": (r"8;[^;]*;", "8;;", "link: all that follows would be part of it"),
    "9;4;": (r"9;4;(?:0.*)?", "9;4;0;", "progress"),
    "7501;state=": (r"7501;state=clear.*", "7501;state=clear", "status of Claude Code"),
    "21337;": (r"21337(?:;[a-z-]+=)*", "21337;indicator=;status=;status-color=", "status of Claude Code"),
}
