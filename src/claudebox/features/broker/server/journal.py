"""Keeps a line for each request of a box: when, what, how much. It never holds what was said, and no secret."""

from __future__ import annotations

import threading

from claudebox.journal import note
from claudebox.view.text import escape

MOST_REFUSALS = 500  # of one box, which could flood the journal with them until what it did before is gone

NOTHING = "No box of this project has used the broker (--auth broker).\n"
# With the path and the model of a usual request, a line fits a terminal of 80 columns.
COLUMNS = (("time", 11), ("box", 7), ("status", 6), ("input_tokens", 6), ("output_tokens", 7), ("ms", 6))
TITLES = {"time": "time (UTC)", "input_tokens": "tok.in", "output_tokens": "tok.out"}
USUAL_API = "/v1/"  # left out before what was asked of it


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
    shown = {name: str(entry.get(name, "")) for name in (*dict(COLUMNS), "path", "model")}
    shown["time"] = shown["time"][5:16].replace("T", " ")  # without the year and the seconds, which JSON has
    shown["path"] = shown["path"].removeprefix(USUAL_API)
    cells = [escape(shown[name]).rjust(width) for name, width in COLUMNS]
    return "  ".join([*cells, *filter(None, (escape(shown["path"]), escape(shown["model"])))])
