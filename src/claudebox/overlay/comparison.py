"""Finds what a box has left that this host may obey: the difference of two pictures of the same places. And judges what
waits in a layer to land.

Whether a change matters is judged by its name (`table.why`), by what the host runs already (`held`), a symlink or a
file of git by what it says, and never by what the agent wrote elsewhere: a repository around it makes nothing less
grave. A session that edits source files, commits and installs packages ends without a word.
"""

from __future__ import annotations

import posixpath
import stat
import time

from claudebox.errors import quote
from claudebox.host import walk
from claudebox.host.git import is_repository, parse_config, pointed_to
from claudebox.host.git.directory import RERERE, STRANGE, Refs, common_dir, read_all_refs
from claudebox.host.git.index import LARGEST_INDEX_BYTES, find_hidden
from claudebox.host.tree import Tree
from claudebox.host.walk import REST, Fingerprint
from claudebox.model import Guard, Guarded, Trace
from claudebox.overlay import changes, git, places
from claudebox.overlay.changes import Change
from claudebox.overlay.git import CONFIG, DETOUR, INCLUDED, git_directories
from claudebox.overlay.places import LEAVING
from claudebox.overlay.table import BY_NAME, COMMIT, DOT_GIT, GIT, OBEYED, UNSEEN, WANTED, why
from claudebox.paths import COMMON, is_below, is_inside, normalize, parents
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from claudebox.overlay.places import Roots

    Held = dict[str, str]  # reasons by path, and "" if a hook looks for modules

NEW, CHANGED, GONE = "new", "changed", "gone"
IN_THE_WAY = "a directory: the next box will not start"
NESTED = "a repository: git obeys it"
BROKEN, RESTORE = "the repository is broken: no HEAD or no objects", "copy it from a backup, or clone it anew"
UNWATCHED, WATCH = "git status hides changes of these", "git update-index --no-skip-worktree --no-assume-unchanged"
UNREADABLE, LOOK = "what git status hides could not be read", "git ls-files -v names it in small letters and by S"
REPLACED = "its content is not what its name says: git would take it as it is"
UNCHECKED, CHECK = "too many new objects to check what they are", "git fsck names those that are not what they say"
NOT_READ = b"not read"  # stands for an index for which there was no room
REPLACE, REPLACING = "refs/replace/", "git shows another commit here than the one it pushes"
COARSEST_CLOCK = 2_000_000_000  # nanoseconds: some file systems count in pairs of seconds


class Leftover(Record):
    """A change that the user should know of."""

    what: str
    path: str
    reason: str
    details: tuple[str, ...] = ()
    is_grave: bool = True  # something obeys it unasked; the rest is named
    is_gits: bool = False  # git obeys it
    is_strange: bool = False  # git never makes such a thing: it is taken away without a question
    mend: str = ""  # how to undo it, where moving a file would not
    old: Trace | None = None
    new: Trace | None = None


class Picture(Record):
    """What counts, as it was before the box."""

    roots: tuple[str, ...]  # where the box could write
    files: dict[str, Trace]
    since: int  # nanoseconds
    watched: tuple[Guarded, ...]  # because hooks lead there
    repositories: dict[str, str]  # checkouts, by their directories of git
    refs: dict[str, Refs]  # of all repositories, by their directories of git
    indexes: dict[str, bytes]
    modules: dict[str, frozenset[str]]  # of checkouts where something runs `python -m`
    unread: frozenset[str]  # what nobody could look into

    def before(self, newer: Picture) -> Picture:
        """This picture, with what only a newer one has looked at: that of a box that began beside the older one.

        What the older box has made meanwhile is new to both.
        """
        more = newer.files.items()
        outside = {path: one for path, one in more if not any(is_inside(path, root) for root in self.roots)}
        return Picture(
            tuple(dict.fromkeys((*self.roots, *newer.roots))),
            self.files | outside,
            min(self.since, newer.since),
            tuple(dict.fromkeys((*self.watched, *newer.watched))),
            newer.repositories | self.repositories,
            newer.refs | self.refs,
            newer.indexes,
            newer.modules | self.modules,
            self.unread | {path for path in newer.unread if not any(is_inside(path, root) for root in self.roots)},
        )


