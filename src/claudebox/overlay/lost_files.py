"""Reports files that a box wrote in its home and that are lost: a worktree beside the project, notes, a new ~/.zshrc.

A hidden directory of the home (~/.cache, ~/.config …) is the tools' own and does not count, nor do ~/go/pkg and
histories. A descriptor of the home, a file system in memory, keeps it alive until somebody has looked. What is in there
is hostile: nothing is followed, and depth, number and time have an end.
"""

from __future__ import annotations

import os
import time

from claudebox import files
from claudebox.model import FILE, Launch, Mount
from claudebox.output.terminal import say
from claudebox.paths import is_below, parents
from claudebox.text import cut, escape, fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Deed

MOST_LOOKED_AT, LONGEST = 20_000, 0.5  # files and directories, which take 50 ms; seconds, on a busy machine
DEEPEST = 50  # directories that are open at a time
MOST_NAMED, LONGEST_NAME = 3, 40
GONE = "claudebox: written outside of the project, and gone with the box:"
HISTORIES = ("history", "hst", "hsts", "info")  # as ~/.bash_history, ~/.lesshst, ~/.wget-hsts, ~/.viminfo end


def watch_home(launch: Launch, root: str) -> Deed:
    """Open the home before a program starts. Returns the report for the end, which never changes the exit status."""
    plan = launch.plan
    home = hold_home(plan.person.home, root)

    def report(_: bool) -> None:
        try:
            look = Look(home, plan.person.home, plan.mounts)
            say(gone_text(look.written, look.left > 0))
        except (OSError, KeyboardInterrupt):
            pass
        finally:
            os.close(home)

    return report if home >= 0 else lambda _: None


def hold_home(home: str, root: str) -> int:
    """A descriptor of the box's own home; -1 if that is not the file system in memory that it has to be."""
    try:
        device = os.stat(root + home).st_dev
        expected = (b"%d:%d" % (os.major(device), os.minor(device)), b"tmpfs")
        with open(root.removesuffix("root") + "mountinfo", "rb") as file:
            is_ours = any((row[2], row[row.index(b"-") + 1]) == expected for row in map(bytes.split, file))
        return os.open(root + home, files.DIRECTORY) if is_ours else -1
    except OSError:
        return -1


def gone_text(written: list[tuple[str, int]], is_whole: bool) -> str:
    shown, rest = sorted(written)[:MOST_NAMED], len(written) - MOST_NAMED
    named = [cut(escape(f"~/{name}"), LONGEST_NAME) + (f" ({n} files)" if n > 1 else "") for name, n in shown]
    more = ([f"and {rest} more"] if rest > 0 else []) if is_whole else ["and more"]
    words = [*GONE.split(" "), *(f"{name}," for name in named[:-1]), *named[-1:], *more]
    return "\n  ".join(fill(words, 2)) + "\n" if named else ""


class Look:
    def __init__(self, home: int, path: str, mounts: tuple[Mount, ...]) -> None:
        """Find what bwrap has not made in a home: each path, with the number of files."""
        self.mounted = {mount.path[len(path) + 1 :]: mount for mount in mounts if is_below(mount.path, path)}
        self.entered = {"", *(f"{above[1:]}/" for name in self.mounted for above in parents(f"/{name}"))}
        self.left, self.end = MOST_LOOKED_AT, time.monotonic() + LONGEST
        self.written: list[tuple[str, int]] = []
        self._count(home, "", "", 0)

    def _count(self, parent: int, last: str, above: str, depth: int) -> int:
        """The files that are lost with a directory. One that cannot be looked into counts as a file."""
        found, here = 0, -1
        try:
            here = files.open_below(parent, last)
            with os.scandir(here) as entries:
                for entry in entries:
                    self.left = self.left - 1 if self.left % 256 or time.monotonic() < self.end else 0
                    if self.left <= 0:
                        break
                    name, is_directory = f"{above}{entry.name}", entry.is_dir(follow_symlinks=False)
                    is_tools = not above and name.startswith(".") and (is_directory or name.endswith(HISTORIES))
                    if (mount := self.mounted.get(name)) is not None:
                        lost = int(mount.kind == FILE and not files.has_content(here, entry.name, mount.content))
                    elif is_tools or name == "go/pkg":
                        lost = 0
                    else:
                        is_near = is_directory and depth < DEEPEST
                        lost = self._count(here, entry.name, f"{name}/", depth + 1) if is_near else 1
                    if lost and above in self.entered and not (is_directory and f"{name}/" in self.entered):
                        self.written.append((name, lost))
                    found += lost
        except OSError:
            found += 1
        if here >= 0:
            os.close(here)
        return found
