"""Lays out the decoys of a box as files in the project's state, and has their masks kept on as long as the box lives.

bwrap could make them from memory, as in the command that `--dry-run` shows. But it unlinks such a file, the kernel then
calls its path "deleted", and Claude Code refuses to read a file whose real path it cannot tell.
"""

from __future__ import annotations

import os
import stat

from claudebox import files
from claudebox.errors import Problem, suppress
from claudebox.features.secrets import Judging, table
from claudebox.host.secrets import is_systems
from claudebox.host.walk import GIT, SKIPPED
from claudebox.model import FROM_HOST, HIDE, RO, Launch, Mount, Origin
from claudebox.output.terminal import say
from claudebox.paths import is_below, is_inside, move, parents
from claudebox.process.companion import LONGEST_MESSAGE, READY, Companion, start_beside
from claudebox.record import Record
from claudebox.sandbox.mounts import find_holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    from claudebox.model import Deed

LOCK = "lock"  # held by each box of the project: what lies beside it without one, a box that was killed has left
DOTENVS = ",.local,.development,.production,.staging,.test,.development.local,.production.local,.test.local"
NOTES = "notes"  # a file beside the decoys: what to tell when the box has ended
MOST_NOTES = 1 << 17  # bytes
LIVE = "live"  # another one: the files that were masked while the box ran, each behind its device and inode
MOST_LIVE = 1 << 20  # bytes
MOST_MOVED = 5  # those of them that are named
MOVED = "moved away by the box, unless you did it: the next one may read it. Look for it, or replace the secret"
UNFINISHED = "claudebox: not all files that were saved last could be looked at: the box may have read them\n"
SHARED = 1_000_000  # the number of an empty decoy, for all files that have none of their own
DECOYS = Origin.of_rule("secrets", "made-up files, to mount them again")


class Keeping(Record):
    """What the keeper is given."""

    project: str
    directory: str  # of the decoys, on the host
    place: str  # the same in the box
    numbers: dict[str, int]  # the name of the decoy of each file that is masked
    mounts: tuple[Mount, ...]
    judging: Judging
    errors: int  # a descriptor of standard error
    is_review: bool  # of the whole project


class Kept(Record):
    """What this launch has made."""

    decoys: str  # a directory
    keeper: int  # the socket that leads to the process that keeps masks on


def beside(launch: Launch) -> Companion:
    """Write each decoy into a file that the box sees read-only in the place of the real one, and start the keeper."""
    from _socket import AF_UNIX, SOCK_SEQPACKET, socketpair

    plan = launch.plan
    numbers = dict.fromkeys(find_hidden(launch.mounts, is_dir=False), SHARED)
    # Where nothing is kept of the project, nothing stays of this box either.
    is_kept = plan.state is not None and os.path.isdir(plan.state.directory)
    masks = plan.state.masks if plan.state is not None and is_kept else f"/tmp/claudebox-{os.urandom(8).hex()}"
    directory = f"{masks}/{os.urandom(8).hex()}"
    place = "/run/claudebox-masks"
    try:
        files.make_private(masks)
        os.close(os.open(masks, files.DIRECTORY))  # which fails if it is a symlink
        held = _hold(masks)
        os.mkdir(directory, files.PRIVATE)
        for name, mode in ((NOTES, 0o600), (LIVE, 0o600), (SHARED, 0o400)):
            files.write_new(f"{directory}/{name}", b"", mode)
        mounts = tuple(_laid_out(mount, directory, numbers) if mount.covers else mount for mount in launch.mounts)
        is_review = plan.review is not None and plan.review.is_whole
        launch.veil = _make_veil(plan.project, directory, numbers) if is_review else ""
    except OSError as error:
        hint = "see whose it is, and whether the disk is full: df -h ~"
        raise Problem(f"cannot write {masks}: {error.strerror}", hint) from None
    errors = os.dup(2)
    keeping = Keeping(plan.project, directory, place, numbers, mounts, launch.get(Judging), errors, is_review)
    ours, theirs = (one.detach() for one in socketpair(AF_UNIX, SOCK_SEQPACKET))
    life = start_beside(lambda channel: _keep(keeping, channel), (held, errors), (ours, theirs))
    launch.mounts = (*mounts, Mount(RO, place, DECOYS, source=directory))
    launch.keep(Kept(directory, life))
    return Companion(life, ended, None, lambda: _remove(directory if is_kept else masks), UNFINISHED)


def _keep(keeping: Keeping, channel: int) -> None:
    from claudebox.features.secrets.keeper import keep  # only in that process

    keep(keeping, channel)


