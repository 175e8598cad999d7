"""The state that is kept for each project: what exists, and what can be removed."""

from __future__ import annotations

import os
import time

from claudebox.host import read_host
from claudebox.layers.files import DIRECTORY, PRIVATE, open_hidden_directory, remove_tree
from claudebox.layers.store import Layer, list_layers
from claudebox.problem import Problem, quote
from claudebox.record import Record
from claudebox.settings.words import COLLECT, DROP_CACHE, DROP_CACHES, Request
from claudebox.state import CACHE_LOCK, Instance, State, find_state
from claudebox.terminal import output_style, says_yes, show
from claudebox.trust.reach import find_own_repository, reach_of
from claudebox.view.as_json import dump
from claudebox.view.text import Style, bytes_text, escape, fill

DAY = 24 * 3600
MOMENT = "%Y-%m-%dT%H:%M:%SZ"
BLOCK = 512  # bytes, in which the kernel counts what a file takes
MOST_COUNTED = 1_000_000  # files of one project: a second or two
DEEPEST = 200  # directories that are open at a time
NOTHING = 1 << 20  # bytes: the empty directories of a cache are not worth a line
COLUMN = 18


class Size(Record):
    """How much space something takes."""

    amount: int
    is_whole: bool = True  # false: there is more, which was not counted

    @property
    def shown(self) -> str:
        return bytes_text(self.amount) + ("" if self.is_whole else "+")


class Listed(Record):
    """The state of one project, as it is listed."""

    instance: Instance
    project: str  # "" if nobody noted it
    last_use: float
    size: Size
    is_gone: bool
    reviews: tuple[Layer, ...] = ()  # what boxes changed and nobody has landed yet
    cache: Size = Size(0)  # a part of the size

    @property
    def directory(self) -> str:
        return self.instance.directory

    @property
    def has_cache(self) -> bool:
        """Whether there is something to remove. What cannot be counted counts: an agent may have hidden it."""
        return self.cache.amount > NOTHING or not self.cache.is_whole


def find_instances(state: State) -> list[Listed]:
    """The state of every project, the one that was used last first."""
    try:
        names = sorted(os.listdir(state.instances))
    except OSError:
        return []
    kept = [state.instance_called(name) for name in names]
    found = [_listed(one) for one in kept if os.path.isdir(one.directory) and not os.path.islink(one.directory)]
    return sorted(found, key=lambda instance: -instance.last_use)


def _listed(instance: Instance) -> Listed:
    directory, note = instance.directory, instance.project
    try:
        with open(note, "rb") as file:
            project = os.fsdecode(file.read().removesuffix(b"\n"))
        last_use = os.stat(note).st_mtime
    except OSError:
        project, last_use = "", os.stat(directory).st_mtime
    caches = [measure(cache) for cache in caches_of(instance)]
    cache = Size(sum(one.amount for one in caches), all(one.is_whole for one in caches))
    is_gone = bool(project) and not os.path.isdir(project)
    reviews = tuple(list_layers(instance.layers))
    parts = [measure(path) for path in {directory, instance.caches}]
    size = Size(sum(part.amount for part in parts), all(part.is_whole for part in parts))
    return Listed(instance, project, last_use, size, is_gone, reviews, cache)


def caches_of(instance: Instance) -> tuple[str, ...]:
    """Its caches. First the one with the lock: while a box holds that, nothing of the others is removed either."""
    return instance.cache_layers, instance.cache_over_host, instance.cache


def measure(directory: str) -> Size:
    """The bytes in a directory, as far as it is reasonable to count: its shape is the choice of an agent.

    Nothing is followed, and a box that is at work in there can turn no name elsewhere: each directory is opened in the
    one above it. There is no recursion, because Python recurses less deep than directories can be nested.
    """
    amount, counted, open_ones = 0, 0, [(_open(directory), [""])]
    is_whole = open_ones[0][0] >= 0 or not os.path.lexists(directory)
    while open_ones:
        here, waiting = open_ones[-1]
        if here < 0 or not waiting or counted > MOST_COUNTED:
            is_whole = is_whole and counted <= MOST_COUNTED
            open_ones.pop()
            if here >= 0:
                os.close(here)
            continue
        name = waiting.pop() or "."
        below = _open(name, here)
        if below < 0:  # a running box may have removed it, or its mode keeps us out
            is_whole = is_whole and not _exists(name, here)
            continue
        if len(open_ones) > DEEPEST:
            os.close(below)
            is_whole = False
            continue
        size, number, names = _list(below)
        amount, counted = amount + size, counted + number
        open_ones.append((below, names))
    return Size(amount, is_whole)


def _open(name: str, parent: int | None = None) -> int:
    try:
        return os.open(name, DIRECTORY, dir_fd=parent)
    except OSError:
        return -1


def _exists(name: str, parent: int) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return False
    return True


def _list(directory: int) -> tuple[int, int, list[str]]:
    """The bytes of the files in one directory, how many entries were counted, and the directories."""
    size, number, names = 0, 0, []
    try:
        with os.scandir(directory) as entries:
            for number, entry in enumerate(entries, 1):
                if number > MOST_COUNTED:
                    break
                if entry.is_dir(follow_symlinks=False):
                    names.append(entry.name)
                else:
                    status = entry.stat(follow_symlinks=False)
                    size += min(status.st_size, status.st_blocks * BLOCK)  # a file may be large and have no content
    except OSError:
        pass  # a running box may have removed something
    return size, number, names


