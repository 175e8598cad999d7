"""A journal of limited size: what the boxes of a project did, a line of JSON for each thing.

It never holds what was said, and no secret: who writes a line decides what is in it.
"""

from __future__ import annotations

import json
import os
import time

LARGEST = 1 << 20  # bytes; then the file becomes the older half, and the older half before it is gone
OLDER = ".1"


def note(file: str, /, **fields: str | int) -> None:
    """Append a line. If it cannot be written, nothing else suffers."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps({"time": stamp, "box": os.getpid(), **fields}).encode() + b"\n"
    try:
        _append(file, line)
    except OSError:
        pass


def _append(path: str, line: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        if os.fstat(descriptor).st_size + len(line) > LARGEST:
            os.rename(path, path + OLDER)
            os.close(descriptor)
            descriptor = os.open(path, flags, 0o600)
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def read_journal(path: str) -> list[dict[str, object]]:
    """All entries of the journal, the oldest first."""
    lines: list[bytes] = []
    for file in (path + OLDER, path):
        try:
            with open(file, "rb") as opened:
                lines += opened.read(2 * LARGEST).splitlines()
        except OSError:
            continue
    return [entry for line in lines if (entry := _entry(line))]


def _entry(line: bytes) -> dict[str, object]:
    """What a line says; nothing if it was not written to its end."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
