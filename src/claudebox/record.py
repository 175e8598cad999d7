"""Immutable values with named fields.

The launch path may not import `dataclasses` or `typing`: either costs about as much
as starting the interpreter. Type checkers see a frozen dataclass; at run time a loop does.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda cls: cls


@dataclass_transform(frozen_default=True)
class Record:
    """Subclasses annotate their fields; a class attribute is the field's default."""

    _fields: tuple[str, ...]

    def __init_subclass__(cls) -> None:
        cls._fields = tuple(cls.__annotations__)

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = self._fields
        if len(values) > len(fields):
            raise TypeError(f"{type(self).__name__} takes {len(fields)} values")
        state = self.__dict__
        state.update(zip(fields, values, strict=False))
        for name in fields[len(values) :]:
            if name in named:
                state[name] = named.pop(name)
            elif hasattr(type(self), name):
                state[name] = getattr(type(self), name)
            else:
                raise TypeError(f"{type(self).__name__} lacks {name}")
        if named:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(named)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({values})"

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})
