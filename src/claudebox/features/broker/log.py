"""`--auth-log`: what the boxes of this project asked of the broker."""

from __future__ import annotations

from claudebox.host import read_host
from claudebox.output.as_json import dump
from claudebox.output.terminal import show
from claudebox.settings.words import Request
from claudebox.state.journal import read_journal
from claudebox.state.reach import own_instance
from claudebox.text import escape

NOTHING = "No box of this project has used the broker (--auth broker).\n"
# With the path and the model of a usual request, a line fits a terminal of 80 columns.
COLUMNS = (("time", 11), ("box", 7), ("status", 6), ("input_tokens", 6), ("output_tokens", 7), ("ms", 6))
TITLES = {"time": "time (UTC)", "input_tokens": "tok.in", "output_tokens": "tok.out"}
USUAL_API = "/v1/"  # left out before what was asked of it


def show_auth_log(request: Request) -> int:
    entries = read_journal(own_instance(read_host()).journal)
    show(dump({"auth_log": entries}) if request.json else auth_log_text(entries))
    return 0


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
