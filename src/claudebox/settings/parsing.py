"""Parses the text of a setting: an option, a variable, or an element of an array in a file."""

from __future__ import annotations

from claudebox.model import RO, RW, Origin, Port
from claudebox.problem import Problem
from claudebox.settings.amounts import LIMITS, amount, broker_limit
from claudebox.settings.table import LAST_PORT, PORTS
from claudebox.settings.values import EnvWish, MountWish, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.settings.table import Setting
    from claudebox.settings.values import Value


def read_text(setting: Setting, text: str, origin: Origin) -> Value:
    """The value that the text stands for. Raises a Problem if the setting cannot have it."""
    if setting.name in ("mount_ro", "mount_rw"):
        return _mount_wish(setting, text, origin)
    if setting.name in ("env", "pass_env"):
        return _env_wish(text, origin)
    if setting.shape == PORTS:
        return _port(setting, text, origin)
    if setting.choices and text not in setting.choices:
        *others, last = setting.choices
        raise Problem(f"{origin.shown}: `{text}` is not a value of {setting.name}", f"{', '.join(others)} or {last}")
    if setting.name == "drop_env" and not is_variable_name(text):
        raise _bad_name(text, origin, "NAME")
    word = Word(text, origin)
    # Only what is wrong is of interest here: whoever uses it reads it again.
    if setting.name in LIMITS:
        amount(setting.name, word)
    elif setting.name == "auth_limit":
        broker_limit(word)
    return word


def _mount_wish(setting: Setting, text: str, origin: Origin) -> MountWish:
    source, separator, destination = text.rpartition(":")
    if not separator or not destination.startswith(("/", "~")):
        source, destination = text, ""
    if not source:
        raise Problem(f"{origin.shown} needs a path", f"{origin.shown} PATH or {origin.shown} PATH:DEST")
    return MountWish(RO if setting.name == "mount_ro" else RW, source, destination, origin)


def _env_wish(text: str, origin: Origin) -> EnvWish:
    name, separator, value = text.partition("=")
    if not is_variable_name(name):
        raise _bad_name(name, origin)
    return EnvWish(name, value if separator else None, origin)


def _bad_name(name: str, origin: Origin, usage: str = "NAME or NAME=VALUE") -> Problem:
    return Problem(f"{origin.shown}: `{name}` is not a variable name", f"use letters, digits and _: {usage}")


def is_variable_name(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def _port(setting: Setting, text: str, origin: Origin) -> Port:
    host, separator, box = text.partition(":")
    numbers = [_number(part) for part in ((host, box) if separator else (host,))]
    if not all(numbers) or (separator and setting.name != "publish"):
        raise Problem(f"{origin.shown}: `{text}` is not a port", f"{setting.metavar}, 1 to {LAST_PORT}")
    return Port(numbers[0], numbers[-1], origin)


def _number(text: str) -> int:
    """The number of a port; 0 if the text is not one."""
    is_port = text.isascii() and text.isdigit() and len(text) <= len(str(LAST_PORT)) and int(text) <= LAST_PORT
    return int(text) if is_port else 0
