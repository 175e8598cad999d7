"""What claudebox keeps: `--instances` lists it and removes parts of it, `--uninstall` removes all.

Nothing is followed: an agent may have left symlinks in the state of its project. What claudebox did not make, or what
belongs to somebody else, is not touched.

Commits that reviews have brought stay in the repositories, as refs/claudebox/NUMBER/BRANCH. The user is told what
removes them: perhaps nothing else names that work, so that git would throw it away, and a yes to the end of claudebox
is no yes to that. Nor has git to run in each repository where an agent was.
"""

from __future__ import annotations

import os
import stat
import time
from itertools import islice

from claudebox.errors import Declined, Problem, for_account, quote
from claudebox.features.secrets.decoys import LOCK
from claudebox.files import open_lock, remove_path, take_lock
from claudebox.host import Host, read_host
from claudebox.output.as_json import dump
from claudebox.output.terminal import can_ask, output_style, says_yes, show
from claudebox.overlay import store
from claudebox.overlay.bundle import REFS
from claudebox.overlay.store import Layer
from claudebox.paths import is_inside
from claudebox.record import Record
from claudebox.settings.table import COLLECT, DROP_CACHE, DROP_CACHES
from claudebox.settings.words import Request
from claudebox.state import INSTANCES, SHOWN, USERS_OWN, Instance, State, find_state
from claudebox.state.reach import own_instance
from claudebox.text import Style, beside, bytes_text, counted, escape

DAY = 24 * 3600
BLOCK = 512  # bytes, in which the kernel counts what a file takes
MOST_COUNTED = 1_000_000  # files of one project: a second or two
NOTHING = 1 << 20  # bytes: the empty directories of a cache are not worth a line
COLUMN = 18
UNINSTALL = "claudebox --uninstall"
DISKS = ("/mnt", "/media", "/run/media")


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
    why_doubtful: str = ""  # why a yes to all of them is none to this one
    reviews: tuple[Layer, ...] = ()  # what boxes changed and nobody has landed yet
    cache: Size = Size(0)  # a part of the size

    @property
    def has_cache(self) -> bool:
        """Whether there is something to remove. What cannot be counted counts: an agent may have hidden it."""
        return self.cache.amount > NOTHING or not self.cache.is_whole


def find_instances(state: State) -> list[Listed]:
    """The state of every project, the one that was used last first."""
    try:
        # With a dot begins what a removal that was ended has left: agents chose what is in it.
        names = sorted(name for name in os.listdir(state.instances) if not name.startswith("."))
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
    cache = measure(*instance.caches)
    is_gone = bool(project) and not os.path.isdir(project)
    reviews = tuple(store.list_layers(instance.layers))
    doubts = [f"{counted(len(reviews), 'review')} not landed"] if reviews else []
    doubts += ["it may be on a disk that is not mounted"] if is_gone and _may_be_unmounted(project) else []
    return Listed(instance, project, last_use, measure(directory), is_gone, "; ".join(doubts), reviews, cache)


def _may_be_unmounted(project: str) -> bool:
    """Whether the nearest directory that exists is empty, as a mount point is, or where disks are mounted."""
    above = os.path.dirname(project)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    try:
        return any(is_inside(above, place) for place in DISKS) or not os.listdir(above)
    except OSError:
        return True


def find_others(state: State) -> dict[str, Size]:
    """What is in ~/.claudebox besides the state of projects."""
    names = sorted(os.listdir(state.directory)) if os.path.isdir(state.directory) else []
    return {name: measure(f"{state.directory}/{name}") for name in names if name != INSTANCES}


def measure(*paths: str) -> Size:
    """The bytes of files, and of all in directories, whose shape is the choice of an agent: there are bounds."""
    amount, is_whole, waiting = 0, True, [*paths]
    for _ in range(MOST_COUNTED):
        if not waiting:
            return Size(amount, is_whole)
        path = waiting.pop()
        try:
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as entries:
                    waiting += [entry.path for entry in islice(entries, MOST_COUNTED)]
            else:
                amount += min(status.st_size, status.st_blocks * BLOCK)  # a file may be large and have no content
        except FileNotFoundError:
            pass  # a running box may have removed it
        except OSError:
            is_whole = False  # its mode keeps us out, or it is deeper than a path can be long
    return Size(amount, is_whole=False)


