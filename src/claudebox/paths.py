"""Arithmetic on absolute paths. Nothing here looks at a file."""

from __future__ import annotations

import posixpath

OWN = ".claudebox"  # the directory of all that claudebox keeps, in the home
# A symlink into one of these leads to what everybody has.
COMMON = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix", "/dev/null")


def is_inside(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or below it."""
    return path == directory or directory == "/" or path.startswith(directory + "/")


def is_below(path: str, directory: str) -> bool:
    return path != directory and is_inside(path, directory)


def move(path: str, old: str, new: str) -> str:
    """`path`, which is inside `old`, as it is called when `old` is called `new`."""
    if path == old:
        return new
    below = path[len(old.rstrip("/")) + 1 :]
    return posixpath.join(new, below)


def expand_home(path: str, home: str) -> str:
    if path == "~" or path.startswith("~/"):
        return home + path[1:]
    return path


def normalize(path: str) -> str:
    """The path in the one spelling that can be compared: POSIX lets two slashes at the beginning stay."""
    path = posixpath.normpath(path)
    return path[1:] if path.startswith("//") else path


def absolute(text: str, cwd: str, home: str) -> str:
    """A path as somebody wrote it, who is in `cwd` and at home in `home`."""
    return normalize(posixpath.join(cwd, expand_home(text, home)))


def shorten_home(path: str, home: str) -> str:
    """The path as people write it, with `~` for their home."""
    return "~" + path[len(home) :] if home != "/" and is_inside(path, home) else path


def parents(path: str) -> list[str]:
    """All directories above, the nearest first, without the root."""
    above = []
    while path := path.rpartition("/")[0]:
        above.append(path)
    return above


def within(path: str, project: str) -> str:
    """The path as people call it in the project."""
    return path[len(project) + 1 :] if is_below(path, project) else path
