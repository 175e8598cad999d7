"""Judges by what this host would do with it: what a box has left, and what waits in a layer to land.

A path is judged by its name (`why`), by what the host runs already (`held`), and a symlink or a file of git by what it
says. What else the agent has written makes nothing less grave.
"""

from __future__ import annotations

import posixpath

from claudebox.host.git import parse_config, pointed_to
from claudebox.host.tree import Tree
from claudebox.host.walk import FILE, Entry
from claudebox.model import Guarded, Trace
from claudebox.overlay.changes import DELETED, LINK, MODE, Change
from claudebox.overlay.git import checkout_of
from claudebox.overlay.places import LEAVING
from claudebox.overlay.table import DOT_GIT, why
from claudebox.paths import COMMON, is_below, is_inside, normalize, parents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from claudebox.overlay.places import Roots

    Held = dict[str, str]  # reasons by path, and "" if a hook looks for modules

REPOSITORY = "git obeys it: a repository"
WITH_REPOSITORY = "a repository goes with it"
# A directory with either pair is a repository, whatever its name is, and git obeys what else is in it. The second one
# says where the rest is, and may name any directory for that.
SIGNS = (("HEAD", "objects"), ("HEAD", "commondir"))
OBEYED = ("HEAD", "objects", "config", "config.worktree", "commondir", "hooks")


def judge(
    changes: Iterable[Change], project: str, exists: Callable[[str], bool], held: Iterable[Guarded]
) -> tuple[Change, ...]:
    """The changes of a layer, each with the reason why it is set apart, if there is one.

    `exists` says whether the host has something at a path below the project; `held` are the places that a box without a
    layer could not change.
    """
    changes = tuple(changes)
    paths = {change.path for change in changes}
    places = reasons_below(held, (project,))

    def reason(change: Change) -> str:
        if change.holds_git:
            return WITH_REPOSITORY
        # A new directory is judged like a text in it, as there may be one.
        by_name = why(f"{change.path}/x.md" if change.makes_room and change.old is None else change.path)
        if by_name is not None:
            return by_name.text
        removes = change.kind == DELETED or (change.old is not None and change.kind != MODE)
        leaving = LEAVING if change.what == LINK and change.target and _leaves(change, project) else ""
        return reason_of(change.path, places, lambda at: at in paths or exists(at), removes=removes) or leaving

    return tuple(change.replace(reason=said) if (said := reason(change)) else change for change in changes)


def reasons_below(held: Iterable[Guarded], roots: Iterable[str]) -> Held:
    """Why something is held, by its path below some directories; with a slash behind it, why something in it is."""
    found = {one.path[len(root) + 1 :]: one.reason for root in roots for one in held if is_below(one.path, root)}
    return {f"{above}/": reason for path, reason in found.items() for above in parents(path)} | found


def reason_of(path: str, held: Held, exists: Callable[[str], bool], *, removes: bool) -> str:
    """Why this host obeys a path, whatever its name. Who takes a directory away takes what is held in it, too."""
    by_place = next((held[one] for one in (path, *parents(path)) if one in held), "")
    by_place = by_place or (held.get(f"{path}/", "") if removes else "")
    return by_place or (REPOSITORY if _is_of_repository(path, exists) else "")


def _is_of_repository(path: str, exists: Callable[[str], bool]) -> bool:
    parts = path.split("/")
    for around in ("/".join(parts[:number]) for number, name in enumerate(parts) if name in OBEYED):
        pairs = [[posixpath.join(around, sign) for sign in pair] for pair in SIGNS]
        if any(all(map(exists, pair)) for pair in pairs):
            return True
    return False


def _leaves(change: Change, project: str) -> bool:
    """Whether a symlink leads out, or may: if `..` follows a name, that may be a symlink, and nobody can tell."""
    names = [name for name in change.target.split("/") if name not in ("", ".")]
    turns = [number for number, name in enumerate(names) if name == ".."]
    here = posixpath.dirname(f"{project}/{change.path}")
    named = normalize(posixpath.join(here, change.target))
    return turns != list(range(len(turns))) or _is_elsewhere(named, (project,))


