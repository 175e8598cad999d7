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
from claudebox.record import Record
from claudebox.state import Instance
from claudebox.text import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from claudebox.overlay.comparison import Picture
    from claudebox.settings.words import Request

LAST, UNSEEN, PICTURE, INTRODUCED, MISSING = "last", "unseen", "box-", "introduced", "missing"
MOST_MISSING = 1000
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
    name = os.urandom(6).hex()
    path, hidden = (f"{plan.state.reports}/{begin}{name}" for begin in (PICTURE, "."))
    try:
        files.make_private(plan.state.reports)
        descriptor = os.open(hidden, files.NEW_FILE, files.PRIVATE_FILE)
        files.take_lock(descriptor)
        files.write_all(descriptor, ascii(_plain(picture.replace(indexes={}))).encode())
        os.rename(hidden, path)
    except OSError:
        return ""  # a full disk must not keep the box from starting
    return path


def _plain(value: object) -> object:
    """Records as tuples: what `literal_eval` reads again."""
    if isinstance(value, Record):
        return tuple(map(_plain, vars(value).values()))
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (tuple, frozenset)):
        return tuple(map(_plain, value))
    return value


def _read_picture(text: bytes) -> Picture | None:
    """None for one that is cut short: the machine stopped meanwhile."""
    import ast

    from claudebox.host.git.directory import Refs
    from claudebox.overlay.comparison import Picture

    try:
        roots, traces, since, watched, repositories, refs, indexes, modules, unread = ast.literal_eval(text.decode())
    except (ValueError, SyntaxError):
        return None
    return Picture(
        roots,
        {path: Trace(*values) for path, values in traces.items()},
        since,
        tuple(Guarded(*values) for values in watched),
        repositories,
        {path: Refs(*values) for path, values in refs.items()},
        indexes,
        {root: frozenset(names) for root, names in modules.items()},
        frozenset(unread),
    )


def _pictures(state: Instance, *, is_running: bool) -> Iterator[tuple[str, bytes]]:
    """The pictures of boxes that still run; or those that nobody holds, each locked while the caller looks at it."""
    names = os.listdir(state.reports) if os.path.isdir(state.reports) else ()
    for path in [f"{state.reports}/{name}" for name in names if name.startswith(PICTURE)]:
        try:
            with open(path, "rb") as file:
                if files.take_lock(file.fileno()) != is_running:
                    yield path, file.read()
        except FileNotFoundError:
            continue  # that box has just ended


def find_running(plan: Plan) -> dict[str, Picture]:
    """The pictures of boxes that run in this project now, by their paths."""
    found = _pictures(plan.state, is_running=True) if plan.state is not None else ()
    return {path: picture for path, text in found if (picture := _read_picture(text)) is not None}


def oldest(own: Picture, others: dict[str, Picture]) -> Picture:
    """What was there before any of these boxes."""
    for one in sorted(others.values(), key=lambda one: -one.since):
        own = one.before(own)
    return own


def look_back(plan: Plan, *, may_ask: bool) -> bool:
    """Look at what boxes have left whose end nobody saw, as if they had just ended. Returns whether there were some."""
    from claudebox.overlay.report import report

    path, state = "", plan.state
    for path, text in _pictures(state, is_running=False) if state is not None and plan.guard.roots else ():
        picture = _read_picture(text)
        if picture is None and state is not None:
            say(NOTHING_KNOWN)
            note_introduced(state.reports, frozenset(), is_whole=False)
            os.unlink(path)
        elif picture is not None and report(plan, picture, ask if may_ask else None, heading=NOBODY_LOOKED):
            os.unlink(path)
    return bool(path)


def keep_report(state: Instance | None, shown: str, everything: str) -> bool:
    """Keep what is about to be said, before what nobody has seen yet: what is too long is cut at its end.

    Returns whether it could be kept, or somebody is there to read it.
    """
    try:
        if state is not None:
            files.make_private(state.reports)
            unseen = _read(state, UNSEEN)
            last = _read(state, LAST) if unseen else b""
            _write(state, LAST, f"{shown}\n{everything}\n", last)
            _write(state, UNSEEN, shown, unseen)
    except OSError:
        return not _is_silent()
    return True


def _is_silent() -> bool:
    """Whether nobody hears what is said: a terminal that is gone has become /dev/null."""
    return os.path.samestat(os.fstat(2), os.stat(os.devnull))


def _write(state: Instance, name: str, text: str, before: bytes) -> None:
    content = text.encode(errors="replace") + before
    files.write_whole(f"{state.reports}/{name}", content if len(content) < MOST_BYTES else content[:MOST_BYTES] + CUT)


def note_seen(state: Instance | None) -> None:
    """Note that what was kept has been said, unless to nobody."""
    try:
        if state is not None and not _is_silent():
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


def read_introduced(reports: str) -> frozenset[bytes]:
    """The files that boxes have brought, each as a `record`; with MORE among them, nobody knows them all."""
    try:
        with open(_place(reports), "rb") as file:
            *lines, rest = file.read(LARGEST).split(b"\0")
    except FileNotFoundError:
        return frozenset()
    except OSError:
        return frozenset((MORE,))
    return frozenset((*lines, MORE) if rest else lines)


def note_introduced(reports: str, entries: Set[bytes], *, is_whole: bool) -> None:
    """Add to them, in one piece: another box may end at the same time. Raises OSError."""
    known = read_introduced(reports)
    new = (entries if is_whole else {*entries, MORE}) - known
    if new and MORE not in known:
        files.make_private(os.path.dirname(_place(reports)))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with files.Open(os.open(_place(reports), flags, files.PRIVATE_FILE)) as descriptor:
            files.write_all(descriptor, b"".join(line + b"\0" for line in sorted(new)))


def read_missing(state: Instance) -> frozenset[str]:
    """The commits that could not be looked at, since something of them was missing."""
    return frozenset(_read(state, MISSING).decode(errors="replace").split())


def note_missing(state: Instance, commits: Set[str]) -> None:
    files.make_private(state.reports)
    files.write_whole(f"{state.reports}/{MISSING}", "\n".join(sorted(commits)[:MOST_MISSING]).encode())
