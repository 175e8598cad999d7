"""Which host directories may become a project or a mount."""

from __future__ import annotations

import posixpath

from claudebox.model import (
    SecretPlace,
)
from claudebox.paths import (
    expand_home,
    is_below,
    is_inside,
    parents,
)
from claudebox.problem import Problem
from claudebox.record import Record
from claudebox.settings.values import Named

# Parts of the system: never writable, and nothing below is a project.
SYSTEM_TREES = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
)
# Where people do keep projects although a system tree is above.
PROJECT_TREES = ("/usr/src", "/usr/local/src", "/run/media")
# Directories of directories: too broad as a whole, fine below.
NO_FILES = ("/dev", "/proc", "/sys")  # the kernel's and the devices', not files
BROAD = (
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/srv",
    "/tmp",
    "/var",
    "/var/home",
    "/var/lib",
    "/var/tmp",
    "/var/cache",
    "/var/log",
    "/var/spool",
    *PROJECT_TREES,
)


class Refusal(Record):
    """Why a place may not be used."""

    reason: str


def refuse_writable(path: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> Refusal | None:
    """Judge a directory that the agent would be able to write: the project, or a mount that is asked for."""
    if any(is_inside(path, tree) for tree in SYSTEM_TREES) and not any(is_below(path, tree) for tree in PROJECT_TREES):
        return Refusal(f"{path} belongs to the system")
    return refuse_readable(path, homes, places)


def refuse_readable(path: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> Refusal | None:
    """Judge a directory or file that would become visible."""
    if path == "/":
        return Refusal("/ is the whole machine")
    if path in homes:
        return Refusal(f"{path} is your home, with everything in it")
    if any(is_inside(home, path) for home in homes):
        return Refusal(f"{path} contains your home")
    if any(is_inside(path, tree) for tree in NO_FILES):
        return Refusal(f"{path} is not a place for files")
    if path in BROAD:
        return Refusal(f"{path} is too broad")
    above = {path, *parents(path), "/"}
    secret = next((place for place in places if place.path in above), None)
    return Refusal(f"{secret.path} is secret ({secret.reason})") if secret is not None else None


def contained_secret(path: str, places: tuple[SecretPlace, ...]) -> SecretPlace | None:
    """A secret place below `path`."""
    below = f"{path}/"
    found = [place for place in places if place.path.startswith(below)]
    return min(found, key=lambda place: not place.exists, default=None)


def check_project(path: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> None:
    """Raise unless a box can be made for this project directory."""
    if not path.isprintable():
        raise Problem(
            f"the project's path holds control or invisible characters: {path!r}",
            "rename the directory: such a name can forge what this program shows",
        )
    refusal = refuse_writable(path, homes, places)
    if refusal is None and (secret := contained_secret(path, places)):
        verb = "contains" if secret.exists else "is where programs put"
        refusal = Refusal(f"it {verb} {secret.path} ({secret.reason})")
    if refusal is not None:
        raise Problem(
            f"{path} cannot be a project: {refusal.reason}",
            "cd to the directory of one project and start claudebox there",
        )


class Opening(Record):
    """A path that somebody wants writable."""

    path: str
    said: Named

    def opens(self, path: str) -> bool:
        return is_inside(path, self.path)


def openings(writable: tuple[Named, ...], project: str, home: str) -> list[Opening]:
    return [
        Opening(posixpath.normpath(posixpath.join(project, expand_home(said.path, home))), said) for said in writable
    ]
