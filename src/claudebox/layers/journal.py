"""The journal of a landing: what is to land, what was made for it, and how far it is."""

from __future__ import annotations

import os

from claudebox.layers.changes import Change, Seen
from claudebox.layers.store import Layer, replace_file
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STAGING, LANDING = "staging", "landing"
DONE = ".done"  # the end of the journal's name when everything has landed


class Operation(Record):
    """A change on its way, and what was made for it in the stage."""

    change: Change
    staged: Seen | None = None


class Journal(Record):
    """A landing that somebody began."""

    file: str
    is_done: bool
    has_landed_some: bool  # whether anything in the project may have been touched
    stage: str
    operations: tuple[Operation, ...]


def write_journal(layer: Layer, phase: str, stage: str, operations: list[Operation]) -> None:
    import json

    rows = [[_as_row(one.change), _numbers(one.staged)] for one in operations]
    replace_file(layer.journal, json.dumps({"phase": phase, "stage": stage, "operations": rows}).encode())


def _as_row(change: Change) -> list[Any]:
    return [change.path, change.kind, change.what, change.mode, change.gone, _numbers(change.old)]


def _numbers(one: Seen | None) -> list[int] | None:
    return None if one is None else [one.device, one.inode, one.mode, one.size, one.modified, one.changed]


def _operation(row: list[Any]) -> Operation:
    (path, kind, what, mode, gone, old), staged = row
    change = Change(path, kind, what, mode, 0, Seen(*old) if old else None, gone)
    return Operation(change, Seen(*staged) if staged else None)


def read_journal(layer: Layer) -> Journal | None:
    import json

    is_done = os.path.lexists(layer.journal + DONE)
    file = layer.journal + (DONE if is_done else "")
    try:
        with open(file, encoding="ascii") as written:
            said = json.load(written)
    except FileNotFoundError:
        return None
    operations = tuple(_operation(row) for row in said["operations"])
    return Journal(file, is_done, said["phase"] == LANDING, said["stage"], operations)