def overview(instances: list[Listed], others: dict[str, Size], style: Style) -> str:
    """All that is kept: each project, and in a few lines what there is besides."""
    text = listing(instances, style)
    for what, is_users in (("your own", True), ("what claudebox remembers besides", False)):
        if chosen := [name for name in others if (name in USERS_OWN) == is_users]:
            sizes = [others[name] for name in chosen]
            size = Size(sum(one.amount for one in sizes), all(one.is_whole for one in sizes)).shown
            words = f"{what}: {', '.join(map(escape, chosen))}".split(" ")
            text += "".join(f"{line}\n" for line in beside(f"{size:>{COLUMN - 2}}  ", words, COLUMN))
    return text


def listing(instances: list[Listed], style: Style) -> str:
    if not instances:
        return "No project has been started in a box yet.\n"
    lines = [style.paint("last use    size  project", "1")]
    for instance in instances:
        words = [escape(instance.project) or "(unknown)", *(["(gone)"] if instance.is_gone else [])]
        lines += beside(f"{_age(instance.last_use):<10} {instance.size.shown:>5}  ", words, COLUMN)
        if instance.has_cache:
            lines.append(" " * COLUMN + f"of that {instance.cache.shown} cache (to remove it: --instances drop-cache)")
        for layer in instance.reviews:
            where = f", {escape(layer.project)}" if layer.project != instance.project else ""
            words = f"review {layer.number}, not landed: {measure(layer.directory).shown}{where}".split(" ")
            lines += beside(" " * COLUMN, words, COLUMN)
    return "\n".join(lines) + "\n"


def listing_json(state: State, instances: list[Listed], others: dict[str, Size]) -> str:
    return dump(
        {
            "directory": state.directory,
            "others": [
                {"name": name, "size": size.amount, "is_whole": size.is_whole, "is_users": name in USERS_OWN}
                for name, size in others.items()
            ],
            "instances": [
                {
                    "project": instance.project or None,
                    "directory": instance.instance.directory,
                    "last_use": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(instance.last_use)),
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
            ],
        }
    )


