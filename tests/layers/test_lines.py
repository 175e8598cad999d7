"""Values and lines of random valid files: the line of a key is where its name is found in the text."""

import json
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claudebox.settings.documents import Document, Path
from saying import parse_file

QUICK = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
DEEPEST_VALUE = 3
# Everything that could mislead the scanner, and no letter of the names to be found.
tricky = st.text(alphabet="#[]{}=,.:\"'\\\n\t 01ab-é日", max_size=8)


T = TypeVar("T")


class Writer:
    """Writes one file in one of the many ways to write it, and remembers what it says."""

    def __init__(self, data: st.DataObject, is_json: bool) -> None:
        self.data = data
        self.is_json = is_json
        self.count = 0
        self.value: dict[str, Any] = {}
        self.marks: dict[Path, str] = {}  # a word that stands on the line of each path, and nowhere before

    def choose(self, *choices: T) -> T:
        return choices[self.data.draw(st.integers(0, len(choices) - 1))]

    def mark(self) -> str:
        self.count += 1
        return f"k{self.count}x"

    def gap(self) -> str:
        """Between two things of an array, and in JSON everywhere."""
        comments: tuple[str, ...] = () if self.is_json else (" # [\"'{\n", '\n# ]="""\n')
        return self.choose("", " ", "\n", "\n\n  ", *comments)

    def space(self) -> str:
        return self.gap() if self.is_json else self.choose("", " ", "\t")

    def key(self, name: str) -> str:
        return f'"{name}"' if self.is_json else self.choose(name, f'"{name}"', f"'{name}'")

    def text(self, word: str) -> tuple[str, str]:
        """A string that starts with this word, as written and as meant."""
        meant = word + self.data.draw(tricky)
        written = [json.dumps(meant), json.dumps(meant, ensure_ascii=False)]
        if not self.is_json:
            start = "\n" if meant.startswith("\n") else ""  # the first one does not count
            escaped = start + meant.replace("\\", "\\\\")
            written += [f'"""{escaped}"""'] if '"""' not in meant and not meant.endswith('"') else []
            written += [f"'''{start}{meant}'''"] if "'''" not in meant else []
            written += [f"'{meant}'"] if "'" not in meant and "\n" not in meant else []
        return self.choose(*written), meant

    def any_value(self, path: Path, depth: int, word: str = "") -> tuple[str, Any]:
        kind = self.choose("text", "text", "number", "array", "table") if depth < DEEPEST_VALUE else "text"
        if kind == "array":
            return self.array(path, depth)
        if kind == "table":
            return self.table(path, depth)
        if kind == "number" and not word:
            return self.choose(("17", 17), ("-1.5", -1.5), ("true", True), ("false", False))
        return self.text(word)

    def array(self, path: Path, depth: int) -> tuple[str, list[Any]]:
        written, meant = [], []
        for number in range(self.data.draw(st.integers(0, 3))):
            # Its first element tells where an array starts that is an element itself: they begin on one line.
            word = self.mark()
            text, value = self.text(word)
            self.marks[(*path, number)] = word
            written.append(self.gap() + text + self.gap())
            meant.append(value)
        for number in range(len(meant), len(meant) + self.data.draw(st.integers(0, 1))):
            text, value = self.any_value((*path, number), depth + 1)
            written.append(self.gap() + text + self.gap())
            meant.append(value)
        end = self.choose("", ",") if written and not self.is_json else ""
        return "[" + ",".join(written) + end + self.gap() + "]", meant

    def table(self, path: Path, depth: int) -> tuple[str, dict[str, Any]]:
        pairs: list[str] = []
        meant: dict[str, Any] = {}
        for _ in range(self.data.draw(st.integers(0, 3))):
            name = self.mark()
            pairs.append(self.pair(path, name, meant, depth + 1))
        return "{" + ",".join(pairs) + self.space() + "}", meant

    def pair(self, path: Path, name: str, into: dict[str, Any], depth: int) -> str:
        self.marks[(*path, name)] = name
        text, into[name] = self.any_value((*path, name), depth)
        sign = ":" if self.is_json else "="
        return self.space() + self.key(name) + self.space() + sign + self.space() + text + self.space()

    def dotted_pair(self, path: Path, into: dict[str, Any]) -> str:
        first, second = self.mark(), self.mark()
        self.marks[(*path, first)] = first
        inner: dict[str, Any] = {}
        into[first] = inner
        written = self.pair((*path, first), second, inner, 1)
        return f"{first}{self.choose('.', ' . ')}{written.lstrip()}"

    def pairs(self, path: Path, into: dict[str, Any]) -> str:
        lines = []
        for _ in range(self.data.draw(st.integers(0, 3))):
            dotted = self.choose(True, False, False)
            lines.append(self.dotted_pair(path, into) if dotted else self.pair(path, self.mark(), into, 1))
            lines.append(self.choose("\n", " # a = [\"'\n", "\n\n"))
        return "".join(lines)

    def section(self) -> str:
        """`[table]`, `[table.inside]` or some `[[array of tables]]`, one with a table inside."""
        name, inside = self.mark(), self.mark()
        self.marks[(name,)] = name
        kind = self.choose("table", "inside", "array")
        if kind == "table":
            self.value[name] = {}
            return f"[{self.key(name)}]\n" + self.pairs((name,), self.value[name])
        if kind == "inside":
            self.marks[(name, inside)] = inside
            self.value[name] = {inside: {}}
            return f"[{name}.{self.key(inside)}] # [\n" + self.pairs((name, inside), self.value[name][inside])
        self.value[name] = []
        return "".join(self.element(name, number) for number in range(self.data.draw(st.integers(1, 3))))

    def element(self, name: str, number: int) -> str:
        word, inside = self.mark(), self.mark()
        self.marks[(name, number)] = word
        self.marks[(name, number, inside)] = inside
        self.value[name].append({})
        text = f"[[{name}]] # {word}\n" + self.pairs((name, number), self.value[name][number])
        self.value[name][number][inside] = {}
        return text + f"[{name}.{inside}]\n" + self.pairs((name, number, inside), self.value[name][number][inside])

    def toml(self) -> str:
        return self.pairs((), self.value) + "".join(self.section() for _ in range(self.data.draw(st.integers(0, 3))))

    def json(self) -> str:
        text, self.value = self.table((), 0)
        return self.gap() + text + self.gap()


