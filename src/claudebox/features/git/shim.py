"""Puts a `git` first on the box's PATH that refuses what git could only do by half, before it begins."""

from __future__ import annotations

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.features.git.decide import shipped
from claudebox.model import COVER, LAYER, RO, RW, Directory, Mount, Origin

DIRECTORY = "/etc/claudebox/bin"  # in the box
SCRIPT = "shim.sh"
KNOWN = b"@KNOWN@"
ORIGIN = Origin.of_rule("git", "says beforehand what git cannot do here")


def decide(facts: Facts, draft: Draft) -> Contribution:
    """It needs to know everything that is held, so it comes after what covers and after what is a layer."""
    script = shipped(facts, SCRIPT)
    if script is None:
        return Contribution()
    # All of it is printable: single quotes are enough for the shell.
    known = "\n".join(known_places(facts, draft)).replace("'", "'\\''")
    content = script.replace(KNOWN, f"'{known}'".encode(), 1)
    return Contribution(
        mounts=(Mount(COVER, f"{DIRECTORY}/git", ORIGIN, content=content, mode=0o555),),
        path=(Directory(DIRECTORY, Directory.FIRST),),
    )


def known_places(facts: Facts, draft: Draft) -> list[str]:
    """What cannot be replaced in the box, each with the reason, and where files outlive it."""
    last = {mount.path: mount for mount in draft.mounts}  # at the same path, a later one wins
    held = [mount for mount in last.values() if _is_held(mount)]
    kept = [facts.project, *(wish.path for wish in draft.wished if wish.kind == RW and wish.is_dir)]
    lines = [
        *(f"held\t{mount.path}\t{mount.origin.reason}" for mount in sorted(held, key=lambda mount: mount.path)),
        *(f"kept\t{path}" for path in kept),
        *(["layered"] if any(mount.kind == LAYER for mount in last.values()) else []),
    ]
    # A name with a line break would be two. Such a one is held all the same.
    return [line for line in lines if line.replace("\t", "").isprintable()]


def _is_held(mount: Mount) -> bool:
    """Whether it is guarded, or a file with made-up values."""
    return (mount.kind == RO and mount.origin.is_rule("guard")) or bool(mount.covers)
