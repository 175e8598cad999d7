"""Python's `signal`, as lean as a start needs it.

`signal` makes an enum of every name and imports `enum` for that, which costs each start 4 ms. `_signal` is its part in
C: the same functions, and plain numbers. This is the only module that knows it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from signal import *  # noqa: F403
else:
    from _signal import *  # noqa: F403