def _is_elsewhere(path: str, roots: Roots) -> bool:
    return not any(is_inside(path, place) for place in (*roots, *COMMON))


ANNEXED = f"/{DOT_GIT}/annex/objects/"


def leaving(tree: Tree, roots: Roots, path: str, new: Trace) -> tuple[str, ...] | None:
    """Where a symlink leads, if that is elsewhere; or in git's own directory, where nobody looks."""
    target = (new.content or b"").decode(errors="surrogateescape")
    directory, name = posixpath.split(path)
    named = normalize(posixpath.join(directory, target))
    # Of a name that nothing has yet, the way there may still lead out by a symlink.
    real = tree.destination(path) or named
    parts = [f"/{posixpath.basename(root)}{real[len(root) :]}/" for root in roots if is_inside(real, root)]
    if name != DOT_GIT and any(f"/{DOT_GIT}/" in part for part in parts) and not tree.is_file(path):
        is_missing = ANNEXED in real and tree.lstat(real) is None  # git-annex has files there, and a clone not all
        return None if is_missing else (f"-> {target}", "in git's own directory, where nobody looks")
    is_python = {posixpath.basename(one).rstrip("0123456789.") for one in (name, target)} == {"python"}
    if is_python and tree.is_file(f"{posixpath.dirname(directory)}/pyvenv.cfg") and tree.is_executable(path):
        return None  # the interpreter of a virtual environment, which may be anywhere
    return (f"-> {target}",) if _is_elsewhere(named, roots) or _is_elsewhere(real, roots) else None


def pointed(roots: Roots, path: str, old: Trace | None, new: Trace) -> tuple[str, ...] | None:
    """What a `.git` file or `commondir` says, unless it is new and of a worktree or submodule of the same project."""
    text = (new.content or b"").decode(errors="surrogateescape")
    said = pointed_to(text) or text.strip()
    named = normalize(posixpath.join(posixpath.dirname(path), said))
    is_usual = any(is_inside(named, root) for root in roots) and f"/{DOT_GIT}/" in f"{named}/"
    return None if old is None and is_usual else (said,)


# What `git init`, `clone`, `remote`, `branch` and `submodule` write. Any other key may run something.
HARMLESS_KEYS = frozenset(
    "core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.symlinks core.ignorecase "
    "core.precomposeunicode core.autocrlf core.eol remote.url remote.pushurl remote.fetch remote.tagopt remote.prune "
    "remote.promisor remote.partialclonefilter branch.remote branch.merge branch.rebase branch.description user.name "
    "user.email user.signingkey submodule.url submodule.active submodule.branch extensions.objectformat "
    "extensions.refstorage extensions.partialclone lfs.repositoryformatversion pull.rebase push.default".split()
)


def configured(tree: Tree, path: str, old: Trace | None, new: Trace) -> tuple[str, ...] | None:
    """What a configuration of git says and did not say before, without what is known to be harmless."""
    if new.content is None:
        return ("too large to be looked at",)
    before, after = (
        parse_config(((one and one.content) or b"").decode(errors="surrogateescape")) for one in (old, new)
    )
    added = [pair for pair in after if pair not in before and not _is_harmless(tree, path, *pair)]
    return tuple(f"{name} = {value}" for name, value in added) or None


def _is_harmless(tree: Tree, path: str, name: str, value: str) -> bool:
    if name == "core.worktree":  # git would check files out there: harmless if that place says the same
        git_dir = posixpath.dirname(path)
        checkout = checkout_of(tree, Entry(normalize(posixpath.join(git_dir, value, DOT_GIT)), FILE))
        return checkout is not None and checkout.git_dir == git_dir
    section, _, rest = name.partition(".")
    # An address may be a command: `ext::sh -c …`.
    return f"{section}.{rest.rpartition('.')[2]}" in HARMLESS_KEYS and "::" not in value
