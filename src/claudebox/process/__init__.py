"""What a process can do to itself: call the C library, enter namespaces, close descriptors, end with its parent.

Python's `signal` makes an enum of every name and imports `enum` for that, which costs each start 4 ms. `_signal` is its
part in C: the same functions, and plain numbers. This is the only module that knows it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signal
else:
    import _signal as signal

__all__ = ["signal"]
