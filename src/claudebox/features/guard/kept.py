"""Keeps the report of a box until somebody has seen it, and what it needs if claudebox is killed before.

Both are in the state of the project, where no box sees them. Before the box starts, the picture of what was there is
written to a file, which is locked as long as this claudebox lives. A picture that nobody holds belongs to a box whose
end nobody looked at: the next start does. It cannot tell then what the box changed from what others did since.
"""

from __future__ import annotations

import os

from claudebox import files
from claudebox.layers.introduced import PICTURE, note_introduced
from claudebox.model import Guarded, Plan, Trace
from claudebox.state import Instance
from claudebox.terminal import ask, say, show
from claudebox.text import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from claudebox.features.guard.changes import Picture
    from claudebox.settings.words import Request

LAST, UNSEEN = "last", "unseen"
MOST_BYTES = 1 << 22
CUT = b"\nThe rest was too long to be kept.\n"
NOBODY_SAW = "claudebox: what an earlier box left, which perhaps nobody has seen:\n"
NOBODY_LOOKED = (
    "claudebox: claudebox was killed during an earlier box. Since that one started,\n"
    "it or somebody else left the following.\n"
)
NOTHING_KNOWN = "claudebox: what an earlier box left is not known: this machine stopped while it ran\n"
AGAIN = "All of it again: claudebox --report\n"
NOTHING = "No box of this project has left anything to report.\n"


def keep_picture(plan: Plan, picture: Picture) -> str:
    """Write a picture, and lock it until this process ends. Returns its path; "" if nothing is kept for the project."""
    if plan.state is None or not os.path.isdir(plan.state.directory):
        return ""
    traces = {path: (one.identity, one.content, one.mode, one.names) for path, one in picture.files.items()}
    watched = [(one.path, one.group, one.reason) for one in picture.watched]
    refs = {path: (one.loose, one.packed, one.tables, one.is_whole) for path, one in picture.refs.items()}
    text = ascii((traces, picture.since, watched, picture.repositories, refs))
    name = os.urandom(6).hex()
    path, hidden = (f"{plan.state.reports}/{begin}{name}" for begin in (PICTURE, "."))
    try:
        files.make_private(plan.state.reports)
        descriptor = os.open(hidden, files.NEW_FILE, files.PRIVATE_FILE)
        files.take_lock(descriptor)
        files.write_all(descriptor, text.encode())
        os.rename(hidden, path)
    except OSError:
        return ""  # a full disk must not keep the box from starting
    return path


def _forgotten(state: Instance) -> Iterator[tuple[str, Picture]]:
    """The pictures that nobody holds. Each is locked while the caller looks at it."""
    import ast

    from claudebox.features.guard.changes import Picture
    from claudebox.host.git.directory import Refs

    for path in [f"{state.reports}/{name}" for name in os.listdir(state.reports) if name.startswith(PICTURE)]:
        with open(path, "rb") as file:
            if not files.take_lock(file.fileno()):
                continue  # that box still runs
            try:
                traces, since, watched, repositories, refs = ast.literal_eval(file.read().decode())
            except (ValueError, SyntaxError):  # the machine stopped meanwhile
                say(NOTHING_KNOWN)
                note_introduced(state.reports, frozenset(), is_whole=False)
                remove(path)
                continue
            known = {one: Trace(*values) for one, values in traces.items()}
            places = tuple(Guarded(*values) for values in watched)
            tips = {one: Refs(*values) for one, values in refs.items()}
            yield path, Picture(known, since, places, repositories, tips, {})


def look_back(plan: Plan, *, may_ask: bool) -> bool:
    """Look at what boxes have left whose end nobody saw, as if they had just ended. Returns whether there were some."""
    from claudebox.features.guard import act

    path = ""
    for path, picture in _forgotten(plan.state) if plan.state is not None and plan.guard.roots else ():
        if act.report(plan, picture, ask if may_ask else None, heading=NOBODY_LOOKED):
            remove(path)
    return bool(path)


def remove(path: str) -> None:
    if path:
        os.unlink(path)


def keep_report(state: Instance | None, shown: str, everything: str) -> None:
    """Keep what is about to be said, before what nobody has seen yet: what is too long is cut at its end."""
    if state is not None:
        try:
            files.make_private(state.reports)
            unseen = _read(state, UNSEEN)
            last = _read(state, LAST) if unseen else b""
            _write(state, LAST, f"{shown}\n{everything}\n", last)
            _write(state, UNSEEN, shown, unseen)
        except OSError:
            pass  # it is said all the same


def _write(state: Instance, name: str, text: str, before: bytes) -> None:
    content = text.encode(errors="replace") + before
    files.write_whole(f"{state.reports}/{name}", content if len(content) < MOST_BYTES else content[:MOST_BYTES] + CUT)


def note_seen(state: Instance | None) -> None:
    """Note that what was kept has been said, unless to nobody: a terminal that is gone has become /dev/null."""
    try:
        if state is not None and not os.path.samestat(os.fstat(2), os.stat(os.devnull)):
            os.unlink(f"{state.reports}/{UNSEEN}")
    except OSError:
        pass


def _read(state: Instance, name: str) -> bytes:
    try:
        with open(f"{state.reports}/{name}", "rb") as file:
            return file.read(MOST_BYTES + len(CUT))
    except OSError:
        return b""


def _text(state: Instance, name: str) -> str:
    return "".join(f"{escape(line)}\n" for line in _read(state, name).decode(errors="replace").splitlines())


def show_unseen(state: Instance) -> None:
    say(NOBODY_SAW + _text(state, UNSEEN) + AGAIN)
    note_seen(state)


def show_report(_: Request) -> int:
    """`--report`: the last report of this project, whole."""
    from claudebox.host import read_host
    from claudebox.state.reach import own_instance

    show(_text(own_instance(read_host()), LAST) or NOTHING)
    return 0
