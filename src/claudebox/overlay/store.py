"""The layers that are kept for a project: one directory each, in its state, where no box sees it.

upper/, work/          what the kernel writes for the project's directory
git-upper/, git-work/  the same for a repository's directory outside of the project (a linked worktree)
decoys/                left by claudebox 0.2.0: the masked files that its boxes could edit, as they were given
note                   whose it is, when its first box began, and what claudebox has changed on the host since
lock                   held while a box uses the layer, or somebody lands or discards it
journal, stage/        a landing that is under way
tips                   commits that branches were at when the first box began
out/                   commits on their way to the host
"""

from __future__ import annotations

import os
import stat
from _json import encode_basestring_ascii as quoted  # the part of `json` in C: the rest takes as long as making a layer

from claudebox import files
from claudebox.errors import Problem, suppress
from claudebox.files import c_call
from claudebox.overlay.changes import DELETED, Baseline, Change, Changes, Never, read_changes
from claudebox.paths import is_below, is_inside, parents
from claudebox.record import Record

GIT = "git-"  # before `upper` and `work`, for the repository's directory
TIPS = "tips"
LAST = "last"  # the highest number that was ever given: refs are named after it
CLOCK = 5  # CLOCK_REALTIME_COARSE, by which the kernel stamps files
NOTE_FORM = 1
MADE_UP = "masked, with made-up values; edited with claudebox 0.2.0"


class Layer(Record):
    """A layer of a project."""

    number: str
    directory: str
    project: str
    git: str  # the repository's directory outside of the project; "" if there is none
    baseline: Baseline
    places: tuple[str, ...] = ("",)  # the directories of the project that it covers; "" is all of it

    @property
    def upper(self) -> str:
        return f"{self.directory}/upper"

    @property
    def journal(self) -> str:
        return f"{self.directory}/journal"

    @property
    def reports(self) -> str:
        """Where the state of the project has what is known of its boxes."""
        return f"{os.path.dirname(os.path.dirname(self.directory))}/reports"

    @property
    def out(self) -> str:
        return f"{self.directory}/out"

    def parts(self) -> list[tuple[str, str, str]]:
        """Each directory of the host that the layer lies over, with its upper and its work directory."""
        found = [
            (_join(self.project, place), _join(self.upper, place), f"{self.directory}/work{number or ''}")
            for number, place in enumerate(self.places)
        ]
        if self.git:
            found.append((self.git, f"{self.directory}/{GIT}upper", f"{self.directory}/{GIT}work"))
        return found

    @property
    def is_whole(self) -> bool:
        return "" in self.places

    def read(self) -> Changes:
        """What it holds, compared with the project as it is now."""
        try:
            upper, lower = os.open(self.upper, files.DIRECTORY), files.open_directory(self.project)
        except OSError as error:
            hint = f"if it is gone for good: claudebox --review discard {self.number}"
            raise Problem(f"{self.project} cannot be compared with its layer: {error.strerror}", hint) from None
        try:
            changes = read_changes(upper, lower, self.baseline, frozenset(_around(self.places)) - {*self.places})
        finally:
            os.close(lower)
            os.close(upper)
        return _without_made_up(changes, f"{self.directory}/decoys")


def _without_made_up(changes: Changes, decoys: str) -> Changes:
    """Hold back what boxes of claudebox 0.2.0 made of masked files: their secrets are made up."""
    given = [os.path.relpath(f"{place}/{name}", decoys) for place, _, names in os.walk(decoys) for name in names]

    def is_made_up(change: Change) -> bool:
        removes = change.kind == DELETED or bool(change.gone)
        return any(is_inside(change.path, one) or (removes and is_below(one, change.path)) for one in given)

    never = [Never(change.path, MADE_UP) for change in changes.changes if is_made_up(change)]
    return Changes(tuple(one for one in changes.changes if not is_made_up(one)), (*changes.never, *never))


def _join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if name else directory


def list_layers(place: str, project: str = "") -> list[Layer]:
    """The layers in a project's state, the oldest first; those of this very directory, if one is named."""
    found = [layer for name in _numbers(place) if (layer := load(place, name))]
    return [layer for layer in found if not project or layer.project == project]


def list_damaged(place: str) -> list[str]:
    """Directories of layers whose note cannot be read, so that nobody knows whose they are."""
    return [f"{place}/{name}" for name in _numbers(place) if load(place, name) is None]