def take_picture(tree: Tree, guard: Guard) -> Picture:
    since = time.time_ns() - COARSEST_CLOCK
    known = known_places(guard)
    files = _fingerprint(tree, guard.roots, known)
    hooks = [one.path for one in known if one.reason == git.HOOKS]
    managers = [one.path for one in known if one.group == COMMIT]
    active = [path for path in files if any(is_inside(path, one) for one in hooks)]
    managed = [path for path in files if any(is_inside(path, one) for one in managers)]
    configs = [*guard.git_configs, *(one.path for one in known if one.reason in (CONFIG, INCLUDED))]
    texts = [files[path].content or b"" for path in (*active, *managed)]
    runs_modules = any(map(places.says_module, (*texts, *(tree.read(path) or b"" for path in configs))))
    git_dirs = git_directories(known)
    roots = [posixpath.dirname(one.path) for one in known if posixpath.basename(one.path) == DOT_GIT]
    roots += [posixpath.dirname(one) for one in git_dirs if posixpath.basename(one) == DOT_GIT]
    whole = {git_dir: root for root in (*guard.roots, *roots) if (git_dir := _repository(tree, root))}
    hooked = {
        root: any(is_inside(path, one) for path in active for one in (root, common_dir(git_dir)))
        for git_dir, root in whole.items()
    }
    hooked[guard.roots[0]] = bool(active)
    watched = tuple(one for root, has in hooked.items() for one in places.find_manifests(tree, root, has_hooks=has))
    modules = {root: frozenset(places.find_modules(tree, root)) for root in hooked if runs_modules}
    refs, indexes = read_all_refs(tree, git_dirs), _read_indexes(tree, whole)
    files = {**_fingerprint(tree, guard.roots, watched), **files}
    unread = frozenset(one.path for one in known if one.group == UNSEEN or one.reason == DETOUR)
    return Picture(guard.roots, files, since, watched, whole, refs, indexes, modules, unread)


def known_places(guard: Guard) -> tuple[Guarded, ...]:
    return (*guard.held, *guard.opened, *guard.loose, *guard.absent, *guard.others)


def _fingerprint(tree: Tree, roots: Roots, looked_at: Iterable[Guarded]) -> dict[str, Trace]:
    wanted = [place for place in looked_at if place.group != UNSEEN]
    hooks = {place.path for place in wanted if place.reason == git.HOOKS}
    return Fingerprint(tree, lambda path: places.is_whole(path, roots), hooks).take(place.path for place in wanted)


def _repository(tree: Tree, root: str) -> str:
    """The directory of git of a root; "" if there is none, or it has no HEAD or not a single object."""
    dot_git = f"{root}/{DOT_GIT}"
    kind = walk.DIRECTORY if tree.is_plain_directory(dot_git) else walk.FILE
    checkout = git.checkout_of(tree, walk.Entry(dot_git, kind))
    if checkout is None or not is_repository(tree, checkout.git_dir):
        return ""
    objects = f"{common_dir(checkout.git_dir)}/objects"
    has_objects = any(name not in ("info", "pack") for name in tree.entries(objects)) or tree.entries(f"{objects}/pack")
    return checkout.git_dir if has_objects else ""


