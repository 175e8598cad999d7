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

from claudebox.model import Origin
from claudebox.problem import Problem
from claudebox.record import Record
from claudebox.settings.table import BY_KEY
from claudebox.trust.secret_values import looks_secret, secret_value

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
END = "end"

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
    scanner = _Scanner(text, is_json=is_json)
    try:
        scanner.scan()
    except Excess as excess:
        raise problem_at(file, text, excess.line, excess.what, "no settings need that") from None
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
    for token in tokens(row):
        word = token.text.strip("\"'")
        is_secret = token.kind in (TEXT, WORD) and looks_secret(name if is_value else "", word)
        pieces.append("…" if is_secret else token.text)
        if token.kind == MARK and token.text in "=:,{}":
            is_value = token.text in "=:"
        elif token.kind in (TEXT, WORD) and not is_value:
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
        reason, line, column = _json_place(error, text)
        raise problem_at(file, text, line, f"not valid JSON: {reason}", JSON_HINT, column) from None
    if repeated:
        raise _set_already(text, file, repeated)
    return value


def _json_place(error: Exception, text: str) -> tuple[str, int, int]:
    reason, line = getattr(error, "msg", str(error)), getattr(error, "lineno", 1)
    return _as_clause(reason), min(line, _last_line(text)), getattr(error, "colno", 0)


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


class Token:
    """A piece of the text, and the line that it starts on. Not a Record: a file may have a quarter of a million."""

    __slots__ = ("kind", "line", "text")

    def __init__(self, kind: str, text: str, line: int) -> None:
        self.kind = kind
        self.text = text
        self.line = line


class Repeated(Record):
    """A key that is set twice."""

    path: Path
    first: int
    line: int


class Excess(Exception):
    """The file has more of something than any settings need."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line
        self.what = what


def tokens(text: str) -> Iterator[Token]:
    line = 1
    for match in re.finditer(TOKENS, text, re.VERBOSE | re.DOTALL):
        yield Token(match.lastgroup or WORD, match.group(), line)
        line += match.group().count("\n")


class _Scanner:
    """Goes through the tokens once and notes the line of every key and element."""

    def __init__(self, text: str, *, is_json: bool) -> None:
        self.is_json = is_json
        meaningless = (BLANK, NEWLINE) if is_json else (BLANK,)
        self.rest = (token for token in tokens(text) if token.kind not in meaningless)
        self.end = Token(END, "", text.count("\n") + 1)
        self.next = next(self.rest, self.end)
        self.lines: dict[Path, int] = {}
        self.explicit: dict[Path, int] = {}
        self.repeated: Repeated | None = None  # the first one
        self.elements: dict[Path, int] = {}  # how many tables each array of tables has so far

    def scan(self) -> None:
        if self.is_json:
            self._value(())
        else:
            self._statements()

    def _statements(self) -> None:
        table: Path = ()
        self._skip_newlines()
        while self.next.kind != END:
            if self.next.text == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip_line()
            self._skip_newlines()

    def _value(self, path: Path) -> None:
        self._skip_newlines()
        if self.next.text == "[":
            self._array(path)
        elif self.next.text == "{":
            self._table(path)
        else:
            self._scalar()

    def _take(self) -> Token:
        token = self.next
        # Python refuses to convert such a number, and does not say on which line it is.
        if token.kind == WORD and len(token.text) > LONGEST_NUMBER and token.text[0] in "+-0123456789":
            raise Excess(token.line, f"a number of more than {LONGEST_NUMBER} digits")
        self.next = next(self.rest, self.end)
        return token

    def _array(self, path: Path) -> None:
        self._take()
        number = 0
        while not self._is_closed():
            self._note((*path, number), self.next.line)
            self._value((*path, number))
            number += 1

    def _table(self, path: Path) -> None:
        self._take()
        while not self._is_closed():
            self._pair(path)

    def _is_closed(self) -> bool:
        """Whether an array or a table ends here. A wrong bracket ends it, too: the parser complains about it."""
        while self.next.kind == NEWLINE or self.next.text == ",":
            self._take()
        if self.next.text in ("]", "}"):
            self._take()
            return True
        return self.next.kind == END

    def _pair(self, table: Path) -> None:
        line = self.next.line
        path = (*table, *self._key())
        self._note(path, line, above=len(table))
        self._say(path, line)
        if self.next.text in ("=", ":"):
            self._take()
            self._value(path)

    def _header(self) -> Path:
        """Scan `[table]` or `[[array of tables]]`, and return the path of what follows."""
        line = self._take().line
        is_array = self.next.text == "["
        if is_array:
            self._take()
        *above, last = self._key()
        path: Path = ()
        for name in above:
            path = self._latest((*path, name))
        path = (*path, last)
        self._note(path, line)
        if is_array:
            self.elements[path] = self.elements.get(path, 0) + 1
        path = self._latest(path)
        self._note(path, line)
        self._say(path, line)
        return path

    def _latest(self, path: Path) -> Path:
        """The path with the latest element, if it is an array of tables: that is what a header adds to."""
        return (*path, self.elements[path] - 1) if path in self.elements else path

    def _key(self) -> list[str]:
        parts = [self._name()]
        while self.next.text == "." and len(parts) <= DEEPEST:
            self._take()
            parts.append(self._name())
        return parts

    def _name(self) -> str:
        """Take whatever stands where a name should be, so that the scan can always go on."""
        if self.next.kind == NEWLINE:
            return ""
        token = self._take()
        return self._unquoted(token.text) if token.kind == TEXT else token.text

    def _unquoted(self, word: str) -> str:
        if "\\" not in word:
            return word[1:-1]
        import json

        try:
            return str(json.loads(word) if self.is_json else tomllib.loads(f"word = {word}")["word"])
        except ValueError:
            return word

    def _scalar(self) -> None:
        """Skip a value, which may consist of several words, as a date does."""
        while self.next.kind not in (NEWLINE, END) and self.next.text not in (",", "]", "}"):
            self._take()

    def _skip_newlines(self) -> None:
        while self.next.kind == NEWLINE:
            self._take()

    def _skip_line(self) -> None:
        while self.next.kind not in (NEWLINE, END):
            self._take()

    def _note(self, path: Path, line: int, above: int = 0) -> None:
        if len(path) > DEEPEST:
            raise Excess(line, f"more than {DEEPEST} levels of tables and arrays")
        for length in range(above + 1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _say(self, path: Path, line: int) -> None:
        if path in self.explicit:
            self.repeated = self.repeated or Repeated(path, self.explicit[path], line)
        else:
            self.explicit[path] = line
