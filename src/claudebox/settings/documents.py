"""Parses TOML and JSON with the line of every key, so that a message can show where something is written.

The parsers of the standard library do not tell lines, so a scanner goes over the text first. It understands every
valid file. It also gets to the end of every other one, and leaves it to the parser to say what is wrong there. What
would keep a parser busy for long is refused here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from claudebox.errors import Problem
from claudebox.host.secrets import looks_secret, secret_value
from claudebox.model import Origin
from claudebox.record import Record
from claudebox.settings.table import BY_KEY

Path = tuple[str | int, ...]

LARGEST_FILE_BYTES = 1 << 18
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_WORD_SHOWN = 40  # characters of a word from the file, in a message
LONGEST_ROW_SEARCHED = 8192  # characters; a longer row is not searched for secrets, so nothing of it is shown
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

    file: str  # as people see it
    value: dict[str, Any]
    text: str
    lines: dict[Path, int]
    is_json: bool
    is_project: bool = False  # whether it is the project's own file

    def line_of(self, path: Path) -> int:
        """The line of a key or an element; if it has none, that of whatever contains it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def origin_of(self, path: Path) -> Origin:
        return Origin.of_file(self.file, self.line_of(path), is_project=self.is_project)

    def problem(self, path: Path, what: str, hint: str) -> Problem:
        return problem_at(self.file, self.text, self.line_of(path), what, hint)


def parse(content: bytes, file: str, *, is_json: bool, is_project: bool = False) -> Document:
    """Parse a file. Raises a Problem with file and line unless the content is a table of TOML or an object of JSON."""
    text = _decoded(content, file)
    scanner = _Scanner(text, file, is_json=is_json)
    value = (_json_value if is_json else _toml_value)(text, file, scanner.repeated)
    if not isinstance(value, dict):
        first = len(text) - len(text.lstrip())
        line = text.count("\n", 0, first) + 1
        raise problem_at(file, text, line, "the file is not an object", 'all of it has to be inside { "key": … }')
    return Document(file, value, text, scanner.lines, is_json, is_project)


def problem_at(file: str, text: str, line: int, what: str, hint: str, column: int = 0) -> Problem:
    """A Problem that shows the line."""
    return Problem(f"{file}:{line}: {what}", hint, excerpt=_excerpt(text, line, column))


def shown(word: str) -> str:
    """A word from the file as part of a message, which never shows a secret."""
    if looks_secret("", word):
        return "`…`"
    return f"`{word}`" if len(word) <= LONGEST_WORD_SHOWN else f"`{word[: LONGEST_WORD_SHOWN - 1]}…`"


