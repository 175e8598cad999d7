"""What boxes asked of the broker, a line each."""

from __future__ import annotations

from claudebox.view.text import escape

NOTHING = "No box of this project has used the broker (--auth broker).\n"
COLUMNS = (("time", 20), ("box", 8), ("status", 6), ("input_tokens", 9), ("output_tokens", 9), ("ms", 8))
TITLES = {"input_tokens": "tokens in", "output_tokens": "out"}


def auth_log_text(entries: list[dict[str, object]]) -> str:
    if not entries:
        return NOTHING
    head = "  ".join(TITLES.get(name, name).rjust(width) for name, width in COLUMNS) + "  path, model"
    return "\n".join([head, *map(_line, entries)]) + "\n"


def _line(entry: dict[str, object]) -> str:
    cells = [escape(str(entry.get(name, ""))).rjust(width) for name, width in COLUMNS]
    words = [escape(str(entry.get(name, ""))) for name in ("path", "model")]
    return "  ".join([*cells, *filter(None, words)])
