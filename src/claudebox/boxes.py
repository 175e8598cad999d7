"""Which boxes of an account are running, as far as its processes tell."""

from __future__ import annotations

import os

from claudebox.problem import Problem
from claudebox.state import State

MOST_NAMED = 5  # running boxes in a message


def require_no_box(states: tuple[State, ...], uid: int, then: str) -> None:
    """Raise if a box runs, or if another claudebox may become one. `then` is the command to give afterwards."""
    places = tuple(os.fsencode(os.path.realpath(path)) for state in states for path in state.directories())
    running = [pid for pid in _processes(uid) if _is_claudebox(pid) or uses(pid, places)]
    if running:
        named = ", ".join(map(str, running[:MOST_NAMED])) + (" …" if len(running) > MOST_NAMED else "")
        raise Problem(f"a box is running (process {named})", f"end it first; then: {then}")


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


def uses(pid: int, places: tuple[bytes, ...]) -> bool:
    """Whether something in one of these directories is mounted where this process is: then it is in a box.

    The kernel names what is mounted from the root of its file system, and the home may be one of its own. So the
    beginning of what it names has to be the end of a place.
    """
    for line in _read(f"/proc/{pid}/mountinfo").splitlines():
        words = line.split(b" ")[3].replace(b"\\040", b" ").replace(b"\\134", b"\\").split(b"/")
        beginnings = tuple(b"/".join(words[:number]) for number in range(2, len(words)))
        if any(place.endswith(beginnings) for place in places):
            return True
    return False


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # it has ended
