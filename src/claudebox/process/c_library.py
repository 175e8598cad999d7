"""Functions of the C library that Python has no name for.

`ctypes` takes as long to import as all of claudebox; `_ctypes`, the part in C, is enough for system calls.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Of prctl.
SET_PARENT_DEATH_SIGNAL = 1
ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER
CLONE = {"x86_64": 56, "aarch64": 220}


def c_function(name: str) -> Callable[..., int] | None:
    """None if this Python cannot call it."""
    try:
        import _ctypes
    except ImportError:
        return None
    address = _ctypes.dlsym(_ctypes.dlopen(None, 0), name)  # type: ignore[arg-type]  # None: what is loaded already

    def call(*arguments: int | bytes) -> int:
        return int(_ctypes.call_function(address, arguments))

    return call
