"""Decides about the mounts and hides that somebody asks for, by option or in a file."""

from __future__ import annotations

import posixpath

from claudebox.errors import Problem, quote
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host.secrets import contained_secret, refuse_readable, refuse_writable
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
        refuse_hiding_all(tree, hides, draft.wrapper, facts.project, facts.home)
        missing = [hide for hide in hides if not tree.exists(absolute(hide.text, facts.project, facts.home))]
        return Contribution(
            hides=(
                *hides_inside(tree, draft.mounts, draft.hidden_places(facts.places)),
                *find_hides(tree, hides, facts.project, facts.home, draft.mounts),
            ),
            findings=tuple(Finding(Finding.NOTE, hide.text, f"{hide.origin.shown} {NOT_YET}") for hide in missing),
        )


def refuse_hiding_all(tree: Tree, hides: tuple[Word, ...], wrapper: tuple[str, ...], cwd: str, home: str) -> None:
    """Refuse to hide what no program would run without: bwrap would fail, and not say why."""
    for hide in hides:
        named = absolute(hide.text, cwd, home)
        real = tree.resolve(named)
        if real is None or is_inside(real, cwd):
            continue
        if needed := next((path for path in _needed_by_all(tree, wrapper) if is_inside(path, real)), ""):
            what = f"{hide.origin.shown}: {named} cannot be hidden: no program would run in the box without {needed}"
            raise Problem(what, "hide something in it")


def _needed_by_all(tree: Tree, wrapper: tuple[str, ...]) -> list[str]:
    """The small programs that start the program, and the loaders of this system, wherever symlinks lead."""
    libraries = [f"{directory}/{name}" for directory in LIBRARIES for name in tree.entries(directory)]
    loaders = [path for path in libraries if "/ld-" in path and ".so" in path]
    named = [path for path in (*wrapper, *loaders) if path.startswith("/")]
    # By its own name, too: the last part may be a symlink in a directory that is hidden.
    by_name = [f"{tree.resolve(posixpath.dirname(path))}/{posixpath.basename(path)}" for path in named]
    return [*by_name, *(real for path in named if (real := tree.resolve(path)) is not None)]


def wished_mounts(
    reach: Reach, wishes: tuple[MountWish, ...], cwd: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...]
) -> list[Mount]:
    tree = reach.tree
    return [
        _wished(reach, wish, cwd, homes, places)
        for wish in wishes
        if not wish.is_optional or tree.exists(absolute(wish.source, cwd, homes[0]))
    ]


def _wished(reach: Reach, wish: MountWish, cwd: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> Mount:
    tree, home = reach.tree, homes[0]
    option, is_typed = wish.origin.shown, wish.origin.is_typed
    wish = _whole_name(tree, wish, cwd, home) if is_typed else wish
    named = absolute(wish.source, cwd, home)
    if not is_typed:
        _check_way(reach, named, option)
    real = _place_of_new(tree, named) if wish.is_new else tree.resolve(named)
    if real is None:
        or_else = "" if is_typed else "\n      if it may be missing: optional = true"
        raise Problem(f"{option}: {named} does not exist", f"check the spelling, or create it first{or_else}")
    refuse = refuse_writable if wish.access == RW else refuse_readable
    if refusal := refuse(real, homes, places):
        hint = _narrower(tree, wish, real, homes, places) or "mount only what the agent needs, from a place of its own"
        raise Problem(f"{option} {wish.source}: {refusal}", hint)
    path = normalize(expand_home(wish.destination, home)) if wish.destination else named
    if not path.startswith("/") or path in RESERVED or path.startswith(("/proc/", "/dev/")):
        raise Problem(f"{option}: {path} cannot be a place in the box", "choose another one: PATH:DEST")
    return Mount(wish.access, path, wish.origin, source=real, is_dir=tree.is_dir(real))


def _narrower(tree: Tree, wish: MountWish, real: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> str:
    """Instead of the home or a drawer: a directory in it, for example. None that holds credentials is suggested."""
    if real not in homes and not any(place.is_drawer and place.path == real for place in places):
        return ""
    inner = [f"{real}/{name}" for name in tree.entries(real) if name.isprintable() and not name.startswith(".")]
    fit = [path for path in inner if tree.is_plain_directory(path) and contained_secret(path, places) is None]
    example = next((path for path in fit if not refuse_readable(path, homes, places)), "")
    written = f"claudebox {wish.origin.shown} {quote(example)}" if wish.origin.is_typed else example
    return "name the directory in it that the agent needs" + (f", for example:\n      {written}" if example else "")


def _check_way(reach: Reach, named: str, option: str) -> None:
    """Refuse a path of a file if an agent can turn a symlink on the way to it.

    The file says the same at every start, so an agent that turns the symlink would choose what it means.
    """
    if reach.can_turn(named):
        real = reach.tree.resolve(named) or named
        what = f"{option}: a symlink that an agent can change leads from {named} to {real}"
        raise Problem(what, "write where it is, without the symlink")


def _place_of_new(tree: Tree, named: str) -> str | None:
    directory = tree.resolve(posixpath.dirname(named))
    return f"{directory}/{posixpath.basename(named)}" if directory is not None else None


def _whole_name(tree: Tree, wish: MountWish, cwd: str, home: str) -> MountWish:
    """`a:/b` may be the name of one existing file rather than a source and a destination."""
    if not wish.destination:
        return wish
    whole = f"{wish.source}:{wish.destination}"
    exists = tree.lstat(posixpath.join(cwd, expand_home(whole, home))) is not None
    return wish.replace(source=whole, destination="") if exists else wish


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
