"""The types of settings: how each is written, on the command line and in a file, and which value that means.

A type parses the text of an option, a variable, or a string in a file (`parse`), and reads what else a file can say
(`read`). `tools/shared_files.py` makes completions and schemas from the same types.
"""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.model import BY_DEFAULT, RO, RW, Port
from claudebox.record import Generic
from claudebox.settings import Amount, EnvWish, MountWish, Value, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeVar

    from claudebox.settings.documents import Place

    T = TypeVar("T")
    T_co = TypeVar("T_co", covariant=True)
else:
    T = T_co = None

VALUE = "value"  # the last one wins
LIST = "list"  # each value adds to those before
MODE = "mode"  # does something else instead of starting claude
SWITCH = "switch"
COMMAND = "command"  # takes the rest of the line
OPERAND = "operand"  # says what a mode works on

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
MOST_DIGITS = 15  # of which a float loses none
LAST_PORT = 65535
KEYS_OF_A_MOUNT = ("host", "sandbox", "mode", "optional")


class Type(Generic[T_co]):
    """How a setting is written, and what its value is once all that was said is merged."""

    kind = VALUE
    default: T_co  # the value if nothing was said
    metavar = ""
    shape = "a string"  # how a file says it
    shapes = "an array of strings"  # how a file says a list of it
    example: object = "…"
    examples: object = ("…", "…")
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()  # that a value can be, or begin with
    is_path = False  # whether variables have a meaning in a file
    repeats = False  # whether the same value twice is not the same as once

    def parse(self, word: Word, _: str) -> Value:
        """The value that a text means for the setting of this name. Raises a Problem if it means none."""
        return word

    def read(self, place: Place) -> Value:
        """The value at a place of a file. Raises a Problem if there is another type or text."""
        return place.parse(place.text())

    def read_all(self, place: Place) -> list[Value]:
        """The values that the setting has there."""
        return [self.read(place)]

    def read_list(self, place: Place) -> list[Value]:
        """The same for a list of this type."""
        return [self.read(element) for element in place.elements(self.shapes)]

    def lowers(self, _value: Value, _known: object) -> bool:
        """Whether the value gives no more than the one that is known, if the setting is one that takes away."""
        return True


class List(Type[tuple[T, ...]]):
    """Any number of values of a type: each adds to those before."""

    kind = LIST
    default = ()

    def __init__(self, element: Type[T]) -> None:
        self.element = element
        self.metavar, self.words = element.metavar, element.words
        self.shape, self.example = element.shapes, element.examples
        self.is_path, self.repeats = element.is_path, element.repeats

    def parse(self, word: Word, name: str) -> Value:
        return self.element.parse(word, name)

    def read_all(self, place: Place) -> list[Value]:
        return self.element.read_list(place)


class Mode(Type[None]):
    """No value: the option does something else instead of starting claude. One of these words may follow it."""

    kind = MODE

    def __init__(self, *words: str) -> None:
        self.words = words


class Switch(Mode):
    """No value."""

    kind = SWITCH


class Command(Mode):
    """The rest of the line."""

    kind = COMMAND


class Operand(Mode):
    """What a mode works on."""

    kind = OPERAND


class Text(Type[Word]):
    """Any text, as it is."""


class Argument(Text):
    """A word for claude, which may be anything."""

    repeats = True

    def read(self, place: Place) -> Value:
        return place.parse(place.text(is_free=True))


class VariableName(Text):
    """The name of a variable."""

    metavar = "NAME"

    def parse(self, word: Word, _: str) -> Value:
        if not is_variable_name(word.text):
            raise _bad_name(word, word.text, "NAME")
        return word


class PassedVariable(VariableName):
    """The name of a variable that enters with the value that the host has."""

    def parse(self, word: Word, name: str) -> Value:
        super().parse(word, name)
        return EnvWish(word.text, None, word.origin)