def _age(moment: float) -> str:
    days = int((time.time() - moment) // DAY)
    return "today" if days <= 0 else "yesterday" if days == 1 else f"{days} days"


def tend_instances(request: Request) -> int:
    host = read_host()
    state = find_state(host)
    found = find_instances(state)
    deed = dict(request.said).get("instances", "")
    if deed == COLLECT:
        _collect([one for one in found if one.is_gone], yes=request.yes)
    elif deed in (DROP_CACHE, DROP_CACHES):
        own = own_instance(host).directory
        full = [one for one in found if one.has_cache and (deed == DROP_CACHES or one.instance.directory == own)]
        question = "Remove the caches of these? [y/N] "
        chosen = _confirmed(full, "There is no cache to remove.\n", question, yes=request.yes)
        keep_boxes_out(chosen, "claudebox --instances drop-cache")
        for cache in [cache for one in chosen for cache in one.instance.caches]:
            remove(cache)
    else:
        others = find_others(state)
        where = f"All of it is in {SHOWN.directory}. To remove it: {UNINSTALL}\n" if found or others else ""
        show(listing_json(state, found, others) if request.json else overview(found, others, output_style()) + where)
    return 0


def _collect(gone: list[Listed], *, yes: bool) -> None:
    """Remove what is gone. What may still be needed has a question of its own, which no `--yes` answers."""
    question = "Remove these, with their conversations? [y/N] "
    sure = [one for one in gone if not one.why_doubtful]
    doubtful = [one for one in gone if one.why_doubtful]
    if sure or not doubtful:
        for one in _confirmed(sure, "Every project is still there: nothing to remove.\n", question, yes=yes):
            remove(one.instance.directory)
    for one in doubtful:
        show(listing([one], output_style()))
        if can_ask() and says_yes(f"Remove it, although: {one.why_doubtful}? [y/N] "):
            remove(one.instance.directory)
        else:
            show(f"It stays: {one.why_doubtful}.\n")


def _confirmed(chosen: list[Listed], none: str, question: str, *, yes: bool) -> list[Listed]:
    """Show what would be removed, and ask. Raises a Problem unless the answer is yes."""
    show(listing(chosen, output_style()) if chosen else none)
    if chosen and not yes and not says_yes(question):
        raise Declined("nothing was removed")
    return chosen


def remove(directory: str, *, from_within: bool = False) -> None:
    """Remove what is kept there; from within, the directory stays if somebody puts something into it meanwhile."""
    try:
        for name in os.listdir(directory) if from_within else ():
            remove_path(f"{directory}/{name}")
        (os.rmdir if from_within else remove_path)(directory)
    except OSError as error:
        raise Problem(f"cannot remove {directory}: {error.strerror}", f"rm -r {quote(directory)}") from None


# All of it


def uninstall(request: Request) -> int:
    host = read_host()
    state = find_state(host)
    if not _has_own(state.directory, host.person.uid):
        show(f"claudebox keeps nothing in {state.directory}.\n{_last_step(host)}")
        return 0
    instances = find_instances(state)
    keep_boxes_out(instances, UNINSTALL)
    show(f"claudebox keeps, in {escape(state.directory)}:\n" + overview(instances, find_others(state), output_style()))
    if not request.yes and not says_yes("Remove all of it? [y/N] "):
        raise Declined("nothing was removed")
    has_reviewed = any(os.path.lexists(f"{one.instance.layers}/{store.LAST}") for one in instances)
    remove(state.directory, from_within=True)
    show((BROUGHT if has_reviewed else "") + _last_step(host))
    return 0


def _has_own(path: str, uid: int) -> bool:
    """Whether there is such a directory. It has to be ours, and a directory, not a link to one."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(status.st_mode):
        there = os.path.realpath(path)
        what = f"{path} is a symlink to {there}, and nothing is removed through one"
        raise Problem(what, f"look at it, and remove it yourself:\n      rm -r {quote(there)}\n      rm {quote(path)}")
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != uid:
        raise Problem(f"{path} is not a directory of yours", f"see: ls -ld {quote(path)}")
    return True


# With --no-deref: an agent may have left a symbolic ref there, and git would delete the branch that it names.
BROUGHT = f"""\
Commits that reviews have brought stay in the repositories of these projects, as {REFS}/…
To remove them from one, where nothing of it is needed any more:
  git for-each-ref --format='delete %(refname)' {REFS} | git update-ref --no-deref --stdin
"""
# How a package is removed, by where its modules are. The first that fits.
WAYS = (
    ("/nix/store/", "nix profile remove claudebox"),
    ("/usr/share/claudebox", "sudo apt remove claudebox"),
    ("/uv/tools/", "uv tool uninstall claudebox-cli"),
    ("/pipx/", "pipx uninstall claudebox-cli"),
    ("/site-packages/", "pip uninstall claudebox-cli"),
    ("/dist-packages/", "pip uninstall claudebox-cli"),
)


def _last_step(host: Host) -> str:
    source = host.own_source
    command = next((command for part, command in WAYS if part in f"{source}/"), "")
    if not command:
        is_file = os.path.isfile(source)
        command = f"rm {quote(source)}" if is_file else f"rm -r {quote(source.removesuffix('/src/claudebox'))}"
    return f"To remove the program itself: {for_account(command, host.person.uid)}\n"


# Whether a box is running


def keep_boxes_out(instances: list[Listed], command: str) -> None:
    """Raise if a box of these projects runs, or somebody lands what one has left. No other starts before this ends.

    Every box holds the lock of its masks, and ends with the process that does.
    """
    for one in instances:
        try:
            is_free = take_lock(open_lock(f"{one.instance.masks}/{LOCK}"))
        except OSError:
            is_free = True  # no box of ours has been there
        if not is_free or any(store.lock(layer) < 0 for layer in one.reviews):
            where = one.project or one.instance.directory
            raise Problem(f"a box is running in {where}", f"end it first; then: {command}")
