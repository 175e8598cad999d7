"""`--uninstall`: removes everything that claudebox keeps, after a question, and says how the program itself is removed.

Nothing is followed: an agent may have left symlinks in the state of its project. What claudebox did not make, or what
belongs to somebody else, is not touched.

Commits that reviews have brought stay in the repositories, as refs/claudebox/NUMBER/BRANCH. They are only named, with
the command that removes them: perhaps nothing else names that work, so that git would throw it away, and a yes to the
end of claudebox is no yes to that. Nor has git to run in each repository where an agent was.
"""

from __future__ import annotations

import os
import stat

from claudebox.boxes import require_no_box
from claudebox.features.review.commits import REFS
from claudebox.host import Host, read_host
from claudebox.host.git.refs import has_refs
from claudebox.host.git.repository import find_repository
from claudebox.host.tree import Tree
from claudebox.instances import Listed, Size, find_instances, measure
from claudebox.layers.files import DIRECTORY, remove_tree
from claudebox.problem import Problem, for_account, quote
from claudebox.record import Record
from claudebox.settings.words import Request
from claudebox.state import INSTANCES, State, find_state, note_of_places
from claudebox.terminal import output_style, says_yes, show
from claudebox.view.text import Style, counted, escape, fill

COLUMN = 10
THEN = "claudebox --uninstall"


class Kept(Record):
    """A part of the state, as it is listed."""

    what: str
    size: Size


def uninstall(request: Request) -> int:
    host = read_host()
    state = find_state(host)
    # Before the first start nothing is claudebox's: a variable may name what somebody else keeps by this name.
    own = state.directories() if state.is_noted else ()
    opened = {path: here for path in own if (here := _open_own(path, host.person.uid)) is not None}
    if not opened:
        show(f"claudebox keeps nothing in {state.directory}.\n{_last_step(host)}")
        return 0
    try:
        require_no_box((state,), host.person.uid, THEN)
        instances = find_instances(state)
        show(_listing(state, instances, opened, output_style()))
        if not request.yes and not says_yes("Remove all of it? [y/N] "):
            raise Problem("nothing removed")
        require_no_box((state,), host.person.uid, THEN)  # somebody may have taken long to answer
        brought = _name_commits(host.tree, instances)  # nobody knows the projects afterwards
        note = note_of_places(state.home)
        for path in sorted(opened, key=lambda one: one == os.path.dirname(note)):
            _remove(opened[path], path, last=os.path.basename(note))
    finally:
        for directory in opened.values():
            os.close(directory)
    show(brought + _last_step(host))
    return 0


def _open_own(path: str, uid: int) -> int | None:
    """The directory itself, or None if there is none. It has to be ours, and a directory, not a link to one."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        there = os.path.realpath(path)
        raise Problem(
            f"{path} is a symlink to {there}, and nothing is removed through one",
            f"look at it, and remove it yourself:\n      rm -r {quote(there)}\n      rm {quote(path)}",
        )
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != uid:
        raise Problem(f"{path} is not a directory of yours", f"see: ls -ld {quote(path)}")
    return os.open(path, DIRECTORY)


def _listing(state: State, instances: list[Listed], opened: dict[str, int], style: Style) -> str:
    paths = [f"{path}/{name}" for path, directory in opened.items() for name in os.listdir(directory)]
    mine = [path for path in paths if path in state.users_own()]
    projects = [path for path in paths if os.path.basename(path) == INSTANCES]
    rest = [path for path in paths if path not in (*mine, *projects)]
    names = ", ".join(sorted(map(os.path.basename, mine)))
    number = counted(len(instances), "project")
    parts = [
        Kept(f"your own: {names}", _sum(mine)),
        Kept(f"{number}: conversations, caches, logins, what was agreed", _sum(projects)),
        Kept("what claudebox remembers besides", _sum(rest)),
    ]
    where = fill(["claudebox", "keeps,", "in", *(f"{escape(path)}," for path in opened)], 0)
    where[-1] = where[-1].removesuffix(",") + ":"
    lines = [style.paint(line, "1") for line in where]
    lines += [f"{part.size.shown:>{COLUMN - 2}}  {part.what}" for part in parts if part.size.amount]
    for instance in instances:
        for layer in instance.reviews:
            words = f"! not landed: review {layer.number} of {escape(layer.project)}".split(" ")
            lines += [" " * COLUMN + line for line in fill(words, COLUMN)]
    return "\n".join(lines) + "\n"


def _sum(paths: list[str]) -> Size:
    sizes = []
    for path in paths:
        is_directory = stat.S_ISDIR(os.lstat(path).st_mode)
        sizes.append(measure(path) if is_directory else Size(os.lstat(path).st_size))
    return Size(sum(size.amount for size in sizes), all(size.is_whole for size in sizes))


def _remove(directory: int, path: str, last: str = "") -> None:
    """Empty the directory by its descriptor, then remove it by its name, which works only if it is empty.

    The note of where all is goes last: if somebody ends this, the rest is found again.
    """
    try:
        for name in sorted(os.listdir(directory), key=lambda one: one == last):
            remove_tree(directory, name)
        os.rmdir(path)
    except OSError as error:
        raise Problem(f"cannot remove {path}: {error.strerror}", f"rm -r {quote(path)}") from None


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