def _numbers(place: str) -> list[str]:
    with suppress(OSError):
        return sorted(filter(str.isdigit, os.listdir(place)), key=int)
    return []


def load(place: str, name: str) -> Layer | None:
    """The layer of this number; None if there is none, or nobody can tell whose it is."""
    import json

    directory = f"{place}/{name}"
    try:
        with open(f"{directory}/note", encoding="ascii") as file:
            note = json.load(file)
        known = {path: (int(one[0]), int(one[1])) for path, one in note["known"].items()}
        return Layer(
            name,
            directory,
            note["project"],
            note["git"],
            Baseline(int(note["since"]), known, int(note.get("inode", 0)), int(note.get("generation", 0))),
            tuple(note.get("places", ("",))),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None  # it was being made when somebody ended claudebox, or nobody but us wrote it


def make_layer(place: str, project: str, git: str, places: tuple[str, ...] = ("",)) -> Layer:
    """Make a new layer over a project, or over some directories of it."""
    try:
        files.make_private(place)
        number = _next_number(place, is_noted="" in places)
        baseline = Baseline(now(), {}, *_identity(project))
        layer = Layer(number, f"{place}/{number}", project, git, baseline, places)
        _make_directories(layer)
        # Nothing is in it yet, so nobody has to wait for the disk.
        note(layer, is_safe=False)
    except OSError as error:
        hint = "see whether the disk is full: df -h ~"
        raise Problem(f"no layer can be made in {place}: {error.strerror}", hint) from None
    return layer


def _identity(project: str) -> tuple[int, int]:
    with files.Open(files.open_directory(project)) as here:
        return os.fstat(here).st_ino, files.generation(here)


def is_of_another(layer: Layer) -> bool:
    """Whether the directory of the project was deleted, and another one made at its path."""
    with files.Open(files.open_directory(layer.project)) as here:
        return layer.baseline.is_other(os.fstat(here), files.generation(here))


def extend(layer: Layer, places: tuple[str, ...]) -> Layer:
    """The layer with these directories, too. Who calls this holds its lock."""
    added = tuple(place for place in places if place not in layer.places)
    if added:
        layer = layer.replace(places=(*layer.places, *added))
        _make_directories(layer)
        note(layer)
    return layer


def _make_directories(layer: Layer) -> None:
    """Make what the kernel needs. What the box sees of a directory has the mode of the layer's own."""
    made = [(_join(layer.project, path), _join(layer.upper, path)) for path in sorted(_around(layer.places))]
    made += [(root, upper) for root, upper, _ in layer.parts() if root == layer.git]
    for root, upper in made:
        if not os.path.lexists(upper):
            os.mkdir(upper, files.PRIVATE)
            os.chmod(upper, stat.S_IMODE(os.stat(root).st_mode) & files.PERMISSIONS)
    for _, _, work in layer.parts():
        files.make_private(work)


def tidy(layer: Layer) -> None:
    """Remove what the kernel has left in a layer that no box has mounted: a directory that nobody may look into.

    Whoever counts the size would have to say that there may be more. The next mount makes it again.
    """
    for _, _, work in layer.parts():
        with suppress(OSError):  # then it counts as unknown, and nobody is kept from landing
            files.remove_path(f"{work}/work")


def has_room(layer: Layer, places: tuple[str, ...]) -> bool:
    """Whether it can cover these directories, too. A box may have deleted one of them, or put something else there."""
    found = [_lstat(_join(layer.upper, path)) for path in _around(places)]
    return all(status is None or stat.S_ISDIR(status.st_mode) for status in found)


def is_untouched(layer: Layer) -> bool:
    """Whether the boxes of a layer have left nothing in it: there are only the directories that claudebox made."""
    made = _around(layer.places)
    for path in made:
        ours, hosts = _lstat(_join(layer.upper, path)), _lstat(_join(layer.project, path))
        if ours is None or hosts is None or not stat.S_ISDIR(ours.st_mode):
            return False
        if (ours.st_mode ^ hosts.st_mode) & files.PERMISSIONS:
            return False
        if not made.issuperset(f"{path}/{name}".lstrip("/") for name in os.listdir(_join(layer.upper, path))):
            return False
    return True


def _around(places: tuple[str, ...]) -> set[str]:
    """The directories that claudebox makes in a new layer, by their paths in the project: these, and those above."""
    return {"", *places, *(above for place in places for above in parents(place))}


def was_touched(layer: Layer, since: int) -> bool:
    """Whether a box has changed something in it since then, in nanoseconds.

    What claudebox made is marked by it, and by the kernel that mounts it: of those directories, it counts when a name
    in them came or went. So it is with what was deleted: the kernel has one device with many names for all of it, and
    marks it whenever it takes one of them away.
    """
    mounted = {_join(layer.upper, path) for path in _around(layer.places)}
    waiting = [layer.upper]
    while waiting:
        path = waiting.pop()
        status = _lstat(path)
        if status is not None and stat.S_ISCHR(status.st_mode):
            continue
        if status is None or (status.st_mtime_ns if path in mounted else status.st_ctime_ns) >= since:
            return True
        if stat.S_ISDIR(status.st_mode):
            try:
                waiting += [f"{path}/{name}" for name in os.listdir(path)]
            except OSError:
                return True  # a box has locked it
    return False


def now() -> int:
    """The time by which the kernel stamps files, in nanoseconds."""
    import time

    return time.clock_gettime_ns(CLOCK)


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _next_number(place: str, *, is_noted: bool) -> str:
    """A number for a new layer, noted if it may become the name of refs: it is never given again."""
    try:
        with open(f"{place}/{LAST}") as file:
            last = int(file.read())
    except (OSError, ValueError):
        last = 0
    number = max([last, *map(int, _numbers(place))]) + 1
    while True:
        try:
            os.mkdir(f"{place}/{number}", files.PRIVATE)
            break
        except FileExistsError:
            number += 1  # another box is starting
    if is_noted:
        files.write_whole(f"{place}/{LAST}", str(number).encode())
    return str(number)


def note(layer: Layer, *, is_safe: bool = True) -> None:
    """Note whose layer it is. Most boxes make one, so this is JSON without the module for it."""
    known = ", ".join(
        f"{quoted(path)}: [{inode}, {changed}]" for path, (inode, changed) in layer.baseline.known.items()
    )
    text = (
        f'{{"form": {NOTE_FORM}, "project": {quoted(layer.project)}, "git": {quoted(layer.git)}, '
        f'"places": [{", ".join(map(quoted, layer.places))}], "since": {layer.baseline.since}, '
        f'"inode": {layer.baseline.project}, "generation": {layer.baseline.generation}, "known": {{{known}}}}}'
    )
    files.write_whole(f"{layer.directory}/note", text.encode(), is_safe=is_safe)


def write_out(layer: Layer) -> None:
    """Have the kernel write everything of the layer to the disk.

    Who has a file mapped, in another box, changes it without a trace in its times until it is written out; then again
    each change is marked. Without that, what lands might not be what was shown.
    """
    with files.Open(os.open(layer.upper, files.DIRECTORY)) as descriptor:
        c_call("syncfs", descriptor)


def lock(layer: Layer) -> int:
    """Take a layer for oneself. Returns a descriptor that holds it, or -1 if somebody else has it or it is gone."""
    try:
        descriptor = files.open_lock(f"{layer.directory}/lock")
    except OSError:
        return -1
    if files.take_lock(descriptor) and os.path.lexists(f"{layer.directory}/note"):
        return descriptor
    os.close(descriptor)
    return -1


def discard(layer: Layer) -> None:
    """Remove a layer. Who calls it holds the lock, and has brought a landing in order that somebody ended."""
    if os.path.lexists(layer.journal):
        raise Problem(
            f"review {layer.number} cannot go: its landing is not undone, and holds files of the project",
            "bring it in order first: claudebox --review list",
        )
    place, name = os.path.split(layer.directory)
    try:
        with files.Open(os.open(place, files.DIRECTORY)) as here:
            # First its name goes, in one step: half a layer is none.
            gone = f".gone-{name}"
            files.remove_tree(here, gone, is_ours=True)
            os.rename(name, gone, src_dir_fd=here, dst_dir_fd=here)
            files.remove_tree(here, gone, is_ours=True)
    except OSError as error:
        raise Problem(f"{layer.directory} cannot be removed: {error.strerror}", f"rm -r {layer.directory}") from None