class Variable(Type[EnvWish]):
    """A variable, perhaps with its value. A file has a table of names and values."""

    metavar = "NAME[=VALUE]"
    shapes = "a table of strings"
    examples = {"NAME": "value"}  # noqa: RUF012  (nobody changes it)

    def parse(self, word: Word, _: str) -> Value:
        name, separator, value = word.text.partition("=")
        if not is_variable_name(name):
            raise _bad_name(word, name, self.metavar)
        return EnvWish(name, value if separator else None, word.origin)

    def read_list(self, place: Place) -> list[Value]:
        return [self._read_pair(place.at(name), name) for name in place.expect(dict, self.shapes)]

    def _read_pair(self, pair: Place, name: str) -> Value:
        if name in pair.document.table.by_key:  # it would be lost
            hint = "move it out of there; a line in [brackets] takes all that follows it"
            raise pair.problem(f"`{name}` is a setting, but it is inside `{pair.path[0]}`", hint)
        if not is_variable_name(name):
            raise pair.problem(f"{pair.label} is not a variable name", "use letters, digits and _")
        value = pair.text(is_free=True)
        pair.refuse_secret(name, value)
        return EnvWish(name, value, pair.origin)


class Path(Text):
    """A path in which `~` and variables have a meaning. Only who uses it knows whose home `~` is."""

    metavar = "PATH"
    is_path = True


class Program(Type[Word | None]):
    """The path of a program on the host."""

    default = None
    metavar = "PATH"
    is_path = True


class ProjectPath(Text):
    """A path that is opened in the project. A variable that is not set ("$GONE") must not mean the whole of it."""

    metavar = "PATH"


class Choice(Type[Word]):
    """One of a few words, of which each gives less than the one before it."""

    metavar = "HOW"

    def __init__(self, *choices: str, default: str) -> None:
        self.choices = self.words = choices
        self.example = choices[-1]
        self.default = Word(default, BY_DEFAULT)

    def parse(self, word: Word, name: str) -> Value:
        if word.text not in self.choices:
            from claudebox.settings.mistakes import REMOVED

            *others, last = self.choices
            what = f"{word.origin.shown}: `{word.text}` is not a value of {name}"
            raise Problem(what, REMOVED.get(f"--{name} {word.text}") or f"{', '.join(others)} or {last}")
        return word

    def lowers(self, value: Value, known: object) -> bool:
        assert isinstance(value, Word)
        assert isinstance(known, Word)
        return self.choices.index(value.text) >= self.choices.index(known.text)


class Quantity(Type[Amount | None]):
    """An amount of something. With less than the least, not even bwrap starts, or programs cannot work."""

    default = None

    def __init__(self, example: str, least: int, *, unit: int = 1, is_size: bool = False) -> None:
        self.example = example
        self.least = least
        self.unit = unit
        self.is_size = is_size  # a letter may say the unit, as in 4G
        self.metavar = "SIZE" if is_size else "NUMBER"

    def parse(self, word: Word, name: str) -> Value:
        text, unit = word.text, self.unit
        if self.is_size and text[-1:].upper() in UNITS:
            text, unit = text[:-1], UNITS[text[-1:].upper()]
        if not _is_number(text.replace(".", "", 1)):
            what = f"{word.origin.shown}: `{word.text}` is not an amount of {'memory' if self.is_size else name}"
            raise Problem(what, f"for example: {self.example}")
        number = round(float(text) * unit)
        if number < self.least:
            raise Problem(f"{word.origin.shown}: `{word.text}` is too little to start anything", f"try {self.example}")
        return Amount(word.text, number, word.origin)

    def lowers(self, value: Value, known: object) -> bool:
        assert isinstance(value, Amount)
        return not isinstance(known, Amount) or value.number <= known.number


class Limit(Type[Amount]):
    """The most of one of several things: `requests=500`."""

    metavar = "WHAT=N"

    def __init__(self, *things: str) -> None:
        self.things = things
        self.words = tuple(f"{thing}=" for thing in things)

    def parse(self, word: Word, _: str) -> Value:
        thing, _, number = word.text.partition("=")
        if thing not in self.things or not _is_number(number) or int(number) == 0:
            *others, last = self.things
            what = f"{word.origin.shown}: `{word.text}` is no limit"
            raise Problem(what, f"{', '.join(others)} or {last}: {self.things[0]}=500")
        return Amount(word.text, int(number), word.origin, of=thing)


