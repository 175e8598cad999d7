"""What no mount holds and the report looks at, before the box and after it; and what in some of it is harmless."""

from __future__ import annotations

import posixpath

from claudebox.features.guard.git import checkout_of
from claudebox.features.guard.table import CLAUDES, DOT_GIT, GIT, TOOLS, UNSEEN, WORKTREES, Reason, is_harmless, why
from claudebox.host.git import parse_config, pointed_to
from claudebox.host.git.directory import OPERATIONS, STRANGE
from claudebox.host.tree import Tree
from claudebox.host.walk import BEYOND, FILE, LINK, PRIVILEGED, UNREAD, Entry
from claudebox.model import Guarded, Trace
from claudebox.paths import COMMON, is_below, is_inside, normalize, parents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Roots = tuple[str, ...]  # where the agent can write

LINKS, LEAVING = "links", "a symlink that leaves the project"
PRIVILEGES, PRIVILEGE = "privileges", "makes whoever starts it you, or one of your group"
NOT_LISTED = "too deep, or cannot be listed: nothing in it was looked at"
NOT_REACHED = "one directory too many: what follows was not looked at"
NOT_GITS = "git or another program would obey it there"
UNDER_WAY = "the box began or changed what is in progress here: git rebase --continue and --abort obey it"
NOT_ENTERED = f"/{CLAUDES}/{WORKTREES}"  # each is a project of its own


def judged(path: str, roots: Roots) -> Reason | None:
    """Why this host may obey a path, by its name below the directory that the agent can write."""
    return next((why(path[len(root) + 1 :]) for root in roots if is_below(path, root)), None)


def find_others(
    entries: Iterable[Entry], roots: Roots, git_dirs: Iterable[str], detours: Iterable[Entry]
) -> tuple[Guarded, ...]:
    """Every place that is compared when the box has ended, besides those that are held. Grave ones come first."""
    paths = [f"{git_dir}/{name}" for git_dir in git_dirs for name in OPERATIONS]
    found = {path: Guarded(path, GIT, UNDER_WAY) for path in paths}
    found.update((entry.path, Guarded(entry.path, GIT, NOT_GITS)) for entry in detours if entry.kind == STRANGE)
    named: dict[str, Guarded] = {}
    for entry in entries:  # nearest to the root first
        path, kind = entry.path, entry.kind
        if kind in (UNREAD, BEYOND):
            found[path] = Guarded(path, UNSEEN, NOT_LISTED if kind == UNREAD else NOT_REACHED)
        elif kind == PRIVILEGED:
            found[path] = Guarded(path, PRIVILEGES, PRIVILEGE)
        elif (
            entry.name != DOT_GIT
            and not is_harmless(entry.name)  # so that thousands of `.gitkeep` cost little
            and not _is_covered(path, found, named)
            and (reason := judged(path, roots))
        ):
            (found if reason.is_grave else named)[path] = Guarded(path, TOOLS, reason.text)
        elif kind == LINK:
            found[path] = Guarded(path, LINKS, LEAVING)
    return (*found.values(), *named.values())


def _is_covered(path: str, *found: dict[str, Guarded]) -> bool:
    """Whether a directory above is looked at with all its files."""
    for above in parents(path):
        if above.endswith(NOT_ENTERED):
            return False
        if any(above in places and places[above].group == TOOLS for places in found):
            return True
    return False


MANIFESTS = ("package.json", "pyproject.toml", "setup.cfg", "tox.ini")
MANIFEST = "tools that your commit hooks run obey it"
MODULE = "a hook or git's configuration runs it: python -m searches here first"
HOOK_MANAGERS = (".husky", ".lefthook", "lefthook", ".pre-commit-config", "prek.toml")


def watch_hooks(tree: Tree, root: str, texts: Iterable[bytes], *, has_hooks: bool) -> tuple[Guarded, ...]:
    """What the hooks of a repository run besides themselves; `texts` are the hooks and git's configuration."""
    modules = dict.fromkeys(name for text in texts for name in _modules(text.decode(errors="replace").split()))
    paths = [f"{root}/{name}{end}" for name in modules for end in ("", ".py")]
    found = [Guarded(path, GIT, MODULE) for path in paths if tree.lstat(path) is None]  # else it is the project's own
    if has_hooks or any(name.startswith(HOOK_MANAGERS) for name in tree.entries(root)):
        found += [Guarded(f"{root}/{name}", TOOLS, MANIFEST) for name in MANIFESTS]
    return tuple(found)


def _modules(words: list[str]) -> Iterator[str]:
    """`X` of every `-m X` or `-mX`."""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        said = following if word.strip("\"'") == "-m" else word[2:] if word.startswith("-m") else ""
        name = said.strip("\"';)").partition(".")[0]
        if name.isidentifier():
            yield name


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
    leaves = any(not any(is_inside(place, known) for known in (*roots, *COMMON)) for place in (named, real))
    return (f"-> {target}",) if leaves else None


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
