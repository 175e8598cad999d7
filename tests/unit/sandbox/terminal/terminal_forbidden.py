"""What no terminal may be told, said in another way than the filter says it."""

import re

from unit.sandbox.terminal.terminal_model import DIALECTS, Action, Dialect, Terminal

KNOWN_OSC = {0, 1, 2, 4, 5, 8, 9, *range(10, 20), 99, 104, 105, *range(110, 120), 133, 777, 7501, 21337}
# Other languages, another reading of bytes, a log, other codes for keys, other ways to paste; of xterm.
FORBIDDEN_MODES = {
    *(2, 10, 30, 35, 38, 40, 42, 46, 1035, 1036, 1041, 1044),
    *(*range(1050, 1063), 2001, 2002, 2003, 2005, 2006),
}
FORBIDDEN_ENDINGS = set("p $| *| i ?i *y *z $w $u &u 'w 'z '{ '| \"p $} $~ ] >t >T".split())


def forbidden_actions(data: bytes, dialects: tuple[Dialect, ...] = DIALECTS) -> list[Action]:
    """What at least one of the terminals would do."""
    return [action for dialect in dialects for action in Terminal(dialect).read(data) if _is_forbidden(action)]


def _is_forbidden(action: Action) -> bool:
    judge = {"control": _bad_control, "escape": _bad_escape, "csi": _bad_csi, "osc": _bad_osc}
    strings = {"dcs": _bad_dcs, "apc": _bad_apc, "title": _has_control}
    found = {**judge, **strings}.get(action.kind)
    return True if found is None else found(action)  # PM, SOS, a message of screen


def _bad_control(action: Action) -> bool:
    return action.text == "\x05"


def _bad_escape(action: Action) -> bool:
    return action.text in ("%@", "%8", " G", "Z", "n", "o", "N", "O")


def _bad_csi(action: Action) -> bool:
    first = [number % wrap for number in action.numbers[:1] for wrap in (1 << 16, 1 << 32)]
    every = [number % wrap for number in action.numbers for wrap in (1 << 16, 1 << 32)]
    if action.ending == "t":
        return any(number < 11 or number in (20, 21) or number > 23 for number in first)
    if action.ending == "n":
        return 7 in first or 8 in first
    if action.ending in ("h", "l"):
        return 2 in every
    if action.ending in ("?h", "?l", "?s", "?r"):
        return any(number in FORBIDDEN_MODES or number > 2100 for number in every if number not in (5522, 7727, 9001))
    return action.ending in FORBIDDEN_ENDINGS


def _bad_osc(action: Action) -> bool:
    digits = re.match(r"[0-9]*", action.text)
    assert digits is not None
    if not digits[0]:
        return action.text[:1] not in ("P", "R")  # the palette of the Linux console
    rest = action.text[digits.end() :]
    number = int(digits[0])
    commands = {
        9: r";(?!4;|4$)[0-9]",
        777: r";(?!notify;)",
        133: r";(?![ACD]$|A;redraw=0$|D;[0-9]+$)",
        2: r";\?$",
        8: r";[^;]*;(?!http|file:|mail|$)",
    }
    is_command = number in commands and re.match(commands[number], rest) is not None
    is_answered = number == 99 and re.search(r"[? ]|report|close|c=", rest.split(";")[1]) is not None
    return number not in KNOWN_OSC or is_command or is_answered or _has_control(action)


def _bad_dcs(action: Action) -> bool:
    return _has_control(action) or not re.match(r"\$q.{1,2}$|\+q[0-9A-Fa-f;]+$|=[12]s$|zz$", action.text)


def _bad_apc(action: Action) -> bool:
    keys = action.text[1:].split(";")[0].replace(" ", "").split(",")
    from_outside = any(key.startswith("t=") and key != "t=d" for key in keys)
    is_echoed = any(re.fullmatch(r"[iI]=\d+", key) is None for key in keys if key[:2] in ("i=", "I="))
    return _has_control(action) or not action.text.startswith("G") or from_outside or is_echoed


def _has_control(action: Action) -> bool:
    return re.search(r"[\x00-\x1f\x7f-\x9f]", action.text) is not None
