"""Parses the text of a setting: an option, a variable, or an element of an array in a file."""

from __future__ import annotations

from claudebox.model import RO, RW, Origin, Port
from claudebox.problem import Problem
from claudebox.settings.table import LAST_PORT, PORTS
from claudebox.settings.values import EnvWish, MountWish, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.settings.table import Setting
    from claudebox.settings.values import Value

LIMITS = ("memory", "pids", "cpu")  # systemd and the kernel use the same names
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
A_SECOND = 1_000_000
TMP_SIZE = "tmp_size"
SIZES = ("memory", TMP_SIZE)
# With less, not even bwrap starts, or programs cannot work.
LEAST = {"memory": 16 << 20, "pids": 10, "cpu": A_SECOND // 100, TMP_SIZE: 16 << 20}
LIMITED = ("requests", "tokens", "streams", "minutes")  # what a box may use of the broker
OPENING = ("reveal", "writable")  # a variable that is not set ("$GONE") must not mean the whole project
MOST_DIGITS = 15
MOST_DIGITS_OF_AN_AMOUNT = 13
EXAMPLES = {"memory": "4G", "pids": "500", "cpu": "1.5", TMP_SIZE: "4G"}


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
    if not text and setting.name in OPENING:
        raise Problem(f"{origin.shown} needs a path", f"for the whole project: {setting.option} .")
    word = Word(text, origin)
    # Only what is wrong is of interest here: whoever uses it reads it again.
    if setting.name in LEAST:
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


def amount(name: str, said: Word) -> int:
    """The amount in bytes, processes, or microseconds of each second. Raises a Problem if the text is not an amount."""
    text, unit = said.text, 1
    if name in SIZES and text[-1:].upper() in UNITS:
        text, unit = text[:-1], UNITS[text[-1:].upper()]
    whole, _, rest = text.partition(".") if name != "pids" else (text, "", "")
    digits = whole + rest
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS_OF_AN_AMOUNT):
        what = f"{said.origin.shown}: `{said.text}` is not an amount of {name.replace(TMP_SIZE, 'memory')}"
        raise Problem(what, f"for example: {EXAMPLES[name]}")
    value = int(digits) * (A_SECOND if name == "cpu" else unit) // int("1" + "0" * len(rest))
    if value < LEAST[name]:
        raise Problem(f"{said.origin.shown}: `{said.text}` is too little to start anything", f"try {EXAMPLES[name]}")
    return value


def broker_limit(said: Word) -> tuple[str, int]:
    """What is limited, and to how much. Raises a Problem if the text is not a limit."""
    name, _, number = said.text.partition("=")
    is_number = number.isascii() and number.isdigit() and 0 < len(number) <= MOST_DIGITS and int(number) > 0
    if name not in LIMITED or not is_number:
        *others, last = LIMITED
        raise Problem(f"{said.origin.shown}: `{said.text}` is no limit", f"{', '.join(others)} or {last}: requests=500")
    return name, int(number)
