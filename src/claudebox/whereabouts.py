"""Where the state of a user is: in ~/.claudebox, or in three directories where XDG variables said.

The variables decide only as long as nothing is kept. A file of a project, such as .envrc, can set them: if they counted
at every start, whoever writes that file could make claudebox forget settings, masks and agreements. So it is noted
what they said, in one place that no variable moves, and from then on the note counts. `--places` moves and tells.

For the same reason they are believed only if they lead to a place of the user's own, where no agent and no other
account can put or turn anything. Whatever else they say is an error, not a reason to go elsewhere in silence.
"""

from __future__ import annotations

import stat

from claudebox.host.tree import OTHERS_CAN_WRITE, Tree
from claudebox.paths import is_below, is_inside, normalize, parents
from claudebox.problem import Problem, quote
from claudebox.record import Record
from claudebox.remembered import Form, Memory, recall
from claudebox.state import CONFIG, SHOWN, XDG, Apart, State, note_directory, note_of_places, xdg_place
from claudebox.trust.reach import Reach
from claudebox.trust.secret_places import is_systems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.host import Host

WORDS = ("configuration", "state", "cache")
WERE = "were "  # before the same words, in the note of a move that has not ended
GROUP_CAN_WRITE = 0o020
_NAMES = State("", Apart("", "", ""))
# Beginnings of the names that claudebox gives in its directories.
GIVEN = tuple(
    path.rpartition("/")[2]
    for path in (
        *_NAMES.users_own(),
        *(_NAMES.instances, _NAMES.decisions, _NAMES.auth_lock, _NAMES.broker, note_of_places("")),
        *(_NAMES.cache, _NAMES.packages, _NAMES.nix_trial, _NAMES.layer_trial),
    )
)
NOTE = Form("Where claudebox keeps its files, whatever the variables say now. To see and to move them: --places")


class Note(Record):
    """What is noted. A move that has not ended has two sets of directories."""

    now: Apart
    before: Apart | None = None

    def lines(self) -> list[str]:
        before = zip(WORDS, _paths(self.before), strict=True) if self.before else ()
        return [
            *(f"{word} {path}" for word, path in zip(WORDS, _paths(self.now), strict=True)),
            *(f"{WERE}{word} {path}" for word, path in before),
        ]


def _paths(apart: Apart) -> tuple[str, str, str]:
    return apart.configuration, apart.state, apart.cache


def new_note(home: str) -> str:
    """What will be the note when it is whole."""
    return f"{note_of_places(home)}.new"


def find_elsewhere(host: Host, home: str) -> State:
    """Where the state of a home is. Raises a Problem if that is in doubt: another state would be another box."""
    state = recall_state(host.tree, home, host.person.uid)
    if home != host.person.home:
        return state or State(home)
    if state is None:
        state = State(home, choose(host), is_noted=False)
    _refuse_unread_settings(host, state)
    return state


def recall_note(tree: Tree, home: str, uid: int) -> Note | None:
    path = note_of_places(home)
    memory = recall(tree, path, NOTE, uid)
    if memory.condition == Memory.ABSENT or _is_closed(tree, home, uid):
        return None
    places = dict(line.partition(" /")[::2] for line in memory.lines)
    words = places.keys() & {*WORDS}, {word for word in places if word.startswith(WERE)}
    is_whole = len(words[0]) == len(WORDS) and len(words[1]) in (0, len(WORDS))
    is_whole = is_whole and not any(_objection_to_name(f"/{path}") for path in places.values())
    if memory.condition == Memory.DAMAGED or not is_whole:
        names = " and ".join(name for name, _ in XDG[:2])
        status = tree.lstat(path)
        is_others = status is not None and status.st_uid != uid  # as with `sudo -E`
        trouble = memory.trouble or "lines are missing, or lead nowhere"
        raise Problem(
            f"{path} tells where claudebox keeps its files, and is damaged: {trouble}",
            "start claudebox as that user, or with a HOME of your own"
            if is_others
            else f"see that {names} say what they\n      said when it was written; then:\n      rm {quote(path)}",
        )
    now = Apart(*(f"/{places[word]}" for word in WORDS))
    return Note(now, Apart(*(f"/{places[WERE + word]}" for word in WORDS)) if words[1] else None)


def _is_closed(tree: Tree, home: str, uid: int) -> bool:
    """Whether it is somebody else's home, which this user cannot enter: nothing of this user can be in it.

    Who passes for root in a namespace (`unshare --map-root-user`) has the home of root in the account's entry.
    """
    status = tree.lstat(home)
    return status is not None and status.st_uid != uid and tree.lstat(f"{home}/.") is None


def recall_state(tree: Tree, home: str, uid: int) -> State | None:
    """Where the state is; None if nothing is kept yet."""
    note, in_home = recall_note(tree, home, uid), State(home)
    has_home = tree.lstat(in_home.directory) is not None
    if note is None:
        return in_home if has_home else None
    if note.before is not None:
        raise Problem(
            "claudebox was moving its files, and was ended before all were there",
            "to go on: claudebox --places xdg\n      or back: claudebox --places home",
        )
    if has_home:
        raise Problem(
            f"claudebox finds two states: {in_home.directory} and {note.now.state}",
            f"look at both, and put one away:\n      mv {quote(in_home.directory)} {quote(in_home.directory + '.old')}",
        )
    for directory in (note.now.configuration, note.now.state):
        _require_own(tree, directory, uid)
    return State(home, note.now)


def _require_own(tree: Tree, directory: str, uid: int) -> None:
    """What is missing may be on a disk that is missing. To begin anew would be to forget what was agreed and masked."""
    status = tree.lstat(directory)
    if status is not None and tree.is_plain_directory(directory) and status.st_uid == uid:
        return
    what = "is not there" if status is None else "is not a directory of yours"
    raise Problem(
        f"claudebox keeps its files in {directory}, which {what}",
        f"bring it back; or, to begin without what was in it:\n      mkdir -p -m 700 {quote(directory)}",
    )


