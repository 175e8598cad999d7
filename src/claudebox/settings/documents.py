"""Parses TOML and JSON with the line of every key, so that a message can show where something is written.

The parsers of the standard library do not tell lines, so a scanner goes over the text first. It understands every
valid file. It also gets to the end of every other one, and leaves it to the parser to say what is wrong there. What
would keep a parser busy for long is refused here. A `Place` is a value in such a file, as types of settings read it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any, TypeVar

from claudebox.errors import Problem
from claudebox.host.secrets import looks_secret, secret_value
from claudebox.model import Origin
from claudebox.record import Record
from claudebox.settings import Value, Word
from claudebox.settings.table import ENV, PASS_ENV, Setting, Table
from claudebox.settings.types import is_variable_name, variables

T = TypeVar("T")
Path = tuple[str | int, ...]

LARGEST_FILE_BYTES = 1 << 18
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_WORD_SHOWN = 40  # characters of a word from the file, in a message
LONGEST_ROW_SEARCHED = 8192  # characters; a longer row is not searched for secrets, so nothing of it is shown
KEYS_ON_A_LINE = 5
INDENT = " " * len("hint: ")
TYPES = (
    (str, "a string"),
    (bool, "true or false"),
    (int, "an integer"),
    (float, "a float"),
    (dict, "a table"),
    (list, "an array"),
    (type(None), "null"),
)
FAR_RIGHT = 60  # a column beyond which the beginning of the row is cut off
DEEPEST = 16
LONGEST_NUMBER = 64

TOML_HINT = 'texts need quotes: key = "value"; each [, { and " needs its end'
AGAIN_HINT = "it was set before, perhaps written in another way: keep one of them"
JSON_HINT = "names and texts need double quotes; no comma after the last; no comments"

NEWLINE = "newline"
BLANK = "blank"
TEXT = "text"
MARK = "mark"
WORD = "word"

# The tokens of TOML and JSON, which agree where both have them. A text without its closing quote is a token, too, so
# that nothing is tried twice. (Possessive quantifiers would do that, but early versions of Python 3.11 get them wrong.)
TOKENS = r'''
    (?P<newline> \n )
  | (?P<blank> [ \t\r]+ | \#[^\n]* )
  | (?P<text> """ (?: [^"\\]+ | \\. | "{1,2}(?!") )* (?: "{3,5} )?
            | \'\'\' (?: [^\']+ | \'{1,2}(?!\') )* (?: \'{3,5} )?
            | " (?: [^"\\\n]+ | \\[^\n] )* "?
            | \' [^\'\n]* \'? )
  | (?P<mark> [][{}=,.:] )
  | (?P<word> [^][{}=,.:\#"\'\s]+ | . )
'''


class Document(Record):
    """What a file says, and where."""

    table: Table  # of the settings that it can say
    file: str  # as people see it
    text: str
    is_json: bool
    is_project: bool  # whether it is the project's own file
    value: dict[str, Any] = {}  # noqa: RUF012  (nobody changes it)
    lines: dict[Path, int] = {}  # noqa: RUF012

    def line_of(self, path: Path) -> int:
        """The line of a key or an element; if it has none, that of whatever contains it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def origin_of(self, path: Path) -> Origin:
        return Origin.of_file(self.file, self.line_of(path), is_project=self.is_project)

    def problem(self, line: int, what: str, hint: str, column: int = 0) -> Problem:
        """A Problem that shows the line."""
        return Problem(f"{self.file}:{line}: {what}", hint, excerpt=self._excerpt(line, column))

    def _excerpt(self, line: int, column: int) -> str:
        row = self.text.split("\n", line)[line - 1] if line <= self.text.count("\n") + 1 else ""
        row = self._without_secrets(row).strip() if len(row) <= LONGEST_ROW_SEARCHED else ""
        return "…" + row[column - FAR_RIGHT // 2 :] if FAR_RIGHT < column <= len(row) else row

    def _without_secrets(self, row: str) -> str:
        """The row with `…` for every secret: a message may end up in a log."""
        pieces: list[str] = []
        name, is_value = "", False
        for kind, piece, _ in tokens(row):
            word = piece.strip("\"'")
            is_secret = kind in (TEXT, WORD) and looks_secret(name if is_value else "", word)
            pieces.append("…" if is_secret else piece)
            if kind == MARK and piece in "=:,{}":
                is_value = piece in "=:"
            elif kind in (TEXT, WORD) and not is_value:
                name = "" if word in self.table.by_key else word  # `auth` is no password
        result = "".join(pieces)
        return "…" if secret_value(result) else result

    @property
    def last_line(self) -> int:
        """The number of the last line that is not blank."""
        return self.text.rstrip().count("\n") + 1


def parse(table: Table, content: bytes, file: str, *, is_json: bool, is_project: bool = False) -> Document:
    """Parse a file. Raises a Problem with file and line unless the content is a table of TOML or an object of JSON."""
    if len(content) > LARGEST_FILE_BYTES:
        line = content.count(b"\n", 0, LARGEST_FILE_BYTES) + 1
        what = f"the file is larger than {LARGEST_FILE_BYTES >> 10} KiB"
        hint = "settings are much smaller: is this the right file?"
        raise Document(table, file, "", is_json, is_project).problem(line, what, hint)
    text = content.removeprefix(BYTE_ORDER_MARK).decode(errors="surrogateescape")
    document = Document(table, file, text, is_json, is_project)
    if wrong := next((character for character in text if "\udc80" <= character <= "\udcff"), ""):
        what = f"byte 0x{ord(wrong) - 0xDC00:02x} is not UTF-8"
        raise document.problem(text.count("\n", 0, text.index(wrong)) + 1, what, "save the file as UTF-8")
    scanner = _Scanner(document)
    value = (_json_value if is_json else _toml_value)(document, scanner.repeated)
    if not isinstance(value, dict):
        line = text.count("\n", 0, len(text) - len(text.lstrip())) + 1
        raise document.problem(line, "the file is not an object", 'all of it has to be inside { "key": … }')
    return document.replace(value=value, lines=scanner.lines)


def shown(word: str) -> str:
    """A word from the file as part of a message, which never shows a secret."""
    if looks_secret("", word):
        return "`…`"
    return f"`{word}`" if len(word) <= LONGEST_WORD_SHOWN else f"`{word[: LONGEST_WORD_SHOWN - 1]}…`"


class Place(Record):
    """A value in a file. What a type reads there, it reads through this, so that messages name the line."""

    document: Document
    path: Path
    setting: Setting[object] | None = None  # None: a title of the file

    @property
    def origin(self) -> Origin:
        return self.document.origin_of(self.path)

    def at(self, part: str | int) -> Place:
        return self.replace(path=(*self.path, part))

    def elements(self, expected: str) -> list[Place]:
        return [self.at(number) for number in range(len(self.value(list, expected)))]

    def value(self, kind: type[T] | tuple[type[T], ...], expected: str) -> T:
        value: object = self.document.value
        for part in self.path:
            value = value[part]  # type: ignore[index]
        # In Python, true is an integer.
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return value
        found = next((title for kinds, title in TYPES if isinstance(value, kinds)), "a date or time")
        raise self.problem(f"{self.label} has to be {expected}, not {found}", self.example)

    def text(self, *, is_free: bool = False) -> str:
        """A text. A free one may be empty and have several lines; none may have what no program can get."""
        text = self.value(str, "a string")
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

    def path_text(self) -> str:
        """A text that may name variables. Their values are found out later."""
        text = self.text()
        if not all(is_variable_name(name) for name, _ in variables(text)):
            what = f"there is no variable name after `$` in {shown(text)}"
            raise self.problem(what, "write $NAME or ${NAME}, as in $HOME/notes")
        return text

    def variable_name(self, name: str) -> str:
        if not is_variable_name(name):
            of_env = self.replace(path=(ENV.key,), setting=ENV)
            hint = f"values belong in {of_env.example}" if "=" in name else "use letters, digits and _"
            raise self.problem(f"{shown(name)} is not a variable name", hint)
        return name

    def one_of(self, *choices: str) -> str:
        word = self.value(str, "a string")
        if word not in choices:
            hint = " or ".join(self.notation(choice) for choice in choices)
            raise self.problem(f"{shown(word)} is not a value of {self.label}", hint)
        return word

    def parse(self, text: str) -> Value:
        """The value that a text means for the setting."""
        assert self.setting is not None
        origin = self.origin
        try:
            return self.setting.type.parse(Word(text, origin), self.setting.name)
        except Problem as problem:
            what = problem.message.removeprefix(f"{origin.shown}: ").replace(f"`{text}`", shown(text))
            raise self.problem(what, problem.hint) from None

    def refuse_unknown(self, known: tuple[str, ...]) -> None:
        """Raise a Problem if a table has other keys."""
        for key in self.value(dict, "a table"):
            if key not in known:
                raise self.at(key).unknown(known)

    def refuse_setting(self) -> None:
        """Raise a Problem if a setting stands below a line such as [env], where it would be lost."""
        if self.path[-1] in self.document.table.by_key:
            raise self.misplaced()

    def refuse_secret(self, name: str, value: str) -> None:
        if reason := looks_secret(name, value):
            by_name = INDENT + self.pair(PASS_ENV.key, [name])
            hint = f"no secrets in files: take it out and pass it through by name:\n{by_name}"
            raise self.problem(f"{shown(name)} looks like a secret ({reason})", hint)

    def unknown(self, known: tuple[str, ...]) -> Problem:
        from difflib import get_close_matches

        from claudebox.settings.mistakes import REMOVED

        key = str(self.path[-1])
        # `path` in a mount is more likely meant to be `host`.
        if len(self.path) > 1 and key in self.document.table.by_key and key != "path":
            return self.misplaced()
        near = get_close_matches(key, known, 1)
        others = f"did you mean `{near[0]}`?" if near else "these are known:\n" + _rows(known)
        return self.problem(f"unknown key {shown(key)}", REMOVED.get(f"{key} =") or others)

    def misplaced(self) -> Problem:
        outer, key = self.path[0], self.path[-1]
        if self.document.is_json:
            return self.problem(f"`{key}` is a setting, but it is inside `{outer}`", "move it out of there")
        hint = "a line in [brackets] takes all that follows it: move this one above it"
        return self.problem(f"`{key}` is a setting, but it is below `{outer}`", hint)

    def problem(self, what: str, hint: str) -> Problem:
        return self.document.problem(self.document.line_of(self.path), what, hint)

    @property
    def label(self) -> str:
        """What a message calls the place: `hide`, an element of `hide`, `env.NAME`, `host` of a mount."""
        *above, last = self.path
        if isinstance(last, int):
            return f"an element of `{above[0]}`"
        if not above:
            return f"`{last}`"
        return f"`{last}` of a mount" if len(above) > 1 else shown(f"{above[0]}.{last}")

    @property
    def example(self) -> str:
        """An example of what belongs there."""
        first, last = str(self.path[0]), self.path[-1]
        if len(self.path) > 1 and isinstance(last, str):
            return self.pair(last, {"mode": "ro", "optional": True}.get(last, "…"))
        if self.setting is None:
            return self.pair(first, "…")
        return self.pair(first, self.setting.type.example)

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


def _rows(words: tuple[str, ...]) -> str:
    starts = range(0, len(words), KEYS_ON_A_LINE)
    return ",\n".join(INDENT + ", ".join(words[start : start + KEYS_ON_A_LINE]) for start in starts)


def _toml_value(document: Document, repeated: Problem | None) -> object:
    try:
        return tomllib.loads(document.text)
    except (ValueError, RecursionError) as error:
        # Such as: Invalid value (at line 3, column 7)
        found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error), re.DOTALL)
        reason, line, column = found.groups() if found else (str(error), 1, 0)
        if repeated:
            raise repeated from None
        hint = AGAIN_HINT if reason.startswith("Cannot ") else TOML_HINT
        what = f"not valid TOML: {_as_clause(reason)}"
        raise document.problem(int(line or document.last_line), what, hint, int(column or 0)) from None


def _json_value(document: Document, repeated: Problem | None) -> object:
    try:
        value: object = json.loads(document.text)
    except (ValueError, RecursionError) as error:
        reason, line = getattr(error, "msg", str(error)), min(getattr(error, "lineno", 1), document.last_line)
        what, column = f"not valid JSON: {_as_clause(reason)}", getattr(error, "colno", 0)
        raise document.problem(line, what, JSON_HINT, column) from None
    if repeated:
        raise repeated
    return value


def _as_clause(reason: str) -> str:
    if reason.endswith("character '\\n'"):
        return "a text has no closing quote"
    reason = reason if len(reason) <= 2 * LONGEST_WORD_SHOWN else reason[: 2 * LONGEST_WORD_SHOWN - 1] + "…"
    return reason[:1].lower() + reason[1:]


def tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """The kind and the text of every token, and the line that it starts on."""
    line = 1
    for match in re.finditer(TOKENS, text, re.VERBOSE | re.DOTALL):
        yield match.lastgroup or WORD, match.group(), line
        line += match.group().count("\n")


class _Scanner:
    """Goes through the tokens once and notes the line of every key and element."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.lines: dict[Path, int] = {}
        self.explicit: dict[Path, int] = {}
        self.repeated: Problem | None = None  # about the first key that is set twice
        self.elements: dict[Path, int] = {}  # how many tables each array of tables has so far
        self.table: Path = ()  # of the latest header
        self.around: list[tuple[Path, bool]] = []  # open brackets: the path before each, and whether it is an array
        self.path: Path = ()  # of the value that comes next, or is just read
        self.key: list[str] = []
        self.key_line = 1
        self.is_key = not document.is_json  # whether a key comes next, or is just read
        self.brackets = 0  # of a header
        for kind, word, line in tokens(document.text):
            if kind == NEWLINE and not document.is_json and not self.around:
                self.key, self.is_key, self.brackets = [], True, 0
            elif kind not in (BLANK, NEWLINE):
                self._take(kind, word, line)

    def _take(self, kind: str, word: str, line: int) -> None:
        # Python refuses to convert such a number, and does not say on which line it is.
        if kind == WORD and len(word) > LONGEST_NUMBER and word[0] in "+-0123456789":
            raise self._excess(line, f"a number of more than {LONGEST_NUMBER} digits")
        if self.is_key:
            self._take_in_key(kind, word, line)
        elif word == ",":
            self._next()
        elif word in ("]", "}"):
            self._close()
        else:
            self._note(self.path, line)  # an element, unless its line is known
            if word in ("[", "{"):
                self._open(is_array=word == "[")

    def _take_in_key(self, kind: str, word: str, line: int) -> None:
        if kind in (TEXT, WORD) and len(self.key) <= DEEPEST:
            self.key_line = self.key_line if self.key else line
            self.key.append(self._unquoted(word) if kind == TEXT else word)
        elif word in ("=", ":"):
            self._say((*self._container(), *self.key), self.key_line, above=len(self._container()))
            self.is_key = False
        elif word == "[" and not self.around:
            self.brackets += 1
        elif word == "]" and self.key:
            self._end_header(line)
        elif word == "}":
            self._close()

    def _container(self) -> Path:
        return self.around[-1][0] if self.around else self.table

    def _open(self, *, is_array: bool) -> None:
        self.around.append((self.path, is_array))
        self.key, self.is_key = [], not is_array
        self.path = (*self.path, 0)

    def _next(self) -> None:
        """Go on after a comma."""
        if self.around and self.around[-1][1]:
            *above, number = self.path
            self.path = (*above, int(number) + 1)
        elif self.around:
            self.key, self.is_key = [], True

    def _close(self) -> None:
        if self.around:
            self.path, _ = self.around.pop()
        self.is_key = False

    def _end_header(self, line: int) -> None:
        """Note `[table]` or `[[array of tables]]`: what follows belongs to it."""
        *above, last = self.key
        path: Path = ()
        for name in above:
            path = self._latest((*path, name))
        path = (*path, last)
        self._note(path, line)
        if self.brackets > 1:
            self.elements[path] = self.elements.get(path, 0) + 1
        self.table = self._latest(path)
        self._say(self.table, line)
        self.is_key = False

    def _latest(self, path: Path) -> Path:
        """The path with the latest element, if it is an array of tables: that is what a header adds to."""
        return (*path, self.elements[path] - 1) if path in self.elements else path

    def _unquoted(self, word: str) -> str:
        if "\\" not in word:
            return word[1:-1]
        try:
            return str(json.loads(word) if self.document.is_json else tomllib.loads(f"word = {word}")["word"])
        except ValueError:
            return word

    def _note(self, path: Path, line: int, above: int = 0) -> None:
        if len(path) > DEEPEST:
            raise self._excess(line, f"more than {DEEPEST} levels of tables and arrays")
        for length in range(above + 1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _say(self, path: Path, line: int, above: int = 0) -> None:
        self._note(path, line, above)
        self.path, is_again = path, path in self.explicit
        first = self.explicit.setdefault(path, line)
        if is_again and not self.repeated:
            name = shown(".".join(str(part) for part in path if isinstance(part, str)))
            where = f"on line {first}" if first != line else "on the same line"
            self.repeated = self.document.problem(line, f"{name} is set already, {where}", "keep one of them")

    def _excess(self, line: int, what: str) -> Problem:
        return self.document.problem(line, what, "no settings need that")
