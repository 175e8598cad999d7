"""Checks what a file says. Its keys are those of the table of settings."""

from __future__ import annotations

import posixpath

from claudebox.model import RO, RW
from claudebox.problem import Problem
from claudebox.settings.files.documents import Document, shown
from claudebox.settings.parsing import is_variable_name, read_text
from claudebox.settings.table import BY_KEY, MOUNTS, PORTS, TABLE, TEXT, TEXTS, Setting
from claudebox.settings.values import EnvWish, MountWish, Statement
from claudebox.trust.secret_values import looks_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeVar

    from claudebox.settings.files.lines import Path

    T = TypeVar("T")

NAME = "name"
DESCRIPTION = "description"
KEYS = (NAME, DESCRIPTION, *BY_KEY)
KEYS_OF_A_MOUNT = ("host", "sandbox", "mode", "optional")
KEYS_ON_A_LINE = 5
INDENT = " " * len("hint: ")
MODES = {"ro": RO, "rw": RW}
PASS_ENV = "extra_env_passthrough"


def said_in(document: Document) -> tuple[Statement, ...]:
    """Everything that a file says, in the order of its lines. Raises a Problem if any of it is wrong."""
    describe(document)
    _check_name(document)
    said: list[tuple[int, Statement]] = []
    for key in document.value:
        if key not in (NAME, DESCRIPTION):
            setting = _setting(document, key)
            said += [(document.line_of(path), one) for path, one in READERS[setting.shape](document, setting)]
    return tuple(one for _, one in sorted(said, key=lambda placed: placed[0]))


def describe(document: Document) -> str:
    """What the file says about itself, on one line."""
    return _title(document, DESCRIPTION)


def _check_name(document: Document) -> None:
    name = _title(document, NAME)
    stem = posixpath.splitext(posixpath.basename(document.file))[0]
    if NAME in document.value and name != stem and not document.is_project:
        hint = f"rename the file, or say: {pair(document, NAME, stem)}"
        raise document.problem((NAME,), f"{shown(name)} is not the name of the file", hint)


def _title(document: Document, key: str) -> str:
    if key not in document.value:
        return ""
    text = value_at(document, (key,), str, "a string")
    if not text.isprintable():
        raise document.problem((key,), f"`{key}` has characters that do not show", "it is a title: one line of text")
    return text


def _setting(document: Document, key: str) -> Setting:
    if key not in BY_KEY:
        raise _unknown(document, (key,), KEYS)
    setting = BY_KEY[key]
    if setting.is_users and document.is_project:
        what = f"`{key}` decides what runs on this host, so a project cannot set it"
        raise document.problem((key,), what, f"it belongs in your own config.toml; or use {setting.option}")
    return setting


def _unknown(document: Document, path: Path, known: tuple[str, ...]) -> Problem:
    from difflib import get_close_matches

    key = str(path[-1])
    if len(path) > 1 and key in BY_KEY and key != "path":  # `path` in a mount is more likely meant to be `host`
        return _misplaced(document, path)
    near = get_close_matches(key, known, 1)
    hint = f"did you mean `{near[0]}`?" if near else "these are known:\n" + _rows(known)
    return document.problem(path, f"unknown key {shown(key)}", hint)


def _misplaced(document: Document, path: Path) -> Problem:
    outer, key = path[0], path[-1]
    if document.is_json:
        return document.problem(path, f"`{key}` is a setting, but it is inside `{outer}`", "move it out of there")
    hint = "a line in [brackets] takes all that follows it: move this one above it"
    return document.problem(path, f"`{key}` is a setting, but it is below `{outer}`", hint)


def _rows(words: tuple[str, ...]) -> str:
    starts = range(0, len(words), KEYS_ON_A_LINE)
    return ",\n".join(INDENT + ", ".join(words[start : start + KEYS_ON_A_LINE]) for start in starts)


def _read_text(document: Document, setting: Setting) -> Iterator[tuple[Path, Statement]]:
    path = (setting.key,)
    text = _path(document, path) if setting.is_users else text_at(document, path)
    yield path, _said(document, path, setting, text)


def _read_texts(document: Document, setting: Setting) -> Iterator[tuple[Path, Statement]]:
    for path in _elements(document, setting):
        text = text_at(document, path, is_free=setting.name == "claude_args")
        if setting.name in ("hide", "path"):
            checked_variables(document, path, text)
        if setting.name in ("pass_env", "drop_env"):
            _check_variable_name(document, path, text)
        yield path, _said(document, path, setting, text)


def _read_ports(document: Document, setting: Setting) -> Iterator[tuple[Path, Statement]]:
    takes_pairs = setting.name == "publish"
    expected = 'an integer or a string "HOST:BOX"' if takes_pairs else "an integer"
    for path in _elements(document, setting):
        port = value_at(document, path, (int, str) if takes_pairs else int, expected)
        yield path, _said(document, path, setting, str(port))