def _refuse_unread_settings(host: Host, state: State) -> None:
    """Whoever wrote settings where the variables say expects them to count."""
    tree, (name, default) = host.tree, XDG[0]
    other = f"{xdg_place(host.environ.get(name, ''), default, state.home)}/{CONFIG}"
    if other == state.config or not other.startswith("/") or tree.lstat(other) is None:
        return
    if tree.resolve(other) == tree.resolve(state.config):
        return
    what = f"{other} would not be read: claudebox keeps its settings in {state.configuration_directory}"
    if Reach(tree, host.cwd, (state,)).leads_through(other):
        unset = f"\n      or without it: env -u {name} claudebox …" if host.environ.get(name) else ""
        raise Problem(f"{what}; and an agent can have written it", putting_away(other) + unset)
    if tree.lstat(state.config) is not None:
        raise Problem(what, f"you have another there already; {putting_away(other)}")
    raise Problem(what, f"put it there, or away:\n      mv {quote(other)} {quote(state.configuration_directory)}/")


def putting_away(path: str) -> str:
    """What to type, in lines that are not too long."""
    directory, _, name = path.rpartition("/")
    return f"put it away:\n      cd {quote(directory)}\n      mv {quote(name)} {quote(name + '.old')}"


def choose(host: Host, states: tuple[State, ...] = ()) -> Apart:
    """The directories that the variables name. `states` are those in use, if there are any: agents worked with them."""
    home = host.person.home
    if not states:  # nothing is kept for this home; if HOME is not that of the account, something may be for that
        states = tuple(recall_state(host.tree, one, host.person.uid) or State(one) for one in host.person.homes)
    reach = Reach(host.tree, host.cwd, states)
    found = [_judged(host, reach, name, xdg_place(host.environ.get(name, ""), default, home)) for name, default in XDG]
    noted = _judged(host, reach, "HOME", note_directory(home))
    if noted != note_directory(home):
        raise _refusal("HOME", note_directory(home), f"a symlink leads from there to {noted}")
    for (name, _), path in zip(XDG, found, strict=True):
        if any(is_below(path, other) or is_below(other, path) for other in (*found, noted)):
            raise _refusal(name, path, "it and another directory of claudebox lie inside each other")
    return Apart(*found)


def _judged(host: Host, reach: Reach, name: str, path: str) -> str:
    """The real path, if it can be believed."""
    if objection := _objection_to_name(path):
        raise _refusal(name, path, objection)
    real = host.tree.destination(path)
    if real is None:
        raise _refusal(name, path, "its symlinks lead nowhere")
    if objection := (
        _objection_to_name(real)
        or _objection_to_way(reach, path, real)
        or _objection_to_owners(host, real)
        or _objection_to_content(host.tree, real)
    ):
        raise _refusal(name, path, objection)
    return real


def _objection_to_name(path: str) -> str:
    if not path.startswith("/"):
        return "it is not an absolute path"
    if normalize(path) != path:
        return "it has `..`, `.` or `//` in it"
    return "" if path.isprintable() else "it has characters that do not show"


def _objection_to_way(reach: Reach, path: str, real: str) -> str:
    """What speaks against where it is, and how it leads there."""
    can_be_project = not any(is_inside(state.home, reach.project) for state in reach.kept)
    if can_be_project and is_inside(real, reach.project):
        return f"it is inside of {reach.project}, where an agent works"
    in_home = next((state.directory for state in reach.kept if not state.apart), "")
    if any(is_inside(one, in_home) for one in (path, real) if in_home):
        return f"it is in {in_home}"
    if is_systems(real):
        return f"{real} belongs to the system"
    if any(reach.holds(link) for link, _ in reach.tree.links(path)):
        return "it leads through a symlink that an agent can have made"
    return "boxes could write there" if reach.holds(real) and not reach.keeps(real) else ""


def _objection_to_owners(host: Host, real: str) -> str:
    """What speaks against the directories on the way, as far as they are there: others could put something else there.

    How the home itself can be reached is not the variables' matter.
    """
    tree, person = host.tree, host.person
    way = ["/", *reversed(parents(real)), real]
    for path in [one for one in way if is_below(one, person.home)] if is_inside(real, person.home) else way:
        status = tree.lstat(path)
        if status is None:
            return ""  # it will be made, for this user alone
        if not stat.S_ISDIR(status.st_mode):
            return f"{path} is not a directory"
        if status.st_uid not in ((person.uid,) if path == real else (person.uid, 0)):
            return f"{path} belongs to another user (uid {status.st_uid})"
        is_groups = status.st_mode & GROUP_CAN_WRITE and status.st_gid not in (person.gid, 0)
        if status.st_mode & OTHERS_CAN_WRITE or is_groups:
            return f"others can write {path}"
    return ""


def _objection_to_content(tree: Tree, real: str) -> str:
    """Somebody else may keep something by this name, such as a checkout of claudebox: `--uninstall` would remove it."""
    names = sorted(tree.entries(real))
    return f"{names[0]} is in it, and nothing of claudebox" if names and not any(map(_is_given, names)) else ""


def _is_given(name: str) -> bool:
    return name.startswith(GIVEN)


def _refusal(name: str, path: str, why: str) -> Problem:
    return Problem(
        f"claudebox would keep files in {path} ({name}), and does not: {why}",
        f"without it: env -u {name} claudebox …\n"
        f"      or have all of it in your home, whatever the variables say:\n      mkdir -m 700 {SHOWN.directory}",
    )
