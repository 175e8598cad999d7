"""Waiting for what has to happen.

The limit bounds a failure and nothing else: a machine with other things to do may be ten times slower than this one.
"""

import time
from collections.abc import Callable

PATIENCE = 120.0  # seconds
PAUSE = 0.01


def comes_true(condition: Callable[[], object], patience: float = PATIENCE) -> bool:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE)
    return True
