"""The state that is kept for each project: what exists, and what can be removed."""

from __future__ import annotations

import os
import time

from claudebox.host import read_host
from claudebox.layers.files import DIRECTORY, remove_tree
from claudebox.layers.store import Layer, list_layers, size_of
from claudebox.problem import Problem
from claudebox.quoting import quote
from claudebox.record import Record
from claudebox.settings.words import COLLECT, Request
from claudebox.state import Instance, State
from claudebox.terminal import output_style, says_yes, show
from claudebox.view.text import Style, escape, fill

DAY = 24 * 3600
COLUMN = 18
UNITS = ("B", "K", "M", "G", "T")


class Listed(Record):
    """The state of one project, as it is listed."""

    directory: str
    project: str  # "" if nobody noted it
    last_use: float
    size: int
    is_gone: bool
    reviews: tuple[Layer, ...] = ()  # what boxes changed and nobody has landed yet


def find_instances(state: State) -> list[Listed]:
    """The state of every project, the one that was used last first."""
    try:
        names = sorted(os.listdir(state.instances))
    except OSError:
        return []
    directories = [f"{state.instances}/{name}" for name in names]
    found = [_instance(path) for path in directories if os.path.isdir(path) and not os.path.islink(path)]
    return sorted(found, key=lambda instance: -instance.last_use)


def _instance(directory: str) -> Listed:
    note = Instance(directory, "").project
    try:
        with open(note, "rb") as file:
            project = os.fsdecode(file.read().removesuffix(b"\n"))
        last_use = os.stat(note).st_mtime
    except OSError:
        project, last_use = "", os.stat(directory).st_mtime
    reviews = tuple(list_layers(Instance(directory, "").layers))
    return Listed(directory, project, last_use, _size(directory), bool(project) and not os.path.isdir(project), reviews)


def _size(directory: str) -> int:
    """The bytes in a directory. No recursion: the agent can nest directories deeper than Python recurses."""
    size, waiting = 0, [directory]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue  # a running box may have removed it, and a path may be too long to use
    return size


def listing(instances: list[Listed], style: Style) -> str:
    if not instances:
        return "No project has been started in a box yet.\n"
    lines = [style.paint("last use    size  project", "1")]
    for instance in instances:
        words = [escape(instance.project) or "(unknown)", *(["(gone)"] if instance.is_gone else [])]
        first, *rest = fill(words, COLUMN)
        lines.append(f"{_age(instance.last_use):<10} {_amount(instance.size):>5}  {first}")
        lines += [" " * COLUMN + line for line in rest]
        for layer in instance.reviews:
            where = f", {escape(layer.project)}" if layer.project != instance.project else ""
            words = f"review {layer.number}, not landed: {_amount(size_of(layer))}{where}".split(" ")
            lines += [" " * COLUMN + line for line in fill(words, COLUMN)]
    return "\n".join(lines) + "\n"


def collect(instances: list[Listed]) -> list[Listed]:
    """The instances whose project no longer exists."""
    return [instance for instance in instances if instance.is_gone]


def remove(instance: Listed) -> None:
    """Remove the state of a project. Nothing is followed: an agent may have left symlinks, or shaped it otherwise."""
    try:
        parent, name = os.path.split(instance.directory)
        here = os.open(parent, DIRECTORY)
        try:
            remove_tree(here, name)
        finally:
            os.close(here)
    except OSError as error:
        raise Problem(f"cannot remove {instance.directory}: {error}", f"rm -r {quote(instance.directory)}") from None


def _age(moment: float) -> str:
    days = int((time.time() - moment) // DAY)
    return "today" if days <= 0 else "yesterday" if days == 1 else f"{days} days"


def _amount(size: int) -> str:
    amount = float(size)
    for unit in UNITS:
        if amount < 1000 or unit == UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.0f}{unit}"


def tend_instances(request: Request) -> int:
    found = find_instances(State(read_host().person.home))
    if ("instances", COLLECT) in request.said:
        _collect(found, yes=request.yes)
    else:
        show(listing(found, output_style()))
    return 0


def _collect(found: list[Listed], *, yes: bool) -> None:
    gone = collect(found)
    show(listing(gone, output_style()) if gone else "Every project is still there: nothing to remove.\n")
    if gone and not yes and not says_yes("Remove these, with their conversations? [y/N] "):
        raise Problem("nothing removed")
    for instance in gone:
        remove(instance)
