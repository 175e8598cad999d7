"""`--uninstall`: removes everything that claudebox keeps, after a question, and says how the program itself is removed.

Nothing is followed: an agent may have left symlinks in the state of its project. What claudebox did not make, or what
belongs to somebody else, is not touched.
"""

from __future__ import annotations

import os
import stat

from claudebox.host import Host, read_host
from claudebox.instances import Size, find_instances, measure
from claudebox.layers.files import DIRECTORY, remove_tree
from claudebox.problem import Problem
from claudebox.quoting import quote
from claudebox.record import Record
from claudebox.settings.words import Request
from claudebox.state import State
from claudebox.terminal import output_style, says_yes, show
from claudebox.view.text import Style, escape, fill

COLUMN = 10
OWN_NAME = f"/{os.path.basename(State('').directory)}/".encode()
MOST_NAMED = 5  # running boxes in a message


class Kept(Record):
    """A part of the state, as it is listed."""

    what: str
    size: Size


def uninstall(request: Request) -> int:
    host = read_host()
    state = State(host.person.home)
    directory = _open_own(state, host.person.uid)
    if directory is None:
        show(f"claudebox keeps nothing in {state.directory}.\n{_last_step(host)}")
        return 0
    try:
        _require_no_box(state, host.person.uid)
        show(_listing(state, os.listdir(directory), output_style()))
        if not request.yes and not says_yes("Remove all of it? [y/N] "):
            raise Problem("nothing removed")
        _require_no_box(state, host.person.uid)  # somebody may have taken long to answer
        _remove(directory, state)
    finally:
        os.close(directory)
    show(_last_step(host))
    return 0


def _open_own(state: State, uid: int) -> int | None:
    """The directory itself, or None if there is none. It has to be ours, and a directory, not a link to one."""
    try:
        status = os.lstat(state.directory)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        there = os.path.realpath(state.directory)
        raise Problem(
            f"{state.directory} is a symlink to {there}, and nothing is removed through one",
            f"look at it, and remove it yourself:\n      rm -r {quote(there)}\n      rm {quote(state.directory)}",
        )
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != uid:
        raise Problem(f"{state.directory} is not a directory of yours", f"see: ls -ld {quote(state.directory)}")
    return os.open(state.directory, DIRECTORY)


def _require_no_box(state: State, uid: int) -> None:
    running = [pid for pid in _processes(uid) if _is_claudebox(pid) or _uses(pid, state)]
    if running:
        named = ", ".join(map(str, running[:MOST_NAMED])) + (" …" if len(running) > MOST_NAMED else "")
        raise Problem(f"a box is running (process {named})", "end it first; then: claudebox --uninstall")


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


def _uses(pid: int, state: State) -> bool:
    """Whether something of the state is mounted where this process is: then it is in a box.

    The kernel names what is mounted from the root of its file system, and the home may be one of its own.
    """
    directory = os.fsencode(os.path.realpath(state.directory))
    for line in _read(f"/proc/{pid}/mountinfo").splitlines():
        above, own_name, below = line.split(b" ")[3].rpartition(OWN_NAME)
        if own_name and below and directory.endswith(above + OWN_NAME.removesuffix(b"/")):
            return True
    return False


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # it has ended


def _listing(state: State, names: list[str], style: Style) -> str:
    instances = find_instances(state)
    mine = [name for name in names if f"{state.directory}/{name}" in state.users_own()]
    rest = [name for name in names if name not in (*mine, os.path.basename(state.instances))]
    projects = f"{len(instances)} project{'s' if len(instances) != 1 else ''}"
    parts = [
        Kept(f"your own: {', '.join(sorted(mine))}", _sum(state, mine)),
        Kept(f"{projects}: conversations, caches, logins, what was agreed", measure(state.instances)),
        Kept("what claudebox remembers besides", _sum(state, rest)),
    ]
    lines = [style.paint(f"claudebox keeps, in {escape(state.directory)}:", "1")]
    lines += [f"{part.size.shown:>{COLUMN - 2}}  {part.what}" for part in parts if part.size.amount]
    for instance in instances:
        for layer in instance.reviews:
            words = f"! not landed: review {layer.number} of {escape(layer.project)}".split(" ")
            lines += [" " * COLUMN + line for line in fill(words, COLUMN)]
    return "\n".join(lines) + "\n"


def _sum(state: State, names: list[str]) -> Size:
    sizes = []
    for name in names:
        path = f"{state.directory}/{name}"
        is_directory = stat.S_ISDIR(os.lstat(path).st_mode)
        sizes.append(measure(path) if is_directory else Size(os.lstat(path).st_size))
    return Size(sum(size.amount for size in sizes), all(size.is_whole for size in sizes))


def _remove(directory: int, state: State) -> None:
    """Empty the directory by its descriptor, then remove it by its name, which works only if it is empty."""
    try:
        for name in os.listdir(directory):
            remove_tree(directory, name)
        os.rmdir(state.directory)
    except OSError as error:
        raise Problem(f"cannot remove {state.directory}: {error.strerror}", f"rm -r {quote(state.directory)}") from None


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
    return f"To remove the program itself: {command}\n"
