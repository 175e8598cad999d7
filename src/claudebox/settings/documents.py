"""Reads TOML and JSON with the parsers of the standard library, and says where in the file something is wrong.

Those parsers do not tell lines, so a key or an element is looked for in the text when a message or an origin needs its
line. What looks like it in a comment or a longer text may be found instead: then a message points at the wrong line.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any, TypeVar

from claudebox.errors import Problem
from claudebox.host.secrets import looks_secret
from claudebox.model import Origin
from claudebox.record import Record
from claudebox.settings import Value, Word
from claudebox.settings.table import PASS_ENV, Setting, Table

T = TypeVar("T")

LARGEST_FILE_BYTES = 1 << 16
MOST_DOTS = 200  # in a key: the time and the memory of `tomllib` grow with their square
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_WORD_SHOWN = 40  # characters of a word from the file, in a message
TYPES = (
    (str, "a string"),
    (bool, "true or false"),
    (int, "an integer"),
    (float, "a float"),
    (dict, "a table"),
    (list, "an array"),
    (type(None), "null"),
)

TOML_HINT = 'texts need quotes: key = "value"; each [, { and " needs its end'
AGAIN_HINT = "it was set before, perhaps written in another way: keep one of them"
JSON_HINT = "names and texts need double quotes; no comma after the last; no comments"


class Document(Record):
    """What a file says."""

    table: Table  # of the settings that it can say
    file: str  # as people see it
    text: str
    is_json: bool
    is_project: bool  # whether it is the project's own file
    value: dict[str, Any] = {}  # noqa: RUF012  (nobody changes it)

    def place(self, key: str, setting: Setting[object] | None = None) -> Place:
        """The value of a key of the file itself."""
        return Place(self, (), self.value, 0, setting).at(key)

    def find(self, pattern: str, start: int) -> int:
        """The position at which this is found; -1 if it is not."""
        found = re.compile(pattern, re.MULTILINE).search(self.text, start)
        return found.start() if found else -1

    def line_at(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1

    def problem(self, line: int, what: str, hint: str) -> Problem:
        return Problem(f"{self.file}:{line}: {what}", hint)


def parse(table: Table, content: bytes, file: str, *, is_json: bool, is_project: bool = False) -> Document:
    """Parse a file. Raises a Problem unless the content is a table of TOML or an object of JSON."""
    text = content.removeprefix(BYTE_ORDER_MARK).decode(errors="surrogateescape")
    document = Document(table, file, text, is_json, is_project)
    if len(content) > LARGEST_FILE_BYTES:
        what = f"the file is larger than {LARGEST_FILE_BYTES >> 10} KiB"
        raise document.problem(1, what, "settings are much smaller: is this the right file?")
    if wrong := next((character for character in text if "\udc80" <= character <= "\udcff"), ""):
        what = f"byte 0x{ord(wrong) - 0xDC00:02x} is not UTF-8"
        raise document.problem(document.line_at(text.index(wrong)), what, "save the file as UTF-8")
    value = (_json_value if is_json else _toml_value)(document)
    if not isinstance(value, dict):
        line = document.line_at(len(text) - len(text.lstrip()))
        raise document.problem(line, "the file is not an object", 'all of it has to be inside { "key": … }')
    return document.replace(value=value)


def shown(word: str) -> str:
    """A word from the file as part of a message, which never shows a secret."""
    if looks_secret("", word):
        return "`…`"
    return f"`{word}`" if len(word) <= LONGEST_WORD_SHOWN else f"`{word[: LONGEST_WORD_SHOWN - 1]}…`"


class Place(Record):
    """A value in a file. What a type reads there, it reads through this, so that messages name the line."""

    document: Document
    path: tuple[str | int, ...]
    value: Any
    position: int  # in the text
    setting: Setting[object] | None  # None: a title of the file

    @property
    def line(self) -> int:
        return self.document.line_at(self.position)

    @property
    def origin(self) -> Origin:
        return Origin.of_file(self.document.file, self.line, is_project=self.document.is_project)

    def at(self, key: str) -> Place:
        """The value of a key in this table."""
        begin = r"(?<![\w-])" if self.path or self.document.is_json else r"^[ \t]*(\[\[?[ \t]*)?"
        position = self.document.find(begin + rf"""["']?{re.escape(key)}["']?\s*[=:.\]]""", self.position)
        return self.replace(path=(*self.path, key), value=self.value[key], position=max(position, self.position))

    def elements(self, expected: str) -> list[Place]:
        """The elements of this array, each behind the one before it."""
        places: list[Place] = []
        position = self.position
        header = rf"""^[ \t]*\[\[[ \t]*["']?{re.escape(str(self.path[-1]))}["']?[ \t]*\]\]"""
        is_headed = self.document.find(header, position) == position
        for number, value in enumerate(self.expect(list, expected)):
            if is_headed and number:
                position = max(position, self.document.find(header, position + 1))
            elif not is_headed:
                position = self._find_element(value, position + bool(number))
            places.append(self.replace(path=(*self.path, number), value=value, position=position))
        return places

    def _find_element(self, value: object, start: int) -> int:
        while isinstance(value, dict | list) and value:
            value = next(iter(value.values() if isinstance(value, dict) else value))
        written = json.dumps(value, ensure_ascii=False, default=str)
        found = self.document.find(f"{re.escape(written)}|'{re.escape(str(value))}'", start)
        return max(found, start)

    def expect(self, kind: type[T] | tuple[type[T], ...], expected: str) -> T:
        """The value, which has to be of this type."""
        # In Python, true is an integer.
        if isinstance(self.value, kind) and (kind is bool or not isinstance(self.value, bool)):
            return self.value
        found = next((title for kinds, title in TYPES if isinstance(self.value, kinds)), "a date or time")
        raise self.problem(f"{self.label} has to be {expected}, not {found}", self.example)

    def text(self, *, is_free: bool = False) -> str:
        """A text. A free one may be empty and have several lines; none may have what no program can get."""
        text = self.expect(str, "a string")
        if not text and not is_free:
            raise self.problem(f"{self.label} is empty", f"fill it or take it out: {self.example}")
        for character in text:
            # NUL would end an argument, and half of a surrogate pair, which JSON can spell, is no character.
            is_impossible = character == "\0" or "\ud800" <= character <= "\udfff"
            is_control = character < " " or "\x7f" <= character <= "\x9f"
            if is_impossible or (is_control and not is_free):
                what = f"{self.label} holds the character U+{ord(character):04X}"
                raise self.problem(what, "write it without that character")
        return text

    def parse(self, text: str) -> Value:
        """The value that a text means for the setting."""
        assert self.setting is not None
        origin = self.origin
        try:
            return self.setting.type.parse(Word(text, origin), self.setting.name)
        except Problem as problem:
            what = problem.message.removeprefix(f"{origin.shown}: ").replace(f"`{text}`", shown(text))
            raise self.problem(what, problem.hint) from None

    def refuse_secret(self, name: str, value: str) -> None:
        if reason := looks_secret(name, value):
            by_name = self.pair(PASS_ENV.key, [name])
            hint = f"no secrets in files: take it out and pass it through by name:\n      {by_name}"
            raise self.problem(f"{shown(name)} looks like a secret ({reason})", hint)

    def problem(self, what: str, hint: str) -> Problem:
        return self.document.problem(self.line, what, hint)

    @property
    def label(self) -> str:
        """What a message calls the place: `hide`, an element of `hide`, `env.NAME`, `host` of a mount."""
        *above, last = self.path
        if isinstance(last, int):
            return f"an element of `{above[0]}`"
        if not above:
            return f"`{last}`"
        return f"{shown(last)} of a mount" if len(above) > 1 else shown(f"{above[0]}.{last}")

    @property
    def example(self) -> str:
        """An example of what belongs there."""
        first, last = str(self.path[0]), self.path[-1]
        if len(self.path) > 1 and isinstance(last, str):
            return self.pair(last, {"mode": "ro", "optional": True}.get(last, "…"))
        return self.pair(first, self.setting.type.example if self.setting else "…")

    def pair(self, key: str, value: object) -> str:
        """A key and a value as the file's language writes them."""
        if self.document.is_json:
            return f"{self.notation(key)}: {self.notation(value)}"
        return f"{key} = {self.notation(value)}"

    def notation(self, value: object) -> str:
        if isinstance(value, list | tuple):
            return "[" + ", ".join(self.notation(element) for element in value) + "]"
        if isinstance(value, dict):
            return "{ " + ", ".join(self.pair(key, inner) for key, inner in value.items()) + " }"
        return json.dumps(value, ensure_ascii=False)


def _toml_value(document: Document) -> object:
    for number, row in enumerate(document.text.split("\n"), 1):
        if row.partition("=")[0].count(".") > MOST_DOTS:
            raise document.problem(number, f"there are more than {MOST_DOTS} dots", "no settings need that")
    try:
        return tomllib.loads(document.text)
    except RecursionError:
        raise _too_deep(document) from None
    except ValueError as error:
        # Such as: Invalid value (at line 3, column 7)
        reason, _, where = str(error).partition(" (at ")
        line = re.match(r"line (\d+)", where)
        hint = AGAIN_HINT if reason.startswith(("Cannot ", "Duplicate ")) else TOML_HINT
        what = f"not valid TOML: {_as_clause(reason)}"
        raise document.problem(int(line[1]) if line else _last_line(document), what, hint) from None


def _json_value(document: Document) -> object:
    def refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for name, inner in pairs:
            if name in value:
                line = document.line_at(max(0, document.text.rfind(json.dumps(name, ensure_ascii=False))))
                raise document.problem(line, f"{shown(name)} is set twice", "keep one of them")
            value[name] = inner
        return value

    try:
        return json.loads(document.text, object_pairs_hook=refuse_repeated)
    except RecursionError:
        raise _too_deep(document) from None
    except ValueError as error:
        reason = getattr(error, "msg", str(error))
        line = min(getattr(error, "lineno", 1), _last_line(document))
        raise document.problem(line, f"not valid JSON: {_as_clause(reason)}", JSON_HINT) from None


def _too_deep(document: Document) -> Problem:
    return document.problem(1, "tables and arrays are nested too deep", "no settings need that")


def _last_line(document: Document) -> int:
    """The number of the last line that is not blank."""
    return document.line_at(len(document.text.rstrip()))


def _as_clause(reason: str) -> str:
    if reason.endswith("character '\\n'"):
        return "a text has no closing quote"
    reason = reason if len(reason) <= 2 * LONGEST_WORD_SHOWN else reason[: 2 * LONGEST_WORD_SHOWN - 1] + "…"
    return reason[:1].lower() + reason[1:]
