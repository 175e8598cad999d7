"""The line at the end of a box: which names were refused, how often, and what would allow them."""

from __future__ import annotations

from claudebox.features.names.terms import HELPS, LENGTH
from claudebox.view.text import escape, fill

MOST_SHOWN = 6


def refused_text(memory: bytes) -> str:
    """What the process outside has written about refusals, for people; "" if there were none."""
    size = int.from_bytes(memory[:LENGTH], "big")
    lines = memory[LENGTH : LENGTH + size].decode(errors="replace").splitlines()
    rows = [(line.startswith(HELPS), line.removeprefix(HELPS).partition(" ")) for line in lines]
    found = [(int(times), escape(name), helps) for helps, (times, _, name) in rows if times.isdigit() and name]
    if not found:
        return ""
    shown = sorted(found, reverse=True)[:MOST_SHOWN]
    refused = ", ".join(name if times == 1 else f"{name} ({times} times)" for times, name, _ in shown)
    more = f", and {len(found) - len(shown)} more (--network-log)" if len(found) > len(shown) else ""
    options = " ".join(f"--allow {name}" for _, name, helps in shown if helps)
    text = f"claudebox: refused by --network names: {refused}{more}"
    # What is to be pasted stays on one line, however long it is.
    allowing = [f"  to allow: {options}"] if options else []
    return "\n".join([*fill(text.split(), 0, break_words=False), *allowing]) + "\n"
