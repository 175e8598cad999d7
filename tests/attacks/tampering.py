"""Run in the box: try everything that would change a place, or what the host finds there, and tell what worked.

Usage: tampering.py PROJECT PLACE... Each attempt is made for itself and undone, if it can be, before the next one.
Prints what worked for each place, as JSON.
"""

import contextlib
import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable

MANY = 100
EXCHANGE = 2
HERE = -100
libc = ctypes.CDLL(None, use_errno=True)


def exchange(one: str, other: str) -> None:
    if libc.renameat2(HERE, one.encode(), HERE, other.encode(), EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def target_in(place: str) -> str:
    """A file of the place: itself, or one in it."""
    return place if os.path.isfile(place) else os.path.join(place, sorted(os.listdir(place))[0])


def write(place: str, project: str) -> None:
    with open(target_in(place), "a") as file:
        file.write("# tampered\n")


def write_through_proc(place: str, project: str) -> None:
    descriptor = os.open(target_in(place), os.O_RDONLY)
    with open(f"/proc/self/fd/{descriptor}", "a") as file:
        file.write("# tampered\n")


def truncate(place: str, project: str) -> None:
    os.truncate(target_in(place), 0)


def change_mode(place: str, project: str) -> None:
    os.chmod(target_in(place), 0o755)


def create(place: str, project: str) -> None:
    if os.path.isfile(place):
        raise NotADirectoryError(place)
    with open(f"{place}/planted", "x") as file:
        file.write("planted\n")


def remove(place: str, project: str) -> None:
    os.unlink(target_in(place))


def rename(place: str, project: str) -> None:
    os.rename(place, f"{project}/moved")
    os.rename(f"{project}/moved", place)


def rename_parent(place: str, project: str) -> None:
    """Any directory between the project and the place."""
    parent = os.path.dirname(place)
    if parent == project:
        raise IsADirectoryError("the project itself")
    worked = False
    while parent != project:
        with contextlib.suppress(OSError):
            os.rename(parent, f"{project}/moved")
            os.rename(f"{project}/moved", parent)
            worked = True
        parent = os.path.dirname(parent)
    if not worked:
        raise OSError("no parent could be renamed")


def replace_by_file(place: str, project: str) -> None:
    with open(f"{project}/planted", "w") as file:
        file.write("planted\n")
    os.rename(f"{project}/planted", target_in(place))


def replace_by_symlink(place: str, project: str) -> None:
    os.symlink("elsewhere", f"{project}/link")
    if os.path.isdir(place):
        shutil.rmtree(place)
    os.rename(f"{project}/link", place)


def swap(place: str, project: str) -> None:
    other = f"{project}/other"
    if os.path.isdir(place):
        os.makedirs(other, exist_ok=True)
    else:
        open(other, "w").close()
    exchange(place, other)
    exchange(place, other)


def link(place: str, project: str) -> None:
    """Another name for the same file, that can be written."""
    os.link(target_in(place), f"{project}/hard")
    with open(f"{project}/hard", "a") as file:
        file.write("# tampered\n")


def mount_over(place: str, project: str) -> None:
    """In namespaces of its own, where they can be made: nothing of it may reach the host."""
    script = f"umount '{place}' && echo tampered >> '{target_in(place)}'"
    done = subprocess.run(["unshare", "-Urm", "sh", "-c", script], capture_output=True, check=False)
    if done.returncode != 0:
        raise OSError(done.stderr)


ATTEMPTS: tuple[Callable[[str, str], None], ...] = (
    *(write, write_through_proc, truncate, change_mode, create, link, rename, rename_parent),
    *(mount_over, swap, replace_by_file, remove, replace_by_symlink),
)


def main() -> None:
    project, *names = sys.argv[1:]
    # Starting a program for each of hundreds of places would take too long.
    attempts = [attempt for attempt in ATTEMPTS if attempt is not mount_over or len(names) < MANY]
    print(json.dumps({name: tamper(f"{project}/{name}", project, attempts) for name in names}))


def tamper(place: str, project: str, attempts: list[Callable[[str, str], None]]) -> list[str]:
    worked = []
    for attempt in attempts:
        for name in ("moved", "planted", "link", "other", "hard"):  # what another place has left
            with contextlib.suppress(OSError):
                os.unlink(f"{project}/{name}")
        try:
            attempt(place, project)
            worked.append(attempt.__name__)
        except OSError:
            pass
    return worked


main()
