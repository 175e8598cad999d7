"""Single values of a file: of the right type, and with no character that would do harm."""

from __future__ import annotations

from claudebox.settings.files.documents import (
    Document,
    shown,
)
from claudebox.settings.parsing import is_variable_name
from claudebox.settings.table import (
    BY_KEY,
    MOUNTS,
    PORTS,
    TABLE,
    TEXTS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from claudebox.settings.files.lines import Path

    T = TypeVar("T")

TYPES = (
    (str, "a string"),
    (bool, "true or false"),
    (int, "an integer"),
    (float, "a float"),
    (dict, "a table"),
    (list, "an array"),
    (type(None), "null"),
)
EXAMPLES = {
    TEXTS: ["…", "…"],
    PORTS: [8080],
    TABLE: {"NAME": "value"},
    MOUNTS: [{"host": "~/notes"}],
}


def value_at(document: Document, path: Path, kind: type[T] | tuple[type[T], ...], expected: str) -> T:
    value: object = document.value
    for part in path:
        value = value[part]  # type: ignore[index]
    # To Python, true is a number.
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    found = next((title for kinds, title in TYPES if isinstance(value, kinds)), "a date or time")
    raise document.problem(path, f"{label(path)} has to be {expected}, not {found}", example(document, path))


def text_at(document: Document, path: Path, *, is_free: bool = False) -> str:
    """Free: it may be empty and have several lines. Even then, not all can be passed on to a program."""
    text = value_at(document, path, str, "a string")
    if not text and not is_free:
        raise document.problem(path, f"{label(path)} is empty", f"fill it or take it out: {example(document, path)}")
    for character in text:
        if _is_impossible(character) or (_is_control(character) and not is_free):
            what = f"{label(path)} holds the character U+{ord(character):04X}"
            raise document.problem(path, what, "write it without that character")
    return text


def checked_variables(document: Document, path: Path, text: str) -> str:
    """The same text. What the variables in it stand for is found out later."""
    for rest in text.split("$")[1:]:
        if not is_variable_name(_variable(rest)):
            what = f"no name of a variable after `$` in {shown(text)}"
            raise document.problem(path, what, "write $NAME or ${NAME}, as in $HOME/notes")
    return text


def label(path: Path) -> str:
    """What a message calls a place: `hide`, an element of `hide`, `env.NAME`, `host` of a mount."""
    *above, last = path
    if isinstance(last, int):
        return f"an element of `{above[0]}`"
    if not above:
        return f"`{last}`"
    return f"`{last}` of a mount" if len(above) > 1 else shown(f"{above[0]}.{last}")


def example(document: Document, path: Path) -> str:
    """How to write what belongs there."""
    first, last = str(path[0]), path[-1]
    if len(path) > 1 and isinstance(last, str):
        return pair(document, last, {"mode": "ro", "optional": True}.get(last, "…"))
    setting = BY_KEY.get(first)
    if setting is None:
        return pair(document, first, "…")
    return pair(document, first, setting.choices[-1] if setting.choices else EXAMPLES.get(setting.shape, "…"))


def pair(document: Document, key: str, value: object) -> str:
    return (
        f"{notation(document, key)}: {notation(document, value)}"
        if document.is_json
        else (f"{key} = {notation(document, value)}")
    )


def notation(document: Document, value: object) -> str:
    """A value as the file's language writes it."""
    import json

    if isinstance(value, list):
        return "[" + ", ".join(notation(document, element) for element in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(pair(document, key, inner) for key, inner in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def _is_impossible(character: str) -> bool:
    """NUL ends what a program is told; half of a surrogate pair, which JSON can spell, is no character."""
    return character == "\0" or "\ud800" <= character <= "\udfff"


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f"


def _variable(text: str) -> str:
    """The name that a text after `$` starts with, or "" if there is none."""
    if text.startswith("{"):
        name, closing, _ = text[1:].partition("}")
        return name if closing else ""
    end = next((at for at, letter in enumerate(text) if not (letter.isalnum() or letter == "_")), len(text))
    return text[:end]