def _excerpt(text: str, line: int, column: int) -> str:
    row = text.split("\n", line)[line - 1] if line <= text.count("\n") + 1 else ""
    row = _without_secrets(row).strip() if len(row) <= LONGEST_ROW_SEARCHED else ""
    return "…" + row[column - FAR_RIGHT // 2 :] if FAR_RIGHT < column <= len(row) else row


def _without_secrets(row: str) -> str:
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
            name = "" if word in BY_KEY else word  # `auth` is no password
    result = "".join(pieces)
    return "…" if secret_value(result) else result


def _decoded(content: bytes, file: str) -> str:
    if len(content) > LARGEST_FILE_BYTES:
        line = content.count(b"\n", 0, LARGEST_FILE_BYTES) + 1
        hint = "settings are much smaller: is this the right file?"
        raise problem_at(file, "", line, f"the file is larger than {LARGEST_FILE_BYTES >> 10} KiB", hint)
    try:
        return content.removeprefix(BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        text = content.decode(errors="surrogateescape")
        what = f"byte 0x{content[error.start]:02x} is not UTF-8"
        raise problem_at(file, text, line, what, "save the file as UTF-8") from None


def _toml_value(text: str, file: str, repeated: Repeated | None) -> object:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        reason, line, column = _toml_place(str(error), text)
        if repeated and repeated.line <= line:
            raise _set_already(text, file, repeated) from None
        hint = AGAIN_HINT if reason.startswith("cannot ") else TOML_HINT
        raise problem_at(file, text, line, f"not valid TOML: {reason}", hint, column) from None


def _toml_place(message: str, text: str) -> tuple[str, int, int]:
    """Reason, line and column from a message such as `Invalid value (at line 3, column 7)`."""
    reason, _, place = message.rpartition(" (at ")
    words = place.rstrip(")").replace(",", "").split()
    match words:
        case ["line", line, "column", column] if line.isdecimal() and column.isdecimal():
            return _as_clause(reason), int(line), int(column)
        case ["end", "of", "document"]:
            return _as_clause(reason), _last_line(text), 0
    return _as_clause(message), 1, 0


def _json_value(text: str, file: str, repeated: Repeated | None) -> object:
    import json

    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason, line = getattr(error, "msg", str(error)), min(getattr(error, "lineno", 1), _last_line(text))
        what, column = f"not valid JSON: {_as_clause(reason)}", getattr(error, "colno", 0)
        raise problem_at(file, text, line, what, JSON_HINT, column) from None
    if repeated:
        raise _set_already(text, file, repeated)
    return value


def _last_line(text: str) -> int:
    """The number of the last line that is not blank."""
    return text.rstrip().count("\n") + 1


def _as_clause(reason: str) -> str:
    if reason.endswith("character '\\n'"):
        return "a text has no closing quote"
    reason = reason if len(reason) <= 2 * LONGEST_WORD_SHOWN else reason[: 2 * LONGEST_WORD_SHOWN - 1] + "…"
    return reason[:1].lower() + reason[1:]


def _set_already(text: str, file: str, repeated: Repeated) -> Problem:
    name = shown(".".join(str(part) for part in repeated.path if isinstance(part, str)))
    where = f"on line {repeated.first}" if repeated.first != repeated.line else "on the same line"
    return problem_at(file, text, repeated.line, f"{name} is set already, {where}", "keep one of them")


class Repeated(Record):
    """A key that is set twice."""

    path: Path
    first: int
    line: int


def tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """The kind and the text of every token, and the line that it starts on."""
    line = 1
    for match in re.finditer(TOKENS, text, re.VERBOSE | re.DOTALL):
        yield match.lastgroup or WORD, match.group(), line
        line += match.group().count("\n")


class _Scanner:
    """Goes through the tokens once and notes the line of every key and element."""

    def __init__(self, text: str, file: str, *, is_json: bool) -> None:
        self.text, self.file, self.is_json = text, file, is_json
        self.lines: dict[Path, int] = {}
        self.explicit: dict[Path, int] = {}
        self.repeated: Repeated | None = None  # the first one
        self.elements: dict[Path, int] = {}  # how many tables each array of tables has so far
        self.table: Path = ()  # of the latest header
        self.around: list[tuple[Path, bool]] = []  # open brackets: the path before each, and whether it is an array
        self.path: Path = ()  # of the value that comes next, or is just read
        self.key: list[str] = []
        self.key_line = 1
        self.is_key = not is_json  # whether a key comes next, or is just read
        self.brackets = 0  # of a header
        for kind, word, line in tokens(text):
            if kind == NEWLINE and not is_json and not self.around:
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
        import json

        try:
            return str(json.loads(word) if self.is_json else tomllib.loads(f"word = {word}")["word"])
        except ValueError:
            return word

    def _note(self, path: Path, line: int, above: int = 0) -> None:
        if len(path) > DEEPEST:
            raise self._excess(line, f"more than {DEEPEST} levels of tables and arrays")
        for length in range(above + 1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _say(self, path: Path, line: int, above: int = 0) -> None:
        self._note(path, line, above)
        self.path = path
        if path in self.explicit:
            self.repeated = self.repeated or Repeated(path, self.explicit[path], line)
        else:
            self.explicit[path] = line

    def _excess(self, line: int, what: str) -> Problem:
        return problem_at(self.file, self.text, line, what, "no settings need that")
