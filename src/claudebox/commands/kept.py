"""What claudebox keeps: `--instances` lists it and removes parts of it, `--uninstall` removes all.

Nothing is followed: an agent may have left symlinks in the state of its project. What claudebox did not make, or what
belongs to somebody else, is not touched.

Commits that reviews have brought stay in the repositories, as refs/claudebox/NUMBER/BRANCH. They are only named, with
the command that removes them: perhaps nothing else names that work, so that git would throw it away, and a yes to the
end of claudebox is no yes to that. Nor has git to run in each repository where an agent was.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable

from claudebox.errors import Declined, Problem, for_account, quote
from claudebox.files import DIRECTORY, remove_path
from claudebox.host import Host, read_host
from claudebox.host.git import find_repository
from claudebox.host.git.directory import has_refs
from claudebox.host.tree import Tree
from claudebox.output.as_json import dump
from claudebox.output.terminal import output_style, says_yes, show
from claudebox.overlay.bundle import REFS
from claudebox.overlay.store import Layer, list_layers
from claudebox.record import Record
from claudebox.settings.table import COLLECT, DROP_CACHE, DROP_CACHES
from claudebox.settings.words import Request
from claudebox.state import INSTANCES, SHOWN, USERS_OWN, Instance, State, find_state
from claudebox.state.reach import own_instance
from claudebox.text import Style, beside, bytes_text, counted, escape

DAY = 24 * 3600
BLOCK = 512  # bytes, in which the kernel counts what a file takes
MOST_COUNTED = 1_000_000  # files of one project: a second or two
DEEPEST = 200  # directories that are open at a time
NOTHING = 1 << 20  # bytes: the empty directories of a cache are not worth a line
COLUMN = 18
NARROW = 10  # the same, where no time of use comes first
UNINSTALL = "claudebox --uninstall"
MOST_NAMED = 5  # running boxes in a message


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
    cache = add_up(measure(cache) for cache in instance.caches)
    is_gone = bool(project) and not os.path.isdir(project)
    reviews = tuple(list_layers(instance.layers))
    return Listed(instance, project, last_use, measure(directory), is_gone, reviews, cache)


def find_others(state: State) -> dict[str, Size]:
    """What is in ~/.claudebox besides the state of projects."""
    names = sorted(os.listdir(state.directory)) if os.path.isdir(state.directory) else []
    return {name: measure(f"{state.directory}/{name}") for name in names if name != INSTANCES}


def summary(others: dict[str, Size], column: int) -> list[str]:
    """The same in a few lines, with the text in this column."""
    lines = []
    for what, is_users in (("your own", True), ("what claudebox remembers besides", False)):
        if chosen := [name for name in others if (name in USERS_OWN) == is_users]:
            lines += row(add_up(others[name] for name in chosen), f"{what}: {', '.join(map(escape, chosen))}", column)
    return lines


def row(size: Size, text: str, column: int) -> list[str]:
    return beside(f"{size.shown:>{column - 2}}  ", text.split(" "), column)


def add_up(sizes: Iterable[Size]) -> Size:
    each = list(sizes)
    return Size(sum(one.amount for one in each), all(one.is_whole for one in each))


def measure(path: str, above: int | None = None, room: list[int] | None = None, depth: int = 0) -> Size:
    """The bytes of a file, or in a directory as far as it is reasonable to count: its shape is the choice of an agent.

    Nothing is followed, and a box that is at work in there can turn no name elsewhere: each directory is opened in the
    one above it. `room` holds how many files may still be counted.
    """
    room = [MOST_COUNTED] if room is None else room
    room[0] -= 1
    try:
        status = os.stat(path, dir_fd=above, follow_symlinks=False)
    except OSError:
        return Size(0)  # a running box may have removed it
    if not stat.S_ISDIR(status.st_mode):
        return Size(min(status.st_size, status.st_blocks * BLOCK))  # a file may be large and have no content
    amount, is_whole = 0, True
    try:
        if depth > DEEPEST:
            raise OSError
        here = os.open(path, DIRECTORY, dir_fd=above)
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if room[0] <= 0:
                        raise OSError
                    size = measure(entry.name, here, room, depth + 1)
                    amount, is_whole = amount + size.amount, is_whole and size.is_whole
        finally:
            os.close(here)
    except OSError:  # too much, or its mode keeps us out
        is_whole = False
    return Size(amount, is_whole)


def overview(instances: list[Listed], others: dict[str, Size], style: Style) -> str:
    lines = summary(others, COLUMN)
    if instances or others:
        lines.append(f"All of it is in {SHOWN.directory}. To remove it: claudebox --uninstall")
    return listing(instances, style) + "".join(f"{line}\n" for line in lines)


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
                    "directory": instance.directory,
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
    if ("instances", COLLECT) in request.said:
        gone = [one for one in found if one.is_gone]
        question = "Remove these, with their conversations? [y/N] "
        for one in _confirmed(gone, "Every project is still there: nothing to remove.\n", question, yes=request.yes):
            remove(one.directory)
        return 0
    if ("instances", DROP_CACHE) in request.said:
        own = own_instance(host)
        found = [one for one in found if one.directory == own.directory]
    elif ("instances", DROP_CACHES) not in request.said:
        others = find_others(state)
        show(listing_json(state, found, others) if request.json else overview(found, others, output_style()))
        return 0
    full = [one for one in found if one.has_cache]
    question = "Remove the caches of these? [y/N] "
    for one in _confirmed(full, "There is no cache to remove.\n", question, yes=request.yes):
        require_no_box(one.directory, host.person.uid, "claudebox --instances drop-cache")
        for cache in one.instance.caches:
            remove(cache)
    return 0


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
    require_no_box(state.directory, host.person.uid, UNINSTALL, counts_all=True)
    instances = find_instances(state)
    show(_listing_of_all(state, instances, output_style()))
    if not request.yes and not says_yes("Remove all of it? [y/N] "):
        raise Declined("nothing was removed")
    # Somebody may have taken long to answer.
    require_no_box(state.directory, host.person.uid, UNINSTALL, counts_all=True)
    brought = _name_commits(host.tree, instances)  # nobody knows the projects afterwards
    remove(state.directory, from_within=True)
    show(brought + _last_step(host))
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


def _listing_of_all(state: State, instances: list[Listed], style: Style) -> str:
    projects = f"{counted(len(instances), 'project')}: conversations, caches, logins, what was agreed"
    lines = [style.paint(f"claudebox keeps, in {escape(state.directory)}:", "1")]
    lines += row(measure(state.instances), projects, NARROW) if instances else []
    lines += summary(find_others(state), NARROW)
    for instance in instances:
        for layer in instance.reviews:
            words = f"! not landed: review {layer.number} of {escape(layer.project)}".split(" ")
            lines += beside(" " * COLUMN, words, NARROW)
    return "\n".join(lines) + "\n"


def _name_commits(tree: Tree, instances: list[Listed]) -> str:
    """What to type where reviews have brought commits; "" if they have nowhere."""
    found = {}
    for instance in instances:
        if instance.project and not instance.is_gone:
            repository = find_repository(tree, instance.project)
            common = repository.outside if repository.is_worktree else repository.git_dir
            if common and has_refs(tree, common, REFS):
                found[common] = instance.project
    if not found:
        return ""
    lines = [f"Commits that reviews have brought stay in your repositories, as {REFS}/…"]
    lines += ["To remove them, where nothing of it is needed any more:"]
    for project in found.values():
        git = f"git -C {quote(project)}"
        # With --no-deref: an agent may have left a symbolic ref there, and git would delete the branch that it names.
        lines.append(f"  {git} for-each-ref --format='delete %(refname)' {REFS} | {git} update-ref --no-deref --stdin")
    return "".join(f"{line}\n" for line in lines)


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


def require_no_box(directory: str, uid: int, command: str, *, counts_all: bool = False) -> None:
    """Raise if a box has something of this directory. With `counts_all`, every claudebox counts: it may become one."""
    place = os.fsencode(os.path.realpath(directory))
    running = [pid for pid in _processes(uid) if uses(pid, place) or (counts_all and _is_claudebox(pid))]
    if running:
        named = ", ".join(map(str, running[:MOST_NAMED])) + (" …" if len(running) > MOST_NAMED else "")
        raise Problem(f"a box is running (process {named})", f"end it first; then: {command}")


def _processes(uid: int) -> list[int]:
    """The other processes of this account, boxes included: for the host, their programs are its own."""
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return sorted(pid for pid in numbers if pid != os.getpid() and _owner(pid) == uid)


def _owner(pid: int) -> int:
    """Whose process it is. The owner of its directory is root if the process keeps its memory to itself, as ours do."""
    lines = _read(f"/proc/{pid}/status").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(b"Uid:")), -1)


def _is_claudebox(pid: int) -> bool:
    """Whether it is the parent of a box, which calls itself so; or Python with our command, which may become one."""
    words = _read(f"/proc/{pid}/cmdline").split(b"\0")
    program, arguments = os.path.basename(words[0]), words[1:5]
    is_ours = any(b"from claudebox.cli import main" in word for word in arguments)
    is_ours = is_ours or any(os.path.basename(word).startswith(b"claudebox") for word in arguments)
    return program == b"claudebox" or (program.startswith(b"python") and is_ours)


def uses(pid: int, place: bytes) -> bool:
    """Whether something in this directory is mounted where this process is: then it is in a box.

    The kernel names what is mounted from the root of its file system, and the home may be one of its own. So the
    beginning of what it names has to be the end of the directory.
    """
    for line in _read(f"/proc/{pid}/mountinfo").splitlines():
        words = line.split(b" ")[3].replace(b"\\040", b" ").replace(b"\\134", b"\\").split(b"/")
        beginnings = tuple(b"/".join(words[:number]) for number in range(2, len(words)))
        if place.endswith(beginnings):
            return True
    return False


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # it has ended
