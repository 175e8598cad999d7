"""Finds the line of each key of a file, which the parsers of the standard library do not tell.

The scanner understands every valid file. It also gets to the end of every other one, and leaves it to the parser to say
what is wrong there. What would keep a parser busy for long is refused here.
"""

from __future__ import annotations

from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Path = tuple[str | int, ...]

DEEPEST = 16
LONGEST_NUMBER = 64

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


class Lines(Record):
    """The line of every key and element."""

    of: dict[Path, int]
    repeated: tuple[Repeated, ...]


class Excess(Exception):
    """The file has more of something than any settings need."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line
        self.what = what


def toml_lines(text: str, unquote: Callable[[str], str]) -> Lines:
    scanner = _Scanner(text, unquote, (BLANK,))
    scanner.statements()
    return scanner.result()


def json_lines(text: str, unquote: Callable[[str], str]) -> Lines:
    scanner = _Scanner(text, unquote, (BLANK, NEWLINE))
    scanner.value(())
    return scanner.result()


def tokens(text: str) -> Iterator[Token]:
    import re

    line = 1
    for match in re.finditer(TOKENS, text, re.VERBOSE | re.DOTALL):
        yield Token(match.lastgroup or WORD, match.group(), line)
        line += match.group().count("\n")


class _Scanner:
    """Goes through the tokens once and notes the line of every key and element."""

    def __init__(self, text: str, unquote: Callable[[str], str], meaningless: tuple[str, ...]) -> None:
        self.unquote = unquote
        self.rest = (token for token in tokens(text) if token.kind not in meaningless)
        self.end = Token(END, "", text.count("\n") + 1)
        self.next = next(self.rest, self.end)
        self.of: dict[Path, int] = {}
        self.explicit: dict[Path, int] = {}
        self.repeated: list[Repeated] = []
        self.elements: dict[Path, int] = {}  # how many tables each array of tables has so far

    def result(self) -> Lines:
        return Lines(self.of, tuple(self.repeated))

    def statements(self) -> None:
        """Scan a whole TOML file."""
        table: Path = ()
        self._skip_newlines()
        while self.next.kind != END:
            if self.next.text == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip_line()
            self._skip_newlines()

    def value(self, path: Path) -> None:
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
            self.value((*path, number))
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
            self.value(path)

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
        return self.unquote(token.text) if token.kind == TEXT else token.text

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
            self.of.setdefault(path[:length], line)

    def _say(self, path: Path, line: int) -> None:
        if path in self.explicit:
            self.repeated.append(Repeated(path, self.explicit[path], line))
        else:
            self.explicit[path] = line