def line_with(word: str, text: str) -> int:
    return next(number for number, line in enumerate(text.split("\n"), 1) if word in line)


def check(writer: Writer, text: str) -> None:
    content = text.encode()
    if writer.choose(True, False):
        content = b"\xef\xbb\xbf" + content
    document = parse_file(content, "f", is_json=writer.is_json)
    assert document.value == writer.value
    assert {path: document.line_of(path) for path in writer.marks} == {
        path: line_with(word, text) for path, word in writer.marks.items()
    }


@pytest.mark.req("EXT-03")
@QUICK
@given(st.data())
def test_random_toml_has_its_values_and_lines(data: st.DataObject) -> None:
    writer = Writer(data, is_json=False)
    check(writer, writer.toml())


@pytest.mark.req("EXT-03")
@QUICK
@given(st.data())
def test_random_json_has_its_values_and_lines(data: st.DataObject) -> None:
    writer = Writer(data, is_json=True)
    check(writer, writer.json())


@QUICK
@given(st.lists(st.sampled_from(["a", "b", "a.b", "[a]", "[b]", "[[a]]", "[a.c]", "a.b.c"]), max_size=6))
def test_repetition_is_found_where_the_parser_finds_one(statements: list[str]) -> None:
    """In whatever order tables come, nothing valid is refused."""
    import tomllib

    text = "\n".join(line if line.startswith("[") else f"{line} = 1" for line in statements)
    try:
        expected: dict[str, Any] | None = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        expected = None
    assert value_of(text.encode(), is_json=False) == expected


def value_of(content: bytes, *, is_json: bool) -> dict[str, Any] | None:
    from claudebox.errors import Problem

    try:
        return parse_file(content, "f", is_json=is_json).value
    except Problem:
        return None


names = st.sampled_from(["a", "b", "\\u0061", "", 'a\\"b'])
objects = st.recursive(
    st.sampled_from(["1", '"a"', "[]"]),
    lambda inner: st.lists(st.tuples(names, inner), max_size=3).map(
        lambda pairs: "{" + ", ".join(f'"{name}": {value}' for name, value in pairs) + "}"
    ),
    max_leaves=8,
)


@QUICK
@given(st.lists(st.tuples(names, objects), max_size=3))
def test_repetition_in_json_is_always_found(pairs: list[tuple[str, str]]) -> None:
    text = "{" + ",\n".join(f'"{name}": {value}' for name, value in pairs) + "}"
    repeats: list[bool] = []

    def notice(found: list[tuple[str, Any]]) -> dict[str, Any]:
        repeats.append(len(dict(found)) < len(found))
        return dict(found)

    value = json.loads(text, object_pairs_hook=notice)
    assert value_of(text.encode(), is_json=True) == (None if any(repeats) else value)


EXAMPLE = """\
# a comment with "quotes' and [brackets]
network = "inet"

env.A = "1" # A
hide = [
    # "not this"
    "~/a", '~/b',
    \"\"\"
~/c\"\"\",
]
"p\\u0075blish" = [80]
[[mounts]]
host = "~/x"

[[mounts]]
  sandbox = '''
]]'''
  host = "~/y"
  [mounts.more]
  x = { y = [
    1,
  ] }
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("network",), 2),
        (("env",), 4),
        (("env", "A"), 4),
        (("hide",), 5),
        (("hide", 0), 7),
        (("hide", 1), 7),
        (("hide", 2), 8),
        (("publish",), 11),
        (("publish", 0), 11),
        (("mounts",), 12),
        (("mounts", 0), 12),
        (("mounts", 0, "host"), 13),
        (("mounts", 0, "mode"), 12),
        (("mounts", 1), 15),
        (("mounts", 1, "sandbox"), 16),
        (("mounts", 1, "host"), 18),
        (("mounts", 1, "more"), 19),
        (("mounts", 1, "more", "x", "y", 0), 21),
        (("mounts", 7, "host"), 12),
        (("nothing", "of", "that"), 1),
    ],
)
def test_lines_of_an_example(path: Path, line: int, newline: str) -> None:
    document: Document = parse_file(EXAMPLE.replace("\n", newline).encode(), "f", is_json=False)
    assert document.line_of(path) == line
    assert document.origin_of(path).shown == f"f:{line}"
