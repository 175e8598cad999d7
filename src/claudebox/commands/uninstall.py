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

from claudebox.commands.instances import Listed, find_instances, find_others, measure, require_no_box, row, summary
from claudebox.errors import Declined, Problem, for_account, quote
from claudebox.files import DIRECTORY, remove_tree
from claudebox.host import Host, read_host
from claudebox.host.git import find_repository
from claudebox.host.git.refs import has_refs
from claudebox.host.tree import Tree
from claudebox.output.terminal import output_style, says_yes, show
from claudebox.overlay.bundle import REFS
from claudebox.settings.words import Request
from claudebox.state import State, find_state
from claudebox.text import Style, beside, counted, escape

COLUMN = 10
UNINSTALL = "claudebox --uninstall"


def uninstall(request: Request) -> int:
    host = read_host()
    state = find_state(host)
    directory = _open_own(state.directory, host.person.uid)
    if directory is None:
        show(f"claudebox keeps nothing in {state.directory}.\n{_last_step(host)}")
        return 0
    try:
        require_no_box(state.directory, host.person.uid, UNINSTALL, counts_all=True)
        instances = find_instances(state)
        show(_listing(state, instances, output_style()))
        if not request.yes and not says_yes("Remove all of it? [y/N] "):
            raise Declined("nothing was removed")
        require_no_box(
            state.directory, host.person.uid, UNINSTALL, counts_all=True
        )  # somebody may have taken long to answer
        brought = _name_commits(host.tree, instances)  # nobody knows the projects afterwards
        _remove(directory, state.directory)
    finally:
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


def _listing(state: State, instances: list[Listed], style: Style) -> str:
    projects = f"{counted(len(instances), 'project')}: conversations, caches, logins, what was agreed"
    lines = [style.paint(f"claudebox keeps, in {escape(state.directory)}:", "1")]
    lines += row(measure(state.instances), projects, COLUMN) if instances else []
    lines += summary(find_others(state), COLUMN)
    for instance in instances:
        for layer in instance.reviews:
            words = f"! not landed: review {layer.number} of {escape(layer.project)}".split(" ")
            lines += beside(" " * COLUMN, words, COLUMN)
    return "\n".join(lines) + "\n"


def _remove(directory: int, path: str) -> None:
    """Empty the directory by its descriptor, then remove it by its name, which works only if it is empty."""
    try:
        for name in os.listdir(directory):
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
