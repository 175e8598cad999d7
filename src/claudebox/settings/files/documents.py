"""Parses TOML and JSON with the line of every key, so that a message can show where something is written."""

from __future__ import annotations

from claudebox.model import Origin
from claudebox.problem import Problem
from claudebox.record import Record
from claudebox.settings.files.lines import MARK, TEXT, WORD, Excess, Lines, json_lines, tokens, toml_lines
from claudebox.settings.table import BY_KEY
from claudebox.trust.secret_values import looks_secret, secret_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from claudebox.settings.files.lines import Path

LARGEST_FILE_BYTES = 1 << 18
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_WORD_SHOWN = 40  # characters of a word from the file, in a message
LONGEST_ROW_SEARCHED = 8192  # characters; a longer row is not searched for secrets, so nothing of it is shown
FAR_RIGHT = 60  # a column beyond which the beginning of the row is cut off

TOML_HINT = 'texts need quotes: key = "value"; each [, { and " needs its end'
AGAIN_HINT = "it was set before, perhaps written in another way: keep one of them"
JSON_HINT = "names and texts need double quotes; no comma after the last; no comments"


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
    try:
        lines = json_lines(text, _unquote_json) if is_json else toml_lines(text, _unquote_toml)
    except Excess as excess:
        raise problem_at(file, text, excess.line, excess.what, "no settings need that") from None
    value = (_json_value if is_json else _toml_value)(text, file, lines)
    if not isinstance(value, dict):
        first = len(text) - len(text.lstrip())
        line = text.count("\n", 0, first) + 1
        raise problem_at(file, text, line, "the file is not an object", 'all of it has to be inside { "key": … }')
    return Document(file, value, text, lines.of, is_json, is_project)


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


def _toml_value(text: str, file: str, lines: Lines) -> object:
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        reason, line, column = _toml_place(str(error), text)
        if lines.repeated and lines.repeated[0].line <= line:
            raise _repeated(text, file, lines) from None
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


def _json_value(text: str, file: str, lines: Lines) -> object:
    import json

    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason, line, column = _json_place(error, text)
        raise problem_at(file, text, line, f"not valid JSON: {reason}", JSON_HINT, column) from None
    if lines.repeated:
        raise _repeated(text, file, lines)
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


def _repeated(text: str, file: str, lines: Lines) -> Problem:
    repeated = lines.repeated[0]
    name = shown(".".join(str(part) for part in repeated.path if isinstance(part, str)))
    where = f"on line {repeated.first}" if repeated.first != repeated.line else "on the same line"
    return problem_at(file, text, repeated.line, f"{name} is set already, {where}", "keep one of them")


def _unquote_json(word: str) -> str:
    import json

    try:
        return str(json.loads(word)) if "\\" in word else word[1:-1]
    except ValueError:
        return word


def _unquote_toml(word: str) -> str:
    import tomllib

    try:
        return str(tomllib.loads(f"word = {word}")["word"]) if "\\" in word else word[1:-1]
    except ValueError:
        return word
