"""Keeps a line for each request of a box: when, what, how much. It never holds what was said, and no secret."""

from __future__ import annotations

import threading

from claudebox.journal import note
from claudebox.view.text import escape

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
        with self.lock:
            note(self.path, **fields)


def auth_log_text(entries: list[dict[str, object]]) -> str:
    if not entries:
        return NOTHING
    head = "  ".join(TITLES.get(name, name).rjust(width) for name, width in COLUMNS) + "  path, model"
    return "\n".join([head, *map(_line, entries)]) + "\n"


def _line(entry: dict[str, object]) -> str:
    cells = [escape(str(entry.get(name, ""))).rjust(width) for name, width in COLUMNS]
    words = [escape(str(entry.get(name, ""))) for name in ("path", "model")]
    return "  ".join([*cells, *filter(None, words)])