def listing(instances: list[Listed], style: Style) -> str:
    if not instances:
        return "No project has been started in a box yet.\n"
    lines = [style.paint("last use    size  project", "1")]
    for instance in instances:
        words = [escape(instance.project) or "(unknown)", *(["(gone)"] if instance.is_gone else [])]
        first, *rest = fill(words, COLUMN)
        lines.append(f"{_age(instance.last_use):<10} {instance.size.shown:>5}  {first}")
        lines += [" " * COLUMN + line for line in rest]
        if instance.has_cache:
            lines.append(" " * COLUMN + f"of that {instance.cache.shown} cache (to remove it: --instances drop-cache)")
        for layer in instance.reviews:
            where = f", {escape(layer.project)}" if layer.project != instance.project else ""
            words = f"review {layer.number}, not landed: {measure(layer.directory).shown}{where}".split(" ")
            lines += [" " * COLUMN + line for line in fill(words, COLUMN)]
    return "\n".join(lines) + "\n"


def listing_json(instances: list[Listed]) -> str:
    return dump(
        {
            "instances": [
                {
                    "project": instance.project or None,
                    "directory": instance.directory,
                    "last_use": time.strftime(MOMENT, time.gmtime(instance.last_use)),
                    "size": instance.size.amount,
                    "cache": instance.cache.amount,
                    "is_whole": instance.size.is_whole and instance.cache.is_whole,
                    "is_gone": instance.is_gone,
                    "reviews": [
                        {"number": int(layer.number), "project": layer.project, "size": measure(layer.directory).amount}
                        for layer in instance.reviews
                    ],
                }
                for instance in instances
            ]
        }
    )


def collect(instances: list[Listed]) -> list[Listed]:
    """The instances whose project no longer exists."""
    return [instance for instance in instances if instance.is_gone]


def remove(instance: Listed) -> None:
    """Remove the state of a project. Nothing is followed: an agent may have left symlinks, or shaped it otherwise."""
    try:
        for directory in (instance.instance.caches, instance.directory):  # the last one tells whose it was
            if os.path.lexists(directory) or directory == instance.directory:
                _remove(directory)
    except OSError as error:
        raise Problem(f"cannot remove {instance.directory}: {error}", f"rm -r {quote(instance.directory)}") from None


def _remove(directory: str) -> None:
    parent, name = os.path.split(directory)
    here = os.open(parent, DIRECTORY)
    try:
        remove_tree(here, name)
    finally:
        os.close(here)


def _age(moment: float) -> str:
    days = int((time.time() - moment) // DAY)
    return "today" if days <= 0 else "yesterday" if days == 1 else f"{days} days"


def tend_instances(request: Request) -> int:
    host = read_host()
    found = find_instances(find_state(host))
    if ("instances", COLLECT) in request.said:
        _collect(found, yes=request.yes)
    elif ("instances", DROP_CACHES) in request.said:
        _drop_caches(found, yes=request.yes)
    elif ("instances", DROP_CACHE) in request.said:
        root = find_own_repository(reach_of(host)).canonical_root(host.cwd)
        _drop_caches([one for one in found if one.project == root], yes=request.yes)
    else:
        show(listing_json(found) if request.json else listing(found, output_style()))
    return 0


def _collect(found: list[Listed], *, yes: bool) -> None:
    gone = collect(found)
    show(listing(gone, output_style()) if gone else "Every project is still there: nothing to remove.\n")
    if gone and not yes and not says_yes("Remove these, with their conversations? [y/N] "):
        raise Problem("nothing removed")
    for instance in gone:
        remove(instance)


def _drop_caches(found: list[Listed], *, yes: bool) -> None:
    """Remove what package managers downloaded, also while a box runs: it then downloads again."""
    full = [instance for instance in found if instance.has_cache]
    show(listing(full, output_style()) if full else "There is no cache to remove.\n")
    if full and not yes and not says_yes("Remove the caches of these? [y/N] "):
        raise Problem("nothing removed")
    for instance in full:
        for cache in caches_of(instance.instance):
            empty(cache)


def _require_unused(layers: int) -> None:
    """What a box changes in the host's caches belongs to the kernel while the box runs. The lock lasts until we end."""
    import fcntl

    try:
        lock = os.open(CACHE_LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=layers)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Problem(
            "a box is running over this host's caches", "end it first; then: claudebox --instances drop-cache"
        ) from None


def _open_closed(directory: str) -> int:
    """Open a directory even if an agent took its mode; -1 if there is none."""
    parent, name = os.path.split(directory)
    above = _open(parent)
    if above < 0:
        return -1
    try:
        return open_hidden_directory(above, name)[0]
    except OSError:
        return -1
    finally:
        os.close(above)


def empty(cache: str) -> None:
    """Remove what is in each directory of a cache. They stay: a running box has links to them."""
    here = _open_closed(cache)
    if here < 0:
        return
    try:
        _require_unused(here)
        for name in os.listdir(here):
            if name != CACHE_LOCK:
                remove_tree(here, name)
                os.mkdir(name, PRIVATE, dir_fd=here)
    except OSError as error:
        raise Problem(f"cannot remove {cache}: {error.strerror}", f"rm -r {quote(cache)}") from None
    finally:
        os.close(here)