def made(launch: Launch, root: str) -> Deed:
    """Have the keeper enter the box before a program starts there. At the end, say what was bare for a moment."""
    kept = launch.get(Kept)
    os.write(kept.keeper, root.split("/")[2].encode())
    said = os.read(kept.keeper, LONGEST_MESSAGE)
    if said != READY:
        message, _, hint = said.decode(errors="replace").partition("\0")
        raise Problem(message, hint) if message else ended()
    notes, live = (os.open(f"{kept.decoys}/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in (NOTES, LIVE))  # gone then
    judging, project = launch.get(Judging), launch.plan.project
    masked = [one.path for one in judging.secrets.masked]

    def tell() -> None:
        say("".join(map(_filled, os.read(notes, MOST_NOTES).decode(errors="replace").splitlines())))
        say(_moved(project, {*judging.directories()}, masked, os.read(live, MOST_LIVE)))

    return lambda _: tell()


def _filled(line: str) -> str:
    from claudebox.text import fill

    return "\n  ".join(fill(line.split(), 2)) + "\n"


def _moved(project: str, searched: Set[str], masked: Iterable[str], live: bytes) -> str:
    """Say which files that were masked while the box ran the next start will not find: nothing kept them there."""
    from claudebox.text import escape

    lines = (line.split(" ", 2) for line in os.fsdecode(live).split("\0")[:-1])
    files_of, gone = {path: (int(device), int(inode)) for device, inode, path in lines}, []
    for path in files_of:
        above = os.path.dirname(path)
        if table.is_swap(path):
            continue  # the editor has removed it
        is_apart = above not in searched and not (SKIPPED - {GIT}).isdisjoint(above[len(project) :].split("/"))
        if is_apart or os.path.realpath(path) != path or not os.path.lexists(path):
            gone.append(path)
    # The user has saved another one by renaming it: the very file is at a path that stays masked, and nowhere else.
    kept = set()
    for path in {*masked, *files_of} - {*gone}:
        with suppress(OSError):  # something else is in the place of its directory
            status = os.lstat(path)
            kept |= {(status.st_dev, status.st_ino)} if status.st_nlink == 1 else set()
    gone = [path for path in gone if files_of[path] not in kept]
    names = ", ".join(escape(path.removeprefix(f"{project}/")) for path in gone[:MOST_MOVED])
    more = f" and {len(gone) - MOST_MOVED} more" if len(gone) > MOST_MOVED else ""
    text = f"claudebox: {names}{more} {'was' if len(gone) == 1 else 'were'} {MOVED}"
    return _filled(text) if gone else ""


def ended() -> Problem:
    return Problem("the process that keeps masks on was ended, and the box with it", "start it again")


def _hold(place: str) -> int:
    """Take the lock together with the other boxes of the project. Whoever is alone first removes what is left."""
    held = files.open_lock(f"{place}/{LOCK}")
    if files.take_lock(held):
        for name in os.listdir(place):
            if name != LOCK:
                _remove(f"{place}/{name}")
    files.take_lock(held, is_shared=True, waits=True)
    os.utime(held)  # the last start, for the next one
    return held


def find_hidden(mounts: tuple[Mount, ...], *, is_dir: bool) -> list[str]:
    """The files or directories of the host that are hidden. An empty decoy keeps files so, whoever saves them."""
    found = []
    for hide in mounts:
        others = [mount for mount in mounts if mount.kind in FROM_HOST and is_below(hide.path, mount.path)]
        base = find_holder(hide.path, others) if hide.kind == HIDE and hide.is_dir == is_dir else None
        if base is not None:
            found.append(move(hide.path, base.path, base.source))
    return [path for path in found if not is_systems(path)]


def _laid_out(mask: Mount, directory: str, numbers: dict[str, int]) -> Mount:
    """A file that has several places in the box has one decoy. One that cannot be masked is an empty one."""
    path = f"{directory}/{numbers.setdefault(mask.covers, len(numbers))}"
    if not os.path.lexists(path):
        files.write_new(path, mask.content, mask.mode)
    return mask.replace(source=path)


def _make_veil(project: str, directory: str, masked: Iterable[str]) -> str:
    """A layer over the project in which names of secrets are deleted: what somebody makes there later is never seen.

    It lies below what the box writes, who can make a file of that name. Directories are as in the project.
    """
    veil, names = f"{directory}/veil", _names()
    os.mkdir(veil, files.PRIVATE)
    os.mknod(f"{directory}/deleted", stat.S_IFCHR)  # device 0: this is how overlays mark what is deleted
    near = {above for path in masked if is_inside(path, project) for above in (path, *parents(path))}
    for path in sorted(near | {f"{project}/x"}):
        here = os.path.dirname(path)
        there, status = veil + here[len(project) :], files.lstat(None, here)
        if not is_inside(here, project) or status is None or not stat.S_ISDIR(status.st_mode):
            continue
        os.makedirs(there, exist_ok=True)
        taken = {*os.listdir(here), *os.listdir(there)}
        for name in names - taken:
            os.link(f"{directory}/deleted", f"{there}/{name}")
        os.chmod(there, stat.S_IMODE(status.st_mode))
        os.utime(there, ns=(status.st_atime_ns, status.st_mtime_ns))
    return veil


def _names() -> set[str]:
    """Whole names that say "secret". Patterns have no end, and settings may hold one or not."""
    words = [word for _, _, names in table.ROWS for word in names.split() if not {"*", "/"}.intersection(word)]
    words += [f".env{rest}" for rest in DOTENVS.split(",")]
    kinds = {name: table.kind_of(f"/{name}") for word in words for name in (word, f".{word.lstrip('.')}")}
    return {name for name, kind in kinds.items() if kind is not None and kind[0] in (table.ALL, table.EMPTY)}


def _remove(path: str) -> None:
    try:
        files.remove_path(path)
    except OSError:
        pass  # the next box of the project tries again
