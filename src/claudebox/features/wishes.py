"""Decides about the mounts and hides that somebody asks for, by option or in a file."""

from __future__ import annotations

import posixpath

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host.secrets import refuse_readable, refuse_writable
from claudebox.host.tree import Tree
from claudebox.model import FROM_HOST, HIDE, RW, SYMLINK, Directory, Finding, Mount, Origin, SecretPlace
from claudebox.paths import absolute, expand_home, is_below, is_inside, move, normalize
from claudebox.sandbox.mounts import find_appearances, find_hides, find_holder
from claudebox.settings import MountWish, Word
from claudebox.settings.table import HIDES, MOUNTS, SHOWN, Setting
from claudebox.settings.types import List, Path
from claudebox.state.reach import Reach

LIBRARIES = ("/lib64", "/lib")  # one of them has the loader of programs
# bwrap or another feature makes these, and no mount may replace them.
RESERVED = ("/", "/proc", "/dev", "/etc/passwd", "/etc/group")
ONLY_WHAT_IS_NEEDED = "mount only what the agent needs: a directory in it, or a place of its own"
NOT_YET = "would hide it, but it does not exist yet"

PATH = Setting("path", SHOWN, "directories that come first in PATH", List(Path()), in_files_only=True)


class Wishes(Feature):
    """What somebody asked for: mounts, and directories of PATH."""

    settings = (PATH,)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        tree, settings = facts.tree, facts.settings
        asked = (*settings[MOUNTS], *draft.wishes)
        places = draft.hidden_places(facts.places)
        wished = settle(
            tree, wished_mounts(facts.reach, asked, facts.project, facts.person.homes, places), draft.mounts
        )
        return Contribution(
            mounts=tuple(wished),
            wished=tuple(wished),
            path=tuple(Directory(expand_home(entry.text, facts.home), Directory.ASKED_FOR) for entry in settings[PATH]),
        )


class Hides(Feature):
    """What stays hidden, whatever shows it."""

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        tree, hides = facts.tree, facts.settings[HIDES]
        loaders = [f"{place}/{name}" for place in LIBRARIES for name in tree.entries(place) if name.startswith("ld-")]
        needed = [path for path in (*draft.wrapper, *loaders) if path.startswith("/")] if hides else []
        for path in needed:
            refuse_hiding(tree, path, hides, facts)
        missing = [hide for hide in hides if not tree.exists(absolute(hide.text, facts.project, facts.home))]
        return Contribution(
            hides=(
                *hides_inside(tree, draft.mounts, draft.hidden_places(facts.places)),
                *find_hides(tree, hides, facts.project, facts.home, draft.mounts),
            ),
            findings=tuple(Finding(Finding.NOTE, hide.text, f"{hide.origin.shown} {NOT_YET}") for hide in missing),
        )


def refuse_hiding(tree: Tree, needed: str, hides: tuple[Word, ...], facts: Facts) -> None:
    """Refuse to hide what no program would run without: bwrap would fail, and not say why."""
    above, name = posixpath.split(needed)
    names = {f"{tree.resolve(above)}/{name}", tree.resolve(needed) or needed}  # it may be a symlink itself
    for hide in hides:
        named = absolute(hide.text, facts.project, facts.home)
        real = tree.resolve(named)
        if real is not None and any(is_inside(one, real) for one in names):
            what = f"{hide.origin.shown}: {named} cannot be hidden: no program would run in the box without {needed}"
            raise Problem(what, "hide something in it")


def wished_mounts(
    reach: Reach, wishes: tuple[MountWish, ...], cwd: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...]
) -> list[Mount]:
    """Judge what somebody asked for."""
    tree, home, found = reach.tree, homes[0], []
    for wish in wishes:
        option, is_typed = wish.origin.shown, wish.origin.is_typed
        named = absolute(wish.source, cwd, home)
        if wish.is_optional and not tree.exists(named):
            continue
        real = tree.resolve(named)
        # A file says the same at every start, so an agent that turns the symlink would choose what it means.
        if not is_typed and reach.can_turn(named):
            what = f"{option}: a symlink that an agent can change leads from {named} to {real or named}"
            raise Problem(what, "write where it is, without the symlink")
        if wish.is_new and (above := tree.resolve(posixpath.dirname(named))) is not None:
            real = f"{above}/{posixpath.basename(named)}"
        if real is None:
            or_else = "" if is_typed else "\n      if it may be missing: optional = true"
            raise Problem(f"{option}: {named} does not exist", f"check the spelling, or create it first{or_else}")
        refuse = refuse_writable if wish.access == RW else refuse_readable
        if refusal := refuse(real, homes, places):
            raise Problem(f"{option} {wish.source}: {refusal}", ONLY_WHAT_IS_NEEDED)
        path = normalize(expand_home(wish.destination, home)) if wish.destination else named
        if not path.startswith("/") or path in RESERVED or path.startswith(("/proc/", "/dev/")):
            raise Problem(f"{option}: {path} cannot be a place in the box", "choose another one: PATH:DEST")
        found.append(Mount(wish.access, path, wish.origin, source=real, is_dir=tree.is_dir(real)))
    return found


def settle(tree: Tree, wishes: list[Mount], others: tuple[Mount, ...]) -> list[Mount]:
    """Give each wish a destination that bwrap can use without following a symlink or leaving a trace on the host."""
    mounts = [*others, *wishes]
    return [_settled(tree, wish.replace(path=_through_links(wish.path, mounts)), mounts) for wish in wishes]


def _settled(tree: Tree, wish: Mount, mounts: list[Mount]) -> Mount:
    option = wish.origin.shown
    base = find_holder(wish.path, [mount for mount in mounts if is_below(wish.path, mount.path)])
    if base is None or base.kind not in FROM_HOST:
        return wish
    on_host = move(wish.path, base.path, base.source)
    if tree.resolve(on_host) != on_host:
        what = f"{option}: {wish.path} does not exist in the box, or a symlink leads there"
        raise Problem(what, f"create it first, or choose a destination outside of {base.path}")
    if tree.is_dir(on_host) != wish.is_dir:
        what = f"{option}: of {wish.source} and {wish.path} one is a directory and one is not"
        raise Problem(what, "choose another destination: PATH:DEST")
    return wish


def _through_links(path: str, mounts: list[Mount]) -> str:
    """A destination below /bin is really below /usr/bin where the box has that symlink."""
    for mount in mounts:
        if mount.kind == SYMLINK and is_below(path, mount.path):
            target = normalize(posixpath.join(posixpath.dirname(mount.path), mount.source))
            return _through_links(move(path, mount.path, target), mounts)
    return path


def hides_inside(tree: Tree, mounts: tuple[Mount, ...], places: tuple[SecretPlace, ...]) -> list[Mount]:
    """Hide the secret places that a broader mount would show."""
    hides: list[Mount] = []
    for place in places:
        if place.exists and not place.is_drawer and (paths := find_appearances(place.path, mounts)):
            origin, is_dir = Origin.of_rule("secret", place.reason), tree.is_dir(place.path)
            hides += [Mount(HIDE, path, origin, is_dir=is_dir) for path in paths]
    return hides
