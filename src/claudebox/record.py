"""Immutable values with named fields.

The launch path may not import `dataclasses` or `typing`: either of them costs about as much as starting the
interpreter. Type checkers see a frozen dataclass; at run time, a few lines do the same.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, dataclass_transform
    from typing import Generic as Generic
else:

    class Generic:
        """Stands for what `typing` has: `class List(Generic[T])` means nothing at run time."""

        def __class_getitem__(cls, _):
            return cls

    def dataclass_transform(**_):
        return lambda cls: cls


@dataclass_transform(frozen_default=True)
class Record:
    """Subclasses annotate their fields; a class attribute is the field's default."""

    _fields: tuple[str, ...]
    _defaults: dict[str, Any]

    def __init_subclass__(cls) -> None:
        fields, body = tuple(cls.__annotations__), cls.__dict__
        cls._fields = (*getattr(cls, "_fields", ()), *fields)
        cls._defaults = getattr(cls, "_defaults", {}) | {name: body[name] for name in fields if name in body}

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = self._fields
        if len(values) == len(fields) and not named:
            state = dict(zip(fields, values, strict=True))
        else:
            state = self._defaults | named
            state.update(zip(fields, values, strict=False))
            # If everything is right, one comparison shows it. What is wrong is found out only when something is.
            twice = named and not named.keys().isdisjoint(fields[: len(values)])
            if len(state) != len(fields) or len(values) > len(fields) or twice:
                raise TypeError(f"{type(self).__name__} has {fields}, and got {len(values)} values and {list(named)}")
        # All attributes are set at once, because every start makes hundreds of records.
        object.__setattr__(self, "__dict__", state)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *(self.__dict__[name] for name in self._fields)))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self._fields)
        return f"{type(self).__name__}({values})"

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})
