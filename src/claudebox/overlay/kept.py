"""Keeps the report of a box until somebody has seen it, and what it needs if claudebox is killed before.

Both are in the state of the project, where no box sees them. Before the box starts, the picture of what was there is
written to a file, which is locked as long as this claudebox lives. A picture that nobody holds belongs to a box whose
end nobody looked at: the next start does. It cannot tell then what the box changed from what others did since.

Beside that, for all projects, there is a list of the files that commits have brought which were made in boxes: such a
file never counts as the user's own. A later commit of the user has it as well, so the commit does not tell. The list
only grows. If it cannot be read, or a box made more than anybody could look at, nobody knows.
"""

from __future__ import annotations

import os

from claudebox import files
from claudebox.model import Guarded, Plan, Trace
from claudebox.output.terminal import ask, say, show
from claudebox.paths import is_inside
from claudebox.state import Instance
from claudebox.text import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from claudebox.overlay.comparison import Picture
    from claudebox.settings.words import Request

LAST, UNSEEN, PICTURE, INTRODUCED = "last", "unseen", "box-", "introduced"
LARGEST = 1 << 24
MORE = b"and more"  # in the list: what stands for the files that nobody could look at
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

    from claudebox.host.git.refs import Refs
    from claudebox.overlay.comparison import Picture

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
    from claudebox.overlay.report import report

    path = ""
    for path, picture in _forgotten(plan.state) if plan.state is not None and plan.guard.roots else ():
        if report(plan, picture, ask if may_ask else None, heading=NOBODY_LOOKED):
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
    from claudebox.state import find_state
    from claudebox.state.reach import find_own_repository, reach_of

    host = read_host()
    state = find_state(host).instance(find_own_repository(reach_of(host)).canonical_root(host.cwd))
    show(_text(state, LAST) or NOTHING)
    return 0


def can_change_claudebox(plan: Plan) -> bool:
    """Whether the agent can write this program's own files: then what the end needs is loaded before the box starts."""
    own_source = os.path.realpath(__file__.rpartition("/overlay/")[0])
    return any(is_inside(own_source, root) for root in plan.guard.roots)


def is_alone(reports: str, project: str) -> bool:
    """Whether no box that writes there runs, and every one that has ended was looked at: each has a picture until then.

    The picture of another project's box counts if it names this one.
    """
    instances, named = os.path.dirname(os.path.dirname(reports)), ascii(project)[1:-1].encode()
    try:
        for instance in os.listdir(instances):
            place = f"{instances}/{instance}/reports"
            pictures = [name for name in os.listdir(place) if name.startswith(PICTURE)] if os.path.isdir(place) else []
            for picture in pictures:
                with open(f"{place}/{picture}", "rb") as file:
                    if place == reports or named in file.read():
                        return False
        return True
    except OSError:
        return not os.path.isdir(instances)


def _place(reports: str) -> str:
    """The list, in the directory of the whole state."""
    return f"{os.path.dirname(os.path.dirname(os.path.dirname(reports)))}/{INTRODUCED}"


def record(path: str, mode: int, blob: bytes) -> bytes:
    return b"%o %s %s" % (mode, blob.hex().encode(), os.fsencode(path))


def read_introduced(reports: str) -> frozenset[bytes] | None:
    """The files that boxes have brought, each as a `record`; None if nobody knows them all."""
    try:
        with open(_place(reports), "rb") as file:
            *lines, rest = file.read(LARGEST).split(b"\0")
    except FileNotFoundError:
        return frozenset()
    except OSError:
        return None
    return None if rest or MORE in lines else frozenset(lines)


def note_introduced(reports: str, entries: Set[bytes], *, is_whole: bool) -> None:
    """Add to them, in one piece: another box may end at the same time. Raises OSError."""
    known = read_introduced(reports)
    new = entries - known if known is not None else set[bytes]()
    if not is_whole and known is not None:
        new |= {MORE}
    if new:
        files.make_private(os.path.dirname(_place(reports)))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(_place(reports), flags, files.PRIVATE_FILE)
        try:
            files.write_all(descriptor, b"".join(line + b"\0" for line in sorted(new)))
        finally:
            os.close(descriptor)