def _read_variables(document: Document, setting: Setting) -> Iterator[tuple[Path, Statement]]:
    for name in value_at(document, (setting.key,), dict, setting.shape):
        path = (setting.key, name)
        # Below a line such as [env] a setting would be lost, and a box could start with an open network instead.
        if name in BY_KEY:
            raise _misplaced(document, path)
        _check_variable_name(document, path, name)
        value = text_at(document, path, is_free=True)
        if reason := looks_secret(name, value):
            by_name = INDENT + pair(document, PASS_ENV, [name])
            hint = f"no secrets in files: take it out and pass it through by name:\n{by_name}"
            raise document.problem(path, f"{shown(name)} looks like a secret ({reason})", hint)
        yield path, Statement(setting.name, EnvWish(name, value, document.origin_of(path)))


def _read_mounts(document: Document, setting: Setting) -> Iterator[tuple[Path, Statement]]:
    for path in _elements(document, setting):
        keys = value_at(document, path, dict, "a table")
        unknown = [key for key in keys if key not in KEYS_OF_A_MOUNT]
        if unknown:
            raise _unknown(document, (*path, unknown[0]), KEYS_OF_A_MOUNT)
        if "host" not in keys:
            raise document.problem(path, "this mount has no `host`", pair(document, "host", "~/notes"))
        access = _access(document, (*path, "mode")) if "mode" in keys else RO
        wish = MountWish(
            access,
            source=_path(document, (*path, "host")),
            destination=_path(document, (*path, "sandbox")) if "sandbox" in keys else "",
            origin=document.origin_of(path),
            is_optional="optional" in keys and value_at(document, (*path, "optional"), bool, "true or false"),
        )
        yield path, Statement("mount_rw" if access == RW else "mount_ro", wish)


READERS = {TEXT: _read_text, TEXTS: _read_texts, PORTS: _read_ports, TABLE: _read_variables, MOUNTS: _read_mounts}


def _elements(document: Document, setting: Setting) -> list[Path]:
    array = value_at(document, (setting.key,), list, setting.shape)
    return [(setting.key, number) for number in range(len(array))]


def _said(document: Document, path: Path, setting: Setting, text: str) -> Statement:
    origin = document.origin_of(path)
    try:
        return Statement(setting.name, read_text(setting, text, origin))
    except Problem as problem:
        what = problem.message.removeprefix(f"{origin.shown}: ").replace(f"`{text}`", shown(text))
        raise document.problem(path, what, problem.hint) from None


def _access(document: Document, path: Path) -> str:
    mode = value_at(document, path, str, "a string")
    if mode not in MODES:
        hint = f"{notation(document, 'ro')} or {notation(document, 'rw')}"
        raise document.problem(path, f"{shown(mode)} is not a value of {label(path)}", hint)
    return MODES[mode]


def _path(document: Document, path: Path) -> str:
    return checked_variables(document, path, text_at(document, path))


def _check_variable_name(document: Document, path: Path, name: str) -> None:
    if not is_variable_name(name):
        hint = f"values belong in {example(document, ('env',))}" if "=" in name else "use letters, digits and _"
        raise document.problem(path, f"{shown(name)} is not a variable name", hint)


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
    # In Python, true is an integer.
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    found = next((title for kinds, title in TYPES if isinstance(value, kinds)), "a date or time")
    raise document.problem(path, f"{label(path)} has to be {expected}, not {found}", example(document, path))


def text_at(document: Document, path: Path, *, is_free: bool = False) -> str:
    """The text at a place. A free text may be empty and have several lines; none may have what no program can get."""
    text = value_at(document, path, str, "a string")
    if not text and not is_free:
        raise document.problem(path, f"{label(path)} is empty", f"fill it or take it out: {example(document, path)}")
    for character in text:
        if _is_impossible(character) or (_is_control(character) and not is_free):
            what = f"{label(path)} holds the character U+{ord(character):04X}"
            raise document.problem(path, what, "write it without that character")
    return text


def checked_variables(document: Document, path: Path, text: str) -> str:
    """Check the names of the variables in a text, and return it. Their values are found out later."""
    for rest in text.split("$")[1:]:
        if not is_variable_name(_variable(rest)):
            what = f"there is no variable name after `$` in {shown(text)}"
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
    """An example of what belongs there."""
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
    """NUL would end an argument, and half of a surrogate pair, which JSON can spell, is no character."""
    return character == "\0" or "\ud800" <= character <= "\udfff"


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f"


def _variable(text: str) -> str:
    """The name of the variable at the beginning of the text after `$`; "" if there is none."""
    if text.startswith("{"):
        name, closing, _ = text[1:].partition("}")
        return name if closing else ""
    end = next((at for at, letter in enumerate(text) if not (letter.isalnum() or letter == "_")), len(text))
    return text[:end]
