"""Remembers what a program has switched on at the terminal, to switch it off when the program could not.

Only what makes a terminal hard to use: keys that arrive in another form, a mouse that types, colours that hide text.
"""

from __future__ import annotations

import re

from claudebox.launch.parent.escape_rules import ALTERNATE_SCREENS, LASTING_STRINGS, MODES

MOST_KEYBOARDS = 99  # how often a program may have put the keyboard's state aside; terminals keep fewer
LAST_COLOUR = 19
COLOURS = ("104", "105", *(f"1{place}" for place in range(10, LAST_COLOUR + 1)))  # what resets them all
KEY_OPTIONS = tuple("0123467")
SGR_AND_CHARSET = "\x1b[m\x1b(B\x0f"


class LeftOn:
    """What is on at the moment."""

    def __init__(self) -> None:
        self.is_styled = False  # some code was passed, so the text may have a colour or another character set
        self._modes: set[str] = set()
        self._keyboards = {True: 0, False: 0}  # on the alternate screen, and on the other
        self._is_keyboard_set = {True: False, False: False}
        self._key_options: set[str] = set()  # xterm's modifyOtherKeys and its like, by what resets them
        self._colours: set[str] = set()  # by the number that resets them
        self._strings: set[str] = set()  # by how they begin
        self._has_keypad = False
        self._has_margins = False
        self._has_cursor_style = False

    def note_control_sequence(self, ending: str, numbers: str) -> None:
        private, final = ending[:-1], ending[-1]
        if private in ("", "?") and final in "hlr" and ending != "r":
            self._note_modes(private, numbers, final)
        elif ending == "r":
            self._has_margins = numbers != ""
        elif final == "u":
            self._note_keyboard(private, numbers)
        elif ending in (">m", ">n", ">f"):
            self._note_key_option(numbers, final)
        elif ending == "#Q":
            self._colours.update(COLOURS)  # they are what was put aside before
        elif ending == " q":
            self._has_cursor_style = numbers not in ("", "0")

    def note_escape(self, code: str) -> None:
        if code in ("=", ">"):
            self._has_keypad = code == "="

    def note_string(self, introducer: str, body: str) -> None:
        if introducer == "P" and body in ("=1s", "=2s"):
            self._note_modes("?", "2026", "h" if body == "=1s" else "l")
        if introducer != "]":
            return
        for beginning, (ending, _, _) in LASTING_STRINGS.items():
            if body.startswith(beginning):
                (self._strings.discard if re.fullmatch(ending, body) else self._strings.add)(beginning)
        self._note_colours(body)

    def _note_colours(self, body: str) -> None:
        number, *values = body.split(";")
        if number in ("4", "5"):
            self._colours.update(f"10{number}" for colour in values[1::2] if colour != "?")
        elif len(number) == 2 and number[0] == "1":
            # Each further colour is for the next number.
            setting = enumerate(values[: LAST_COLOUR + 1 - int(number)], int(number))
            self._colours.update(f"1{place}" for place, colour in setting if colour != "?")
        elif not values:
            # Some terminals take an empty value for a colour that they do not know.
            self._colours.discard(number)

    def note_palette(self) -> None:
        """The Linux console's own way; it has its own way back, too."""
        self._colours.add("R")

    def undo(self) -> str:
        """The codes, in an order in which none disturbs another. Nothing if the program has sent no code at all."""
        if not self.is_styled:
            return ""
        return "".join(
            (
                "\x1b\\",  # in case that a string was cut when its reader was killed
                *self._undo_keyboard(on_alternate=True),
                *(f"\x1b[{mode}{normal}" for mode, (normal, _) in MODES.items() if mode in self._modes),
                *self._undo_keyboard(on_alternate=False),
                *(f"\x1b[>{option}" for option in sorted(self._key_options)),
                *(("\x1b>",) if self._has_keypad else ()),
                # Without numbers it goes to the corner of the screen, too.
                *(("\x1b7\x1b[r\x1b8",) if self._has_margins else ()),
                *(("\x1b[0 q",) if self._has_cursor_style else ()),
                *("\x1b]R" if number == "R" else f"\x1b]{number}\x1b\\" for number in sorted(self._colours)),
                *(f"\x1b]{LASTING_STRINGS[beginning][1]}\x1b\\" for beginning in sorted(self._strings)),
                SGR_AND_CHARSET,
            )
        )

    @property
    def _on_alternate(self) -> bool:
        return not self._modes.isdisjoint(ALTERNATE_SCREENS)

    def _note_modes(self, private: str, numbers: str, switch: str) -> None:
        """`r` is what was put aside before: on, perhaps."""
        for number in numbers.split(";"):
            mode = private + number
            normal = MODES[mode][0]
            if switch == normal:
                self._modes.discard(mode)
            elif normal:
                self._modes.add(mode)

    def _note_keyboard(self, private: str, numbers: str) -> None:
        """kitty's protocol keeps a stack for each of the two screens."""
        screen = self._on_alternate
        if private == ">":
            self._keyboards[screen] = min(self._keyboards[screen] + 1, MOST_KEYBOARDS)
        elif private == "<":
            popped = int(numbers) if numbers.isdigit() and numbers != "0" else 1
            self._keyboards[screen] = max(self._keyboards[screen] - popped, 0)
        elif private == "=":
            # With another second number, none of what is set is switched off.
            self._is_keyboard_set[screen] = numbers not in ("", "0", "0;1")

    def _undo_keyboard(self, on_alternate: bool) -> list[str]:
        if on_alternate and not self._on_alternate:
            return []
        count = self._keyboards[on_alternate]
        popping = [f"\x1b[<{count}u"] if count else []
        return [*popping, "\x1b[=0u"] if self._is_keyboard_set[on_alternate] else popping

    def _note_key_option(self, numbers: str, final: str) -> None:
        number, *values = numbers.replace(":", ";").split(";")
        number = number.lstrip("0") or "0"
        option = number + ("f" if final == "f" else "m")
        if not values and final != "n":
            self._key_options.discard(option)
        elif number in KEY_OPTIONS:
            self._key_options.add(option)
