"""Amounts of memory, processes, processors and requests, as somebody writes them."""

from __future__ import annotations

from claudebox.problem import Problem
from claudebox.settings.values import Word

LIMITS = ("memory", "pids", "cpu")  # systemd and the kernel use the same names
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
A_SECOND = 1_000_000
LEAST = {"memory": 16 << 20, "pids": 10, "cpu": A_SECOND // 100}  # with less, not even bwrap starts
LIMITED = ("requests", "tokens", "streams", "minutes")  # what a box may use of the broker
MOST_DIGITS = 15
EXAMPLES = {"memory": "4G", "pids": "500", "cpu": "1.5"}


def amount(name: str, said: Word) -> int:
    """The amount in bytes, processes, or microseconds of each second. Raises a Problem if the text is not an amount."""
    text, unit = said.text, 1
    if name == "memory" and text[-1:].upper() in UNITS:
        text, unit = text[:-1], UNITS[text[-1:].upper()]
    whole, _, rest = text.partition(".") if name != "pids" else (text, "", "")
    digits = whole + rest
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len("1234567890123")):
        what = f"{said.origin.shown}: `{said.text}` is not an amount of {name}"
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
