"""Takes a layer for the box, lies it over the project, and asks when the box has ended what is to land."""

from __future__ import annotations

import os
import stat

from claudebox import files
from claudebox.errors import Problem
from claudebox.files import c_call
from claudebox.host.git import find_repository
from claudebox.host.git.directory import read_head, read_refs
from claudebox.host.tree import Tree
from claudebox.model import COVER, FILE, MASK, UNSEEN, Covered, Launch, Mount, Review
from claudebox.output.terminal import say
from claudebox.overlay import changes, store
from claudebox.overlay.changes import kind_seen
from claudebox.overlay.kept import can_change_claudebox, is_alone
from claudebox.overlay.machine import WALLS, WITHOUT
from claudebox.overlay.store import Layer
from claudebox.process.companion import Companion
from claudebox.process.isolation import layer_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Deed

TRIAL = "user.trial"  # an attribute: without those, a layer cannot mark a directory as replaced
BIND_ALL = 0x1000 | 0x4000  # MS_BIND and MS_REC
OF_ANOTHER = """\
claudebox: review {0} is of another directory that was here before, and stays as it is:
claudebox --review show {0} (or discard)
"""
NEEDS = "a layer needs Linux 5.11, and room on ext4, btrfs, xfs or tmpfs (df -h ~)"


def hold_layer(launch: Launch) -> Companion:
    """Take the layer that was kept, or a new one, and hold it as long as the box lives: no two boxes share one."""
    review = launch.get(Review)
    layer, held = _take_layer(review)
    _require_attributes(layer.upper, review)
    made = [one.path for one in review.direct if one.identity == UNSEEN and _make_directory(one.path)]
    launch.mounts = usable_mounts(launch.mounts, review, layer)
    usable = {mount.source for mount in launch.mounts}
    launch.keep(review.replace(direct=tuple(one for one in review.direct if one.path in usable)))
    launch.keep(layer)
    return Companion(held, clean_up=lambda: _remove_empty(made))


def _make_directory(path: str) -> bool:
    """Make a directory in the project, since nothing can be mounted where nothing is. Returns whether it is new."""
    try:
        with files.Parent(path) as (here, name):
            os.mkdir(name, dir_fd=here)
    except FileExistsError:
        return False  # another box has made it meanwhile
    except OSError as error:
        directory = os.path.dirname(path)
        raise Problem(f"{path} cannot be made: {error.strerror}", f"ls -ld {directory}\n      {WALLS}") from None
    return True


def _remove_empty(made: list[str]) -> None:
    for path in made:
        try:
            with files.Parent(path) as (here, name):
                os.rmdir(name, dir_fd=here)
        except OSError:
            pass  # there are worktrees now, another box has it, or somebody has replaced it


def _take_layer(review: Review) -> tuple[Layer, int]:
    for layer in reversed(store.list_layers(review.place, review.project)):
        is_alike = layer.git == review.git and layer.is_whole == review.is_whole
        held = store.lock(layer) if is_alike else -1
        if held >= 0 and store.is_of_another(layer):
            say(OF_ANOTHER.format(layer.number))
        elif held >= 0 and store.has_room(layer, review.places):
            from claudebox.overlay.landing import recover

            layer = store.extend(recover(layer), review.places)
            say(f"claudebox: goes on with what was kept as review {layer.number} (--review list)\n")
            return layer, held
        if held >= 0:
            os.close(held)
    layer = store.make_layer(review.place, review.project, review.git, review.places)
    held = store.lock(layer)
    if held < 0:
        raise _changed(layer.directory)
    return layer, held


def _require_attributes(upper: str, review: Review) -> None:
    try:
        os.setxattr(upper, TRIAL, b"1")
        os.removexattr(upper, TRIAL)
    except OSError as error:
        what = f"{upper} keeps no attributes, which a layer needs: {error.strerror}"
        raise Problem(what, f"{NEEDS}\n      {WITHOUT if review.is_whole else WALLS}") from None


def usable_mounts(mounts: tuple[Mount, ...], review: Review, layer: Layer) -> tuple[Mount, ...]:
    uppers = {root: upper for root, upper, _ in layer.parts()}
    return tuple(mount for mount in mounts if _is_usable(mount, review, uppers))


def _is_usable(mount: Mount, review: Review, uppers: dict[str, str]) -> bool:
    """Whether there is something to mount on. What the layer has deleted or replaced shows nothing of the host.

    bwrap would make a file or directory there, or follow a symlink that a box has left.
    """
    # A place that is direct is looked for in the layer around it, where it is mounted.
    around = mount.path if all(one.path != mount.path for one in review.direct) else os.path.dirname(mount.path)
    number = review.over(around)
    root = review.covered[number].path
    if number < 0 or mount.path == root:
        return True
    is_dir = mount.is_dir and mount.kind not in (COVER, MASK, FILE)
    return kind_seen(root, uppers[root], mount.path[len(root) + 1 :]) == (changes.DIRECTORY if is_dir else changes.FILE)


