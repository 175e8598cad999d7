"""Random bytes, which only the kernel of the host has."""

from __future__ import annotations

import os


def some_bytes(amount: int) -> bytes:
    return os.urandom(amount)
