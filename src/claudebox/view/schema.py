"""A JSON Schema of the files with settings, made from the table of settings, for editors that complete and check.

It is draft 7, which Taplo understands (the language server for TOML, in Even Better TOML and others). Patterns use what
ECMAScript, Rust and Python read alike: no looking ahead, and nothing that depends on a line's end. A schema knows
shapes, so what has to be looked up is left to the program: whether a value looks secret, a name that is not the file's,
a limit too small to start anything.
"""

from __future__ import annotations

import json

from claudebox.settings.files.schema import DESCRIPTION, KEYS_OF_A_MOUNT, MODES, NAME
from claudebox.settings.parsing import LEAST, LIMITED, MOST_DIGITS, MOST_DIGITS_OF_AN_AMOUNT, SIZES
from claudebox.settings.table import BY_KEY, LAST_PORT, MOUNTS, PORTS, TABLE, TEXT, TEXTS, Setting
from claudebox.settings.values import PROJECT_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Schema = dict[str, Any]

DRAFT = "http://json-schema.org/draft-07/schema#"
CONTROL = r"[\x00-\x1f\x7f-\x9f]"
NUL = r"\x00"
NOT_IN_A_VARIABLE_NAME = r"^[0-9]|[^A-Za-z0-9_]"
# `$` that is not followed by a name, or by a name in braces.
BAD_VARIABLE = r"\$($|[^A-Za-z_{]|\{($|[^A-Za-z_]|[A-Za-z_][A-Za-z0-9_]*($|[^A-Za-z0-9_}])))"
TITLES = {
    NAME: "the name of the file, without its suffix",
    DESCRIPTION: "what the file is for, on one line",
}
OF_A_MOUNT = {
    "host": "the path on this host; ~ and $NAME are understood",
    "sandbox": "the path in the box, if it differs",
    "mode": "ro: read-only, the default; rw: writable",
    "optional": "true: no error if the path is missing",
}


def schema_text(*, is_project: bool) -> str:
    return json.dumps(schema(is_project=is_project), indent=2) + "\n"


def schema(*, is_project: bool) -> Schema:
    """The schema of the user's own files, or of a project's, which cannot say everything."""
    settings = [setting for setting in BY_KEY.values() if not (is_project and setting.is_users)]
    title = PROJECT_FILE if is_project else "your own config.toml and profiles"
    titles = {key: {"description": text, **_line(is_free=True)} for key, text in TITLES.items()}
    return {
        "$schema": DRAFT,
        "title": f"claudebox: {title}",
        "type": "object",
        "additionalProperties": False,
        "properties": titles | {setting.key: _setting(setting) for setting in settings},
    }


def _setting(setting: Setting) -> Schema:
    made = {TEXT: _text, TEXTS: _texts, PORTS: _ports, TABLE: _variables, MOUNTS: _mounts}[setting.shape](setting)
    return {"description": setting.help_in_files or setting.help, **made}


def _line(*, is_free: bool = False, **more: Any) -> Schema:
    """A string without control characters, and not empty unless it is free."""
    return {"type": "string", "not": {"pattern": CONTROL}, **({} if is_free else {"minLength": 1}), **more}


def _path() -> Schema:
    return _line(allOf=[{"not": {"pattern": BAD_VARIABLE}}])


def _text(setting: Setting) -> Schema:
    if setting.choices:
        return {"type": "string", "enum": list(setting.choices)}
    if setting.name in LEAST:
        return _amount(setting.name)
    return _path() if setting.is_users else _line()


def _amount(name: str) -> Schema:
    """Digits, perhaps with a point among them and a unit behind. Which is too little, only the program knows."""
    allowed = "0-9.KMGTkmgt" if name in SIZES else {"pids": "0-9"}.get(name, "0-9.")
    wrong = [
        rf"[^{allowed}]",  # another character
        r"[KMGTkmgt].",  # a unit that is not at the end
        r"\.[0-9]*\.",  # two points
        rf"([0-9]\.?){{{MOST_DIGITS_OF_AN_AMOUNT + 1}}}",  # too many digits
    ]
    return {"type": "string", "pattern": "[0-9]", "allOf": [{"not": {"pattern": pattern}} for pattern in wrong]}


def _texts(setting: Setting) -> Schema:
    return {"type": "array", "items": _element(setting)}


def _element(setting: Setting) -> Schema:
    if setting.name == "claude_args":
        return {"type": "string", "not": {"pattern": NUL}}
    if setting.name in ("hide", "path"):
        return _path()
    if setting.name in ("pass_env", "drop_env"):
        return _line(allOf=[{"not": {"pattern": NOT_IN_A_VARIABLE_NAME}}])
    if setting.name == "auth_limit":
        number = rf"0{{0,{MOST_DIGITS - 1}}}[1-9][0-9]{{0,{MOST_DIGITS - 1}}}"
        too_long = {"not": {"pattern": f"[0-9]{{{MOST_DIGITS + 1}}}"}}
        return _line(pattern=f"^({'|'.join(LIMITED)})={number}$", allOf=[too_long])
    return _line()


def _ports(setting: Setting) -> Schema:
    number = {"type": "integer", "minimum": 1, "maximum": LAST_PORT}
    if setting.name != "publish":
        return {"type": "array", "items": number}
    port = _below(LAST_PORT)
    text = _line(pattern=f"^({port})(:({port}))?$", allOf=[{"not": {"pattern": "[0-9]{6}"}}])
    return {"type": "array", "items": {"anyOf": [number, text]}}


def _below(last: int) -> str:
    """A pattern for the numbers from 1 to `last`, perhaps with zeros before them."""
    digits = str(last)
    ways = [f"[1-9][0-9]{{0,{len(digits) - 2}}}"]
    for place, digit in enumerate(digits):
        least = 1 if place == 0 else 0
        if int(digit) > least:
            rest = len(digits) - place - 1
            ways.append(f"{digits[:place]}[{least}-{int(digit) - 1}]" + (f"[0-9]{{{rest}}}" if rest else ""))
    return "0*(" + "|".join([*ways, digits]) + ")"


def _variables(_: Setting) -> Schema:
    # Below a line such as [env] a setting would be lost.
    names = _line(allOf=[{"not": {"pattern": NOT_IN_A_VARIABLE_NAME}}, {"not": {"enum": list(BY_KEY)}}])
    values = {"type": "string", "not": {"pattern": NUL}}
    return {"type": "object", "propertyNames": names, "additionalProperties": values}


def _mounts(_: Setting) -> Schema:
    shapes = {
        "host": _path(),
        "sandbox": _path(),
        "mode": {"type": "string", "enum": list(MODES)},
        "optional": {"type": "boolean"},
    }
    keys = {key: {"description": OF_A_MOUNT[key], **shapes[key]} for key in KEYS_OF_A_MOUNT}
    return {
        "type": "array",
        "items": {"type": "object", "additionalProperties": False, "required": ["host"], "properties": keys},
    }
