"""The shape of JSON, written as an example of it.

    {"name": str, "size": maybe(int), "parts": [str]}

A dictionary has exactly these keys, a list any number of such items; a class means a value of it, anything else is
meant itself. A key that begins with `?` may be missing.
"""

from dataclasses import dataclass
from typing import Any

# What every JSON of claudebox begins with.
HEAD: dict[str, Any] = {"claudebox": str, "schema": 2}


@dataclass(frozen=True)
class Either:
    shapes: tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """Any names, all with values of one shape."""

    values: Any


def either(*shapes: Any) -> Either:
    return Either(shapes)


def maybe(shape: Any) -> Either:
    return Either((shape, None))


def faults(shape: Any, value: Any, where: str = "$") -> list[str]:
    """Where a value is not as the shape says."""
    if isinstance(shape, Either):
        each = [faults(choice, value, where) for choice in shape.shapes]
        return min(each, key=len) if all(each) else []
    if isinstance(shape, dict):
        return _object_faults(shape, value, where)
    if isinstance(shape, Table):
        if not isinstance(value, dict):
            return [f"{where}: no object: {value!r}"]
        return [fault for key, item in value.items() for fault in faults(shape.values, item, f"{where}.{key}")]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{where}: no list: {value!r}"]
        return [fault for number, item in enumerate(value) for fault in faults(shape[0], item, f"{where}[{number}]")]
    if isinstance(shape, type):
        return [] if type(value) is shape else [f"{where}: no {shape.__name__}: {value!r}"]
    return [] if value == shape and type(value) is type(shape) else [f"{where}: not {shape!r}: {value!r}"]


def _object_faults(shape: dict[str, Any], value: Any, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where}: no object: {value!r}"]
    known = {key.removeprefix("?"): item for key, item in shape.items()}
    found = [f"{where}: no `{key}`" for key in shape if not key.startswith("?") and key not in value]
    found += [f"{where}: `{key}` is unknown" for key in value if key not in known]
    return found + [
        fault for key, item in value.items() if key in known for fault in faults(known[key], item, f"{where}.{key}")
    ]
