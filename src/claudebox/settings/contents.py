"""Reads the settings of a parsed file. Its keys are those of the table of settings."""

from __future__ import annotations

import posixpath
from typing import TypeVar

from claudebox.errors import Problem
from claudebox.host.secrets import looks_secret
from claudebox.model import Origin
from claudebox.record import Record
from claudebox.settings.documents import Document, Path, shown
from claudebox.settings.table import BY_KEY, LIST, Setting
from claudebox.settings.types import is_variable_name, variables
from claudebox.settings.values import Statement, Value, Word

T = TypeVar("T")

NAME = "name"
DESCRIPTION = "description"
KEYS = (NAME, DESCRIPTION, *BY_KEY)
KEYS_ON_A_LINE = 5
INDENT = " " * len("hint: ")
PASS_ENV = "extra_env_passthrough"
TYPES = (
    (str, "a string"),
    (bool, "true or false"),
    (int, "an integer"),
    (float, "a float"),
    (dict, "a table"),
    (list, "an array"),
    (type(None), "null"),
)


def said_in(document: Document) -> tuple[Statement, ...]:
    """Everything that a file says, in the order of its lines. Raises a Problem if any of it is wrong."""
    describe(document)
    _check_name(document)
    said: list[tuple[int, Statement]] = []
    for key in document.value:
        if key not in (NAME, DESCRIPTION):
            setting = _setting(Place(document, (key,)))
            place = Place(document, (key,), setting)
            values = setting.type.read_many(place) if setting.kind == LIST else [(place, setting.type.read(place))]
            said += [(one.origin.line, Statement(setting.name, value)) for one, value in values]
    return tuple(one for _, one in sorted(said, key=lambda placed: placed[0]))


def describe(document: Document) -> str:
    """What the file says about itself, on one line."""
    return _title(document, DESCRIPTION)


def _check_name(document: Document) -> None:
    name, place = _title(document, NAME), Place(document, (NAME,))
    stem = posixpath.splitext(posixpath.basename(document.file))[0]
    if NAME in document.value and name != stem and not document.is_project:
        raise place.problem(
            f"{shown(name)} is not the name of the file", f"rename the file, or say: {place.pair(NAME, stem)}"
        )


def _title(document: Document, key: str) -> str:
    if key not in document.value:
        return ""
    place = Place(document, (key,))
    text = place.value(str, "a string")
    if not text.isprintable():
        raise place.problem(f"`{key}` has characters that do not show", "it is a title: one line of text")
    return text


def _setting(place: Place) -> Setting:
    key = str(place.path[0])
    if key not in BY_KEY:
        raise place.unknown(KEYS)
    setting = BY_KEY[key]
    if setting.is_users and place.document.is_project:
        what = f"`{key}` decides what runs on this host, so a project cannot set it"
        or_option = "" if setting.in_files_only else f"; or use {setting.option}"
        raise place.problem(what, f"it belongs in your own config.toml{or_option}")
    return setting


class Place(Record):
    """A value in a file. What a type reads there, it reads through this, so that messages name the line."""

    document: Document
    path: Path
    setting: Setting | None = None  # None: a title of the file

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
            of_env = self.replace(path=("env",), setting=BY_KEY["env"])
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
        if self.path[-1] in BY_KEY:
            raise self.misplaced()

    def refuse_secret(self, name: str, value: str) -> None:
        if reason := looks_secret(name, value):
            by_name = INDENT + self.pair(PASS_ENV, [name])
            hint = f"no secrets in files: take it out and pass it through by name:\n{by_name}"
            raise self.problem(f"{shown(name)} looks like a secret ({reason})", hint)

    def unknown(self, known: tuple[str, ...]) -> Problem:
        from difflib import get_close_matches

        from claudebox.settings.mistakes import REMOVED

        key = str(self.path[-1])
        # `path` in a mount is more likely meant to be `host`.
        if len(self.path) > 1 and key in BY_KEY and key != "path":
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
        return self.document.problem(self.path, what, hint)

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
        is_list = self.setting.kind == LIST
        return self.pair(first, self.setting.type.examples if is_list else self.setting.type.example)

    def pair(self, key: str, value: object) -> str:
        """A key and a value as the file's language writes them."""
        if self.document.is_json:
            return f"{self.notation(key)}: {self.notation(value)}"
        return f"{key} = {self.notation(value)}"

    def notation(self, value: object) -> str:
        import json

        if isinstance(value, list | tuple):
            return "[" + ", ".join(self.notation(element) for element in value) + "]"
        if isinstance(value, dict):
            return "{ " + ", ".join(self.pair(key, inner) for key, inner in value.items()) + " }"
        return json.dumps(value, ensure_ascii=False)


def _rows(words: tuple[str, ...]) -> str:
    starts = range(0, len(words), KEYS_ON_A_LINE)
    return ",\n".join(INDENT + ", ".join(words[start : start + KEYS_ON_A_LINE]) for start in starts)
