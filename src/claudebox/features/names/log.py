"""`--network-log`: what the boxes of this project reached by name, what was refused, and what would allow it."""

from __future__ import annotations

from claudebox.features.names.rules import FORGES, GROUPS, SSH, STOPPED, WEB, as_written, can_be_listed
from claudebox.host import read_host
from claudebox.settings.words import Request
from claudebox.state import find_state
from claudebox.state.journal import read_journal
from claudebox.state.reach import find_own_repository, reach_of
from claudebox.terminal import show
from claudebox.text import bytes_text, escape
from claudebox.view.as_json import dump

NOTHING = "No box of this project has gone by names (--network names).\n"
WIDTHS = (14, 7, 6, 8)  # columns for the time, the verdict, and the bytes each way
FAILED = "failed"
VERDICTS = ("allowed", "refused", FAILED)


def show_network_log(request: Request) -> int:
    host = read_host()
    root = find_own_repository(reach_of(host)).canonical_root(host.cwd)
    entries = read_journal(find_state(host).instance(root).network_journal)
    if request.suggest:
        show(suggestion(entries))
    else:
        show(dump({"network_log": entries}) if request.json else log_text(entries))
    return 0


def log_text(entries: list[dict[str, object]]) -> str:
    if not entries:
        return NOTHING
    head = _row(("time (UTC)", "", "sent", "received", "host"))
    return "\n".join([head, *map(_line, entries)]) + "\n"


def _line(entry: dict[str, object]) -> str:
    time = str(entry.get("time", ""))[5:19].replace("T", " ")
    port = f":{entry['port']}" if entry.get("port") else ""
    why = f" ({entry['why']})" if entry.get("why") and entry.get("verdict") in (FAILED, STOPPED) else ""
    sizes = (entry.get(name) for name in ("sent", "received"))
    amounts = (bytes_text(size) if isinstance(size, int) else "" for size in sizes)
    return _row((time, str(entry.get("verdict", "")), *amounts, f"{entry.get('name', '')}{port}{why}".strip()))


def _row(cells: tuple[str, ...]) -> str:
    """The cells in columns. The last one is as long as it is: a host is copied as a whole."""
    *short, last = map(escape, cells)
    return "  ".join([*(cell.rjust(width) for cell, width in zip(short, WIDTHS, strict=True)), last])


def suggestion(entries: list[dict[str, object]]) -> str:
    """Settings that allow what boxes reached, and what they were refused, to be looked at before they are used."""
    uses: dict[str, dict[str, int]] = {}
    for entry in entries:
        wish, verdict = _wish(entry), str(entry.get("verdict", ""))
        if wish and verdict in VERDICTS:
            counts = uses.setdefault(wish, dict.fromkeys(VERDICTS, 0))
            counts[verdict] += 1
    if not uses:
        return NOTHING
    width = max(map(len, uses)) + 4
    rows = ["  " + f'"{wish}",'.ljust(width) + f"# {_why(wish, uses[wish])}" for wish in sorted(uses)]
    return "\n".join(['network = "names"', "allow = [", *rows, "]"]) + "\n"


def _wish(entry: dict[str, object]) -> str:
    """What `allow` would have to say, or "" if nothing would help: an address is not on the internet, for instance."""
    name, port = str(entry.get("name", "")), entry.get("port")
    usual = (SSH, *WEB) if name in FORGES else WEB
    try:
        if not can_be_listed(name):
            return ""
    except ValueError:
        return ""  # somebody has written into the journal
    if not isinstance(port, int) or not port or port in usual:
        return name
    return f"{as_written(name)}:{port}"


def _why(wish: str, counts: dict[str, int]) -> str:
    groups = [f"@{group}" for group, rows in GROUPS.items() if any(text == wish for text, _ in rows)]
    parts = [f"{verdict} {times}" for verdict, times in counts.items() if times]
    return ", ".join([*parts, *(f"in {group}" for group in groups)])