class PortNumber(Type[Port]):
    """A port; or two, of which the first is the host's, and the second the box's."""

    shapes = "an array of ports"
    examples = (8080,)

    def __init__(self, *, is_pair: bool = False) -> None:
        self.is_pair = is_pair
        self.metavar = "PORT[:PORT]" if is_pair else "PORT"

    def parse(self, word: Word, _: str) -> Value:
        host, separator, box = word.text.partition(":")
        numbers = [port_number(part) for part in ((host, box) if separator else (host,))]
        if not all(numbers) or (separator and not self.is_pair):
            raise Problem(f"{word.origin.shown}: `{word.text}` is not a port", f"{self.metavar}, 1 to {LAST_PORT}")
        return Port(numbers[0], numbers[-1], word.origin)

    def read(self, place: Place) -> Value:
        if self.is_pair:
            return place.parse(str(place.expect((int, str), 'an integer or a string "HOST:BOX"')))
        return place.parse(str(place.expect(int, "an integer")))


class Mounted(Type[MountWish]):
    """A path to show in the box, perhaps at another place there."""

    metavar = "PATH[:DEST]"
    shapes = "an array of tables"
    examples = ({"host": "~/notes"},)

    def __init__(self, access: str) -> None:
        self.access = access

    def parse(self, word: Word, _: str) -> Value:
        source, separator, destination = word.text.rpartition(":")
        if not separator or not destination.startswith(("/", "~")):
            source, destination = word.text, ""
        if not source:
            shown = word.origin.shown
            raise Problem(f"{shown} needs a path", f"{shown} PATH or {shown} PATH:DEST")
        return MountWish(self.access, source, destination, word.origin)

    def read(self, place: Place) -> Value:
        keys = place.expect(dict, "a table")
        if unknown := [key for key in keys if key not in KEYS_OF_A_MOUNT]:
            key = place.at(unknown[0])
            raise key.problem(f"unknown key {key.label}", f"a mount has {', '.join(KEYS_OF_A_MOUNT)}")
        if "host" not in keys:
            raise place.problem("this mount has no `host`", place.pair("host", "~/notes"))
        mode = place.at("mode").text() if "mode" in keys else RO
        if mode not in (RO, RW):
            raise place.at("mode").problem(f"the mode of a mount is {RO} or {RW}", place.pair("mode", RO))
        return MountWish(
            access=mode,
            source=place.at("host").text(),
            destination=place.at("sandbox").text() if "sandbox" in keys else "",
            origin=place.origin,
            is_optional="optional" in keys and place.at("optional").expect(bool, "true or false"),
        )


def is_variable_name(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def _bad_name(word: Word, name: str, usage: str) -> Problem:
    return Problem(f"{word.origin.shown}: `{name}` is not a variable name", f"use letters, digits and _: {usage}")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS


def port_number(text: str) -> int:
    """The number of a port; 0 if the text is not one."""
    return int(text) if _is_number(text) and int(text) <= LAST_PORT else 0


def variables(text: str) -> Iterator[tuple[str, str]]:
    """Each `$NAME` and `${NAME}` of a text: the name, "" if there is none, and what follows until the next one."""
    for rest in text.split("$")[1:]:
        if rest.startswith("{"):
            name, closing, after = rest[1:].partition("}")
            yield name if closing else "", after
        else:
            end = next((at for at, letter in enumerate(rest) if not (letter.isalnum() or letter == "_")), len(rest))
            yield rest[:end], rest[end:]


def expand(text: str, where: str, environ: dict[str, str]) -> str:
    """The text with the values of its variables."""
    pieces = [text.partition("$")[0]]
    for name, after in variables(text):
        if name not in environ:
            raise Problem(f"{where}: ${name} is not set", f"export {name}=…, or write the path out")
        pieces += [environ[name], after]
    return "".join(pieces)
