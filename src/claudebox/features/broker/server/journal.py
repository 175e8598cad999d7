"""Keeps a line for each request of a box: when, what, how much. It never holds what was said, and no secret."""

from __future__ import annotations

import json
import os
import threading
import time

from claudebox.view.text import escape

LARGEST = 1 << 20  # bytes; then the file becomes the older half, and the older half before it is gone
OLDER = ".1"
MOST_REFUSALS = 500  # of one box, which could flood the journal with them until what it did before is gone

NOTHING = "No box of this project has used the broker (--auth broker).\n"
COLUMNS = (("time", 20), ("box", 8), ("status", 6), ("input_tokens", 9), ("output_tokens", 9), ("ms", 8))
TITLES = {"input_tokens": "tokens in", "output_tokens": "out"}


class Journal:
    """A file of limited size, to which the boxes of a project append."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.refusals = 0

    def note_refusal(self, path: str, status: int) -> None:
        """Note a request that went nowhere."""
        self.refusals += 1
        if self.refusals <= MOST_REFUSALS:
            self.note(path=path, status=status)

    def note(self, **fields: str | int) -> None:
        """Append a line. If it cannot be written, nothing else suffers."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": stamp, "box": os.getpid(), **fields}).encode() + b"\n"
        try:
            with self.lock:
                self._append(line)
        except OSError:
            pass

    def _append(self, line: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o600)
        try:
            if os.fstat(descriptor).st_size + len(line) > LARGEST:
                os.rename(self.path, self.path + OLDER)
                os.close(descriptor)
                descriptor = os.open(self.path, flags, 0o600)
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


def auth_log_text(entries: list[dict[str, object]]) -> str:
    if not entries:
        return NOTHING
    head = "  ".join(TITLES.get(name, name).rjust(width) for name, width in COLUMNS) + "  path, model"
    return "\n".join([head, *map(_line, entries)]) + "\n"


def _line(entry: dict[str, object]) -> str:
    cells = [escape(str(entry.get(name, ""))).rjust(width) for name, width in COLUMNS]
    words = [escape(str(entry.get(name, ""))) for name in ("path", "model")]
    return "  ".join([*cells, *filter(None, words)])
