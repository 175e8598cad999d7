"""Amounts of memory, processes and processors, as somebody writes them."""

from __future__ import annotations

from claudebox.problem import Problem
from claudebox.settings.values import Named

LIMITS = ("memory", "pids", "cpu")  # as systemd and the kernel call them, too
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
A_SECOND = 1_000_000
LEAST = {"memory": 16 << 20, "pids": 10, "cpu": A_SECOND // 100}  # with less, not even bwrap starts
EXAMPLES = {"memory": "4G", "pids": "500", "cpu": "1.5"}


def amount(name: str, said: Named) -> int:
    """Bytes, a number, or microseconds of each second. Raises a Problem if it is none of them."""
    text, unit = said.path, 1
    if name == "memory" and text[-1:].upper() in UNITS:
        text, unit = text[:-1], UNITS[text[-1:].upper()]
    whole, _, rest = text.partition(".") if name != "pids" else (text, "", "")
    digits = whole + rest
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len("1234567890123")):
        raise Problem(f"{said.origin.shown}: `{said.path}` is no {name}", f"for example: {EXAMPLES[name]}")
    value = int(digits) * (A_SECOND if name == "cpu" else unit) // int("1" + "0" * len(rest))
    if value < LEAST[name]:
        raise Problem(f"{said.origin.shown}: `{said.path}` is too little to start anything", f"try {EXAMPLES[name]}")
    return value