def mount_layers(launch: Launch) -> None:
    """Lay the layers over their directories. This is the process that becomes bwrap, with mounts of its own.

    What is direct is opened before a layer hides it, and bound over that.
    """
    review = launch.get(Review)
    parts = {root: (upper, work) for root, upper, work in launch.get(Layer).parts()}
    direct = {one.path: _open_direct(one) for one in review.direct}
    numbers = {covered.path: number for number, covered in enumerate(review.covered)}
    for path in sorted((*numbers, *direct), key=lambda path: path.count("/")):
        if path in direct:
            _bind(direct[path], path)
        else:
            _cover(numbers[path], review, *parts[path], launch.veil if path == review.project else "")


def _open_direct(one: Covered) -> int:
    """Name the file or directory. A symlink on the way, or another thing in its place, ends the start."""
    try:
        with files.Parent(one.path) as (here, name):
            found = os.open(name, files.NAME_ONLY, dir_fd=here)
    except OSError:
        raise _changed(one.path) from None
    status = os.fstat(found)
    if stat.S_ISLNK(status.st_mode) or one.identity not in (UNSEEN, (status.st_dev, status.st_ino)):
        raise _changed(one.path)
    return found


def _bind(source: int, path: str) -> None:
    """Mount what is direct where the layer shows it. The place is named by a descriptor: it may be a symlink there."""
    target = _open_direct(Covered(path, UNSEEN))
    words = (f"/proc/self/fd/{source}".encode(), f"/proc/self/fd/{target}".encode(), b"", BIND_ALL, 0)
    if c_call("mount", *words) != 0:
        raise _changed(path)
    os.close(target)
    os.close(source)


def _cover(number: int, review: Review, upper: str, work: str, veil: str) -> None:
    """Mount an overlay. Its directories are named by descriptors: no path can be replaced, or be misread."""
    covered = review.covered[number]
    try:
        lower = files.open_directory(covered.path)
        status = os.fstat(lower)
    except OSError:
        raise _changed(covered.path) from None
    if (status.st_dev, status.st_ino) != covered.identity:
        raise _changed(covered.path)
    above, beside = os.open(upper, files.DIRECTORY), os.open(work, files.DIRECTORY)
    lowers = (os.open(veil, files.DIRECTORY), lower) if veil else (lower,)
    names = {"lowerdir": lowers, "upperdir": (above,), "workdir": (beside,)}
    where = [f"{key}=" + ":".join(f"/proc/self/fd/{one}" for one in values) for key, values in names.items()]
    options = ",".join([*where, "userxattr"])
    target = f"/proc/self/fd/{lower}".encode()
    words = (layer_label(number), target, b"overlay", 0, options.encode())
    if c_call("mount", *words) != 0:
        raise _refused(covered.path, review, words)
    for descriptor in (*lowers, above, beside):
        os.close(descriptor)


def _refused(path: str, review: Review, words: tuple[bytes | int, ...]) -> Problem:
    """Say why. Only now it is worth loading what knows the number of the error."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    number = ctypes.get_errno() if library.mount(*words) != 0 else 0
    why = os.strerror(number) if number else "it changed its mind"
    what = f"the kernel lets no layer lie over {path}: {why}"
    return Problem(what, f"{NEEDS}\n      {WITHOUT if review.is_whole else WALLS}")


def _changed(path: str) -> Problem:
    return Problem(f"{path} is not what it was when claudebox looked at it", "start it again")


def watch_layer(launch: Launch) -> Deed:
    """Note what a first box finds. Returns what to do when the box has ended."""
    if can_change_claudebox(launch.plan):
        from claudebox.overlay.review import finish

        del finish
    layer, since = launch.get(Layer), store.now()
    if not layer.is_whole:
        _note_tips(layer)
    return lambda may_ask: _finish(launch, layer, since, may_ask)


def _note_tips(layer: Layer) -> None:
    """Note where branches are when the first box of a layer begins: what those commits have is not the box's.

    While another box runs, or what it left was not looked at, nobody knows whose they are.
    """
    tree, path = Tree(), f"{layer.directory}/{store.TIPS}"
    git_dir = find_repository(tree, layer.project).git_dir
    if git_dir and not os.path.lexists(path) and store.is_untouched(layer):
        tips = dict.fromkeys((read_head(tree, git_dir).commit, *read_refs(tree, git_dir).tips.values()))
        # Not before: the other one may have begun meanwhile.
        if is_alone(layer.reports, layer.project):
            files.write_whole(path, " ".join(filter(None, tips)).encode(), is_safe=False)


def _finish(launch: Launch, layer: Layer, since: int, may_ask: bool) -> None:
    """Most boxes leave nothing in a layer: then it goes, and what would show, ask and land need not be loaded."""
    held = store.lock(layer)
    if held < 0:
        return  # another box goes on with it already, or has removed it
    try:
        if not layer.is_whole and store.is_untouched(layer):
            store.discard(layer)
        else:
            from claudebox.overlay.review import finish

            finish(launch, layer, since, may_ask)
    finally:
        os.close(held)