def _read_indexes(tree: Tree, git_dirs: Iterable[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    room = LARGEST_INDEX_BYTES  # for all of them
    for git_dir in git_dirs:
        index = tree.read_plain(f"{git_dir}/index", LARGEST_INDEX_BYTES) or b""
        room -= len(index)
        found[git_dir] = index if room > 0 else NOT_READ
    return found


class Comparison:
    """Looks at everything as it is after the box, and compares it with what was there before.

    The tree has to be a new one: an old one remembers what it has read. `closed` is what the box cannot have changed.
    """

    def __init__(
        self, tree: Tree, guard: Guard, home: str, before: Picture, closed: frozenset[str] = frozenset()
    ) -> None:
        self.tree, self.guard, self.before, self.closed = tree, guard, before, closed
        self.known = {one.path for one in known_places(guard)}
        self.opened = [one.path for one in guard.opened if one.group != GIT]
        entries = self._walk()
        found = places.find_places(
            tree, guard.roots, entries, git.Account(home, guard.git_configs), guard.ways, since=before.since
        )
        self.detours = found.detours
        unread = {one.path for one in (*entries, *found.detours) if one.kind == walk.UNREAD} - before.unread
        self.unread = sorted(unread, key=len)  # nearest to the root first
        self.places = (
            *(one for one in found.guarded if any(is_inside(one.path, root) for root in guard.roots)),
            *found.others,
            *before.watched,
            *(Guarded(entry.path, GIT, DETOUR) for entry in found.detours if entry.kind != STRANGE),
        )
        self.files = _fingerprint(tree, guard.roots, self.places)
        self.files_in: dict[str, list[str]] = {place.path: [] for place in self.places}
        for path in self.files:
            for above in parents(path):
                if above in self.files_in:
                    self.files_in[above].append(path)

    def _walk(self) -> list[walk.Entry]:
        """Walk as before the box, and through the directories that the walk skips, where nobody looked then."""
        tree, roots = self.tree, self.guard.roots
        entries = [*walk.walk_project(tree, roots[0], WANTED, hidden=self.closed)]
        for directory in roots[1:]:
            entries += walk.list_directory(tree, directory, WANTED)
        statuses = [tree.status(path) for root in roots for path in (root, f"{root}/{DOT_GIT}")]
        is_shared = any(status is not None and status.st_mode & stat.S_ISGID for status in statuses)  # by a group
        return entries + walk.search_rest(tree, roots[0], self.before.since, self.closed, modes=is_shared)

    def leftovers(self) -> list[Leftover]:
        """All of it by risk: what the project's git obeys, then what lies in its root, other repositories, the rest."""
        found: dict[str, Leftover] = {}
        for one in (
            *self._strange(),
            *self._replaced(),
            *self._of_repositories(),
            *self._unseen(),
        ):  # what is taken away comes first
            found.setdefault(one.path, one)
        for place in self.places:
            is_judged = place.group == UNSEEN or place.reason in (places.NOT_GITS, DETOUR)
            for path in self._files_of(place.path) if not is_judged else ():
                for one in self._judged(place, path) if path not in found else ():
                    details = found[one.path].details if one.path in found else ()
                    found[one.path] = one.replace(details=tuple(dict.fromkeys((*details, *one.details))))
        root = f"{self.guard.roots[0]}/"

        def risk(one: Leftover) -> tuple[bool | int | str, ...]:
            name = one.path.removeprefix(root)
            is_own = is_inside(name, DOT_GIT)
            is_near = "/" not in name or name.startswith(".")
            return not one.is_grave, one.what != GONE, not is_own, not is_near, not one.is_gits, name.count("/"), name

        return sorted(found.values(), key=risk)

    def _of_repositories(self) -> Iterator[Leftover]:
        indexes = _read_indexes(self.tree, self.before.repositories)
        for git_dir, root in self.before.repositories.items():
            if _repository(self.tree, root) != git_dir:
                yield Leftover(GONE, f"{root}/{DOT_GIT}", BROKEN, is_gits=True, mend=RESTORE)
            yield from self._hidden(git_dir, root, indexes[git_dir])
        for root, modules in self.before.modules.items():
            for path in places.find_modules(self.tree, root) - modules:
                yield Leftover(NEW, path, places.MODULE, is_gits=True)
        for git_dir, refs in read_all_refs(self.tree, git_directories(self.places)).items():
            old = self.before.refs.get(git_dir)
            moved = refs.tips.items() - (old.tips.items() if old is not None else set()) if refs != old else set()
            for name in sorted(name for name, _ in moved if name.startswith(REPLACE)):
                mend = f"git replace -d {quote(name.removeprefix(REPLACE))}"
                yield Leftover(NEW, f"{git_dir}/{name}", REPLACING, is_gits=True, mend=mend)

    def _hidden(self, git_dir: str, root: str, index: bytes) -> Iterator[Leftover]:
        """Files whose changes git was told not to show. In a sparse checkout such files are not there."""
        old = self.before.indexes.get(git_dir, b"")
        hidden = find_hidden(index) if index != old or index == NOT_READ else set()
        known = find_hidden(old) if hidden else set()
        if hidden is None:
            yield Leftover(CHANGED, f"{git_dir}/index", UNREADABLE, is_gits=True, mend=LOOK)
        names = sorted((hidden or set()) - (known or set()))
        if names := [name for name in names if self.tree.lstat(f"{root}/{name}") is not None]:
            mend = f"{WATCH} {quote(names[0])}"
            yield Leftover(CHANGED, f"{git_dir}/index", UNWATCHED, tuple(names), is_gits=True, mend=mend)

    def _strange(self) -> Iterator[Leftover]:
        """What git never makes in its directory. Where there was the same before, it is the user's own."""
        known, git_dirs = (set(git_directories(one)) for one in (known_places(self.guard), self.places))
        for entry in self.detours:
            if entry.kind in (walk.UNREAD, walk.BEYOND):
                yield Leftover(NEW, entry.path, places.NOT_LISTED, is_gits=True)
                continue
            reason = places.NOT_GITS if entry.kind == STRANGE else DETOUR
            if entry.name == RERERE and entry.path in self.known:
                continue
            git_dir = next((one for one in (entry.path, *parents(entry.path)) if one in git_dirs), "")
            if git_dir not in known and self._is_others(entry, git_dir):
                continue
            for path in self._files_of(entry.path) if entry.path in self.known else [entry.path]:
                old, new = self.before.files.get(path), self.files.get(path)
                if old is None or new is None or not _is_same(old, new):
                    one = Leftover(NEW if old is None else CHANGED, path, reason, _target(new), old=old, new=new)
                    yield one.replace(is_gits=True, is_strange=reason == DETOUR or git_dir in known)

    def _replaced(self) -> Iterator[Leftover]:
        """Objects whose content the box has replaced: their names have the hash of it, but git does not check that."""
        directories = {f"{common_dir(one)}/objects": None for one in git_directories(self.places)}
        found, is_whole = git.find_replaced(directories, self.before.since)
        for path in found:
            yield Leftover(CHANGED, path, REPLACED, is_gits=True, is_strange=True)
        if not is_whole:
            yield Leftover(NEW, next(iter(directories)), UNCHECKED, is_gits=True, mend=CHECK)

    def _is_others(self, entry: walk.Entry, git_dir: str) -> bool:
        """Whether what lies in a repository that is new is older than the box, or need not be git's.

        A HEAD and a directory `objects` make a repository of any directory of the user, with all that is in it.
        """
        status = self.tree.lstat(entry.path)
        is_older = status is None or status.st_ctime_ns < self.before.since
        return is_older or (entry.kind == STRANGE and DOT_GIT not in git_dir.split("/"))

    def _unseen(self) -> Iterator[Leftover]:
        own = places.own_settings(self.guard.roots[0]).path
        if self.tree.is_plain_directory(own):
            yield Leftover(NEW, own, IN_THE_WAY)  # no box starts where there was one before
        for place in self.places:
            if place.group == UNSEEN and place.path not in self.known:
                yield Leftover(NEW, place.path, place.reason)

    def _files_of(self, place: str) -> list[str]:
        return [place] if place in self.files else self.files_in.get(place, [])

    def _judged(self, place: Guarded, path: str) -> list[Leftover]:
        """Judge a file. What the agent has written must never keep the rest from being said."""
        try:
            return list(self._judge(place, path))
        except Exception as error:
            return [Leftover(NEW, path, place.reason, (f"could not be looked at: {error}",))]

    def _judge(self, place: Guarded, path: str) -> Iterator[Leftover]:
        old, new = self.before.files.get(path), self.files[path]
        if old is not None and _is_same(old, new):
            return
        if old is None and (self._was_unseen(place, path) or self._is_copy(place, path, new)):
            return
        reason, is_grave, is_gits = place.reason, place.reason != places.MANIFEST, place.group == GIT
        if place.group in BY_NAME and is_grave:
            judged = places.judged(place.path if new.mode == REST else path, self.guard.roots)
            if judged is None or judged.text == OBEYED:  # a file of git, which is a place of its own
                return
            reason, is_grave = judged.text, judged.is_grave
        details = self._details(place, path, old, new)
        if details is None:
            return
        if repository := self._new_repository(path) if is_gits else "":
            yield Leftover(NEW, repository, NESTED, details or (posixpath.relpath(path, repository),), is_gits=True)
        elif reason == places.UNDER_WAY:
            yield Leftover(NEW, place.path, reason, is_gits=True)
        else:
            is_asked = place.group not in (GIT, places.PRIVILEGES) and any(is_inside(path, one) for one in self.opened)
            one = Leftover(NEW if old is None else CHANGED, path, reason, details, old=old, new=new)
            yield one.replace(is_grave=is_grave and not is_asked, is_gits=is_gits)

    def _was_unseen(self, place: Guarded, path: str) -> bool:
        """Whether it was there before the box, where nobody looked: it and what it lies in are older."""
        inside = [one for one in (path, *parents(path)) if any(is_below(one, root) for root in self.guard.roots)]
        names = {posixpath.basename(one) for one in inside} - {DOT_GIT}
        is_looked_at = walk.SKIPPED.isdisjoint(names) and self.guard.hidden.isdisjoint(inside)
        is_looked_at &= place.reason not in (INCLUDED, git.PROGRAM)
        if place.path in self.known or is_looked_at:
            return False
        statuses = [status for one in inside if (status := self.tree.lstat(one)) is not None]
        return all(status.st_ctime_ns < self.before.since for status in statuses)

    def _is_copy(self, place: Guarded, path: str, new: Trace) -> bool:
        """Whether a checkout in the project, a worktree or a clone, has the same file at the same place as the project.

        A mere copy is none: the same text may name a program beside it.
        """
        if place.group not in BY_NAME or not new.content:
            return False
        above = [(root, one) for root in self.guard.roots for one in parents(path) if is_below(one, root)]
        same = ((one, self.before.files.get(root + path[len(one) :])) for root, one in above)
        return any(
            known is not None and known.content == new.content and _repository(self.tree, one) for one, known in same
        )

    def _details(self, place: Guarded, path: str, old: Trace | None, new: Trace) -> tuple[str, ...] | None:
        """What matters about the change; None if nothing does."""
        if new.mode == REST:
            return ("there are more files than were looked at",)
        if place.group == places.LINKS:
            return _leaving(self.tree, self.guard.roots, path, new)
        if stat.S_ISLNK(new.mode):
            return _target(new)
        if place.reason in (CONFIG, INCLUDED):
            return _configured(self.tree, path, old, new)
        return _pointed(self.guard.roots, path, old, new) if place.reason == git.POINTER else ()

    def _new_repository(self, path: str) -> str:
        """The directory of git to which the file belongs, if that was not there before; else ""."""
        for above in parents(path):
            if not any(is_below(above, root) for root in self.guard.roots):
                return ""  # never the project itself, which would be moved away as a whole
            if is_repository(self.tree, above):
                return "" if f"{above}/config" in self.known else above
        return ""


def _target(new: Trace | None) -> tuple[str, ...]:
    is_link = new is not None and stat.S_ISLNK(new.mode)
    return (f"-> {(new.content or b'').decode(errors='surrogateescape')}",) if is_link and new is not None else ()


def _is_same(old: Trace, new: Trace) -> bool:
    is_equal = old.content is not None and old.content == new.content and old.mode == new.mode
    return is_equal or old.identity == new.identity


ANNEXED = f"/{DOT_GIT}/annex/objects/"


def _leaving(tree: Tree, roots: Roots, path: str, new: Trace) -> tuple[str, ...] | None:
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


def _pointed(roots: Roots, path: str, old: Trace | None, new: Trace) -> tuple[str, ...] | None:
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


def _configured(tree: Tree, path: str, old: Trace | None, new: Trace) -> tuple[str, ...] | None:
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
        checkout = git.checkout_of(tree, walk.Entry(normalize(posixpath.join(git_dir, value, DOT_GIT)), walk.FILE))
        return checkout is not None and checkout.git_dir == git_dir
    section, _, rest = name.partition(".")
    # An address may be a command: `ext::sh -c …`.
    return f"{section}.{rest.rpartition('.')[2]}" in HARMLESS_KEYS and "::" not in value


# What waits in a layer.

REPOSITORY = "git obeys it: a repository"
WITH_REPOSITORY = "a repository goes with it"
# A directory with either pair is a repository, whatever its name is, and git obeys what else is in it. The second one
# says where the rest is, and may name any directory for that.
SIGNS = (("HEAD", "objects"), ("HEAD", "commondir"))
PARTS = ("HEAD", "objects", "config", "config.worktree", "commondir", "hooks")


def judge(
    found: Iterable[Change], project: str, exists: Callable[[str], bool], held: Iterable[Guarded]
) -> tuple[Change, ...]:
    """The changes of a layer, each with the reason why it is set apart, if there is one.

    `exists` says whether the host has something at a path below the project; `held` are the places that a box without a
    layer could not change.
    """
    found = tuple(found)
    paths = {change.path for change in found}
    places = reasons_below(held, (project,))

    def reason(change: Change) -> str:
        if change.holds_git:
            return WITH_REPOSITORY
        # A new directory is judged like a text in it, as there may be one.
        by_name = why(f"{change.path}/x.md" if change.makes_room and change.old is None else change.path)
        if by_name is not None:
            return by_name.text
        removes = change.kind == changes.DELETED or (change.old is not None and change.kind != changes.MODE)
        leaving = LEAVING if change.what == changes.LINK and change.target and _leaves(change, project) else ""
        return reason_of(change.path, places, lambda at: at in paths or exists(at), removes=removes) or leaving

    return tuple(change.replace(reason=said) if (said := reason(change)) else change for change in found)


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
    for around in ("/".join(parts[:number]) for number, name in enumerate(parts) if name in PARTS):
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
