"""Tells what a box has written in its home that is gone with it: a worktree beside the project, notes, a new ~/.zshrc.

The home is a file system in memory. A descriptor of it, taken before the program starts, keeps it alive until somebody
has looked. What is in there is hostile: names, kinds, depth and number are the choice of the agent. So nothing is
followed or read, each directory is opened in the one above it, and both the number of files and the time have an end.
"""

from __future__ import annotations

import os
import stat
import time

from claudebox.model import FILE, Mount, Plan
from claudebox.paths import is_below, parents
from claudebox.terminal import say
from claudebox.view.text import cut, escape, fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
MOST_LOOKED_AT = 20_000  # files and directories: 50 ms
LONGEST = 0.5  # seconds, on a busy machine
DEEPEST = 50  # directories that are open at a time
MOST_NAMED = 3
LONGEST_NAME = 40
GONE = "claudebox: written outside of the project, and gone with the box:"

# What tools leave in a home that nobody misses, below `~`: a directory counts with all that is in it.
NOISE = frozenset(
    (
        # What was typed, and what was looked at last.
        *(".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".sqlite_history"),
        *(".lesshst", ".viminfo", ".wget-hsts", ".local/state", ".local/share/recently-used.xbel"),
        # Claude's own; what counts is in its mounted directory.
        *(".claude", ".claude.json", ".local/share/claude", ".local/share/applications"),
        # Caches, and what lies beside the kept ones.
        *(".cache", ".npm", ".node-gyp", ".bun", ".deno", ".yarn", ".local/share/pnpm", ".local/share/uv", ".cargo"),
        *(
            ".rustup",
            "go/pkg",
            ".m2",
            ".gradle",
            ".java",
            ".ivy2",
            ".sbt",
            ".nuget",
            ".dotnet",
            ".templateengine",
            ".bundle",
        ),
        *(
            ".gem",
            ".local/share/gem",
            ".hex",
            ".mix",
            ".cabal",
            ".stack",
            ".ghc",
            ".pub-cache",
            ".dart-tool",
            ".conan2",
            ".opam",
        ),
        *(
            ".composer",
            ".cpan",
            ".cpanm",
            ".swiftpm",
            ".kotlin",
            ".konan",
            ".android",
            ".nv",
            ".keras",
            ".ipython",
            ".jupyter",
        ),
        *(".local/share/jupyter", ".local/share/virtualenv", ".pki", ".dbus", ".gnupg", ".subversion", ".terraform.d"),
        # State that tools keep in the directory of configuration.
        *(".config/configstore", ".config/go", ".config/matplotlib", ".config/nextjs-nodejs", ".config/chromium"),
        *(".config/google-chrome", ".config/google-chrome-for-testing", ".config/pulse", ".config/dconf", ".config/uv"),
        *(".config/fish/fish_variables", ".config/turborepo", ".config/astro", ".config/gatsby", ".config/jgit"),
    )
)
ABOVE_NOISE = frozenset(above[1:] for name in NOISE for above in parents(f"/{name}"))


def made(plan: Plan, root: str) -> Callable[[bool], None]:
    """Take hold of the home. The mounts are made, and no program of the box has started yet."""
    home = hold_home(plan.person.home, root)
    return lambda _: report(plan, home)


def hold_home(home: str, root: str) -> int:
    """A descriptor of the box's own home; -1 if that is not the file system in memory that it has to be."""
    try:
        descriptor = os.open(root + home, DIRECTORY)
        device = os.fstat(descriptor).st_dev
        with open(root.removesuffix("root") + "mountinfo", "rb") as file:
            rows = [line.split(b" ") for line in file]
    except OSError:
        return -1
    expected = (b"%d:%d" % (os.major(device), os.minor(device)), b"tmpfs")
    if any((row[2], row[row.index(b"-") + 1]) == expected for row in rows):
        return descriptor
    os.close(descriptor)
    return -1


def report(plan: Plan, home: int) -> None:
    """Say it in a line or two. The exit status does not depend on it."""
    if home < 0:
        return
    try:
        text = gone_text(*find_written(home, plan.person.home, plan.mounts))
        if text:
            say(text)
    except (OSError, KeyboardInterrupt):
        pass
    finally:
        os.close(home)


def gone_text(written: list[tuple[str, int]], is_whole: bool) -> str:
    if not written:
        return ""
    named = [_named(*one) for one in written[:MOST_NAMED]]
    rest = len(written) - len(named)
    more = [f"and {'' if is_whole else 'more than '}{rest} more"] if rest else [] if is_whole else ["and more"]
    first, *others = fill([*GONE.split(" "), *(f"{name}," for name in named[:-1]), named[-1], *more], 2)
    return "".join(f"{line}\n" for line in (first, *(f"  {line}" for line in others)))


def _named(path: str, files: int) -> str:
    return cut(escape(f"~/{path}"), LONGEST_NAME) + (f" ({files} files)" if files > 1 else "")


class Patience:
    """Ends a look that would take too long."""

    def __init__(self) -> None:
        self.left = MOST_LOOKED_AT
        self.end = time.monotonic() + LONGEST

    def lasts(self) -> bool:
        self.left -= 1
        if self.left % 256 == 0 and time.monotonic() > self.end:
            self.left = 0
        return self.left > 0


def find_written(home: int, path: str, mounts: tuple[Mount, ...]) -> tuple[list[tuple[str, int]], bool]:
    """What bwrap has not made: each path below the home, with the number of files; and whether that is all."""
    inside = {mount.path[len(path) + 1 :]: mount for mount in mounts if is_below(mount.path, path)}
    entered = ABOVE_NOISE | {above[1:] for name in inside for above in parents(f"/{name}")}
    patience, device = Patience(), os.fstat(home).st_dev
    written: list[tuple[str, int]] = []
    waiting = [""]
    while waiting and patience.left > 0:
        below = waiting.pop()
        here = _enter(home, below, device)
        for entry in _entries(here, patience):
            name = f"{below}/{entry.name}" if below else entry.name
            if name in inside:
                written += [(name, 1)] if _has_changed(here, entry.name, inside[name]) else []
            elif name in NOISE:
                continue
            elif name in entered and entry.is_dir(follow_symlinks=False):
                waiting.append(name)
            elif files := _count(here, entry, device, patience):
                written.append((name, files))
        if here >= 0:
            os.close(here)
    return sorted(written), patience.left > 0


def _enter(home: int, path: str, device: int) -> int:
    """Open a directory that bwrap has made, name by name: the program may have put something else in its place."""
    here = os.dup(home)
    for name in filter(None, path.split("/")):
        below = _open(here, name, device)
        os.close(here)
        if below < 0:
            return -1
        here = below
    return here


def _open(parent: int, name: str, device: int) -> int:
    """Open a directory of this very file system; -1 if it is none, or may not be listed."""
    try:
        here = os.open(name, DIRECTORY, dir_fd=parent)
    except OSError:
        return -1
    if os.fstat(here).st_dev == device:
        return here
    os.close(here)
    return -1


def _entries(directory: int, patience: Patience) -> Iterator[os.DirEntry[str]]:
    if directory < 0:
        return
    with os.scandir(directory) as entries:
        for entry in entries:
            if not patience.lasts():
                return
            yield entry


def _count(parent: int, entry: os.DirEntry[str], device: int, patience: Patience) -> int:
    """How many files are lost with it. An empty directory is no loss; one that cannot be looked into counts as one."""
    top = _open(parent, entry.name, device) if entry.is_dir(follow_symlinks=False) else -1
    if top < 0:
        return 1
    files = 0
    open_ones = [(top, [""])]
    while open_ones:
        here, names = open_ones[-1]
        if here < 0 or not names:
            open_ones.pop()
            if here >= 0:
                os.close(here)
            continue
        name = names.pop()
        inner = _open(here, name, device) if name else os.dup(here)
        below: list[str] = []
        for one in _entries(inner, patience):
            if one.is_dir(follow_symlinks=False):
                below.append(one.name)
            else:
                files += 1
        is_deep = len(open_ones) > DEEPEST
        files += len(below) if is_deep else 0
        open_ones.append((inner, [] if is_deep else below))
    return files


def _has_changed(parent: int, name: str, mount: Mount) -> bool:
    """Whether a file that bwrap wrote has other content now, such as ~/.gitconfig after `git config --global`."""
    if mount.kind != FILE:
        return False
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return False
    try:
        is_file = stat.S_ISREG(os.fstat(file).st_mode)
        return is_file and os.read(file, len(mount.content) + 1) != mount.content
    finally:
        os.close(file)
