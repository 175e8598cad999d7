"""Brings back what a box has changed in decoys: into the real files, without moving a secret.

The real file is replaced in one step, and only if it is the very file that was masked, with the content that was
merged. What the box has left in its decoy never decides where something is written.
"""

from __future__ import annotations

import os
import stat

from claudebox import files
from claudebox.features.secrets import locks, memory
from claudebox.files import prepare
from claudebox.host.tree import Tree
from claudebox.merging import LARGEST, STALE, TOO_LARGE, Merged, merge
from claudebox.model import Mount, Plan
from claudebox.paths import shorten_home
from claudebox.problem import Problem
from claudebox.state import Instance
from claudebox.terminal import say
from claudebox.view.text import escape

# It is masked as `.env` is, if somebody ends this program at the wrong moment.
TEMPORARY = ".env.claudebox-"
ATTRIBUTES = ("user.", "system.posix_acl_access")
MOST_NAMED = 6
BUSY = "another box has it masked"
GONE = "the file was replaced on this host meanwhile"


def bring_back(plan: Plan) -> None:
    """Bring back the changes of every decoy that the box could edit, and say what came of it."""
    edited = [mount for mount in plan.mounts if mount.is_editable and mount.source]
    told = ""
    for mount in edited:
        merged, has_changed = _bring_back(mount, plan)
        if has_changed:
            kept = _keep(mount, plan) if merged.held or merged.trouble else ""
            told += report(mount.covers.removeprefix(f"{plan.project}/"), merged, kept)
    assert plan.state is not None
    note_inodes([mount.covers for mount in edited], plan.state)
    for directory in {os.path.dirname(mount.source) for mount in edited}:
        _remove(directory)
    if told:
        say(told)  # at last: perhaps nobody listens


def note_inodes(paths: list[str], state: Instance) -> None:
    """Remember the files as they are now: what gets the number of an old one must not be taken for it."""
    try:
        known = memory.recall(Tree(), state, os.getuid())
        inodes = {path: os.lstat(path).st_ino for path in paths if path in known}
        if any(known[path].inode != inode for path, inode in inodes.items()):
            prepare(memory.replaced(state, known, inodes))
    except (OSError, Problem):
        pass  # the next start looks for them


def _bring_back(mount: Mount, plan: Plan) -> tuple[Merged, bool]:
    """What came of a decoy, and whether the box has changed it at all."""
    try:
        left = _read_left(mount.source)
    except OSError as error:
        return Merged(trouble=error.strerror or "it cannot be read"), True
    if left == mount.content:
        return Merged(), False
    if left is None:
        return Merged(trouble=TOO_LARGE), True
    assert plan.state is not None
    assert mount.identity is not None
    try:
        lock = locks.open_lock(plan.state.masks_lock())
        try:
            if not locks.take(lock, mount.identity):
                return Merged(trouble=BUSY), True
            return land(mount.covers, mount.identity, mount.content, left), True
        finally:
            os.close(lock)
    except OSError as error:
        return Merged(trouble=error.strerror or "it cannot be written"), True


def _read_left(path: str) -> bytes | None:
    """What the box has left; None if that is too large."""
    directory, name = os.path.split(path)
    parent = os.open(directory, files.DIRECTORY)
    try:
        descriptor = files.open_hidden_file(parent, name)
    finally:
        os.close(parent)
    with open(descriptor, "rb") as file:
        content = file.read(2 * LARGEST + 1)
    return content if len(content) <= 2 * LARGEST else None


def land(path: str, identity: tuple[int, int], given: bytes, left: bytes) -> Merged:
    """Merge, and replace the real file. No symlink is followed on the way."""
    directory, name = os.path.split(path)
    parent = files.open_directory(directory)
    try:
        real, status = _read_real(parent, name)
        if (status.st_dev, status.st_ino) != identity or status.st_nlink != 1:
            return Merged(trouble=GONE)
        merged = merge(real, given, left)
        if merged.content is not None and not _replace(parent, name, status, real, merged.content):
            return Merged(trouble=STALE)
        return merged
    finally:
        os.close(parent)


def _read_real(parent: int, name: str) -> tuple[bytes, os.stat_result]:
    descriptor = os.open(name, files.READ, dir_fd=parent)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(files.INVALID, "it is no file any more")
        return file.read(LARGEST + 1), status


def _replace(parent: int, name: str, status: os.stat_result, real: bytes, content: bytes) -> bool:
    """Replace a file in one step. False, and nothing is changed, if it was not what it was when it was read."""
    temporary = f"{TEMPORARY}{os.urandom(6).hex()}"
    descriptor = os.open(temporary, files.NEW_FILE, 0o600, dir_fd=parent)
    try:
        try:
            _inherit(parent, name, descriptor, status)
            files.write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        files.rename(parent, temporary, parent, name, files.EXCHANGE)
        # Now the old one has the other name. If somebody has put something else there, it goes back.
        if _is_same(parent, temporary, status, real):
            return True
        files.rename(parent, temporary, parent, name, files.EXCHANGE)
        return False
    finally:
        os.unlink(temporary, dir_fd=parent)


def _is_same(parent: int, name: str, status: os.stat_result, real: bytes) -> bool:
    try:
        content, found = _read_real(parent, name)
    except OSError:
        return False
    return content == real and (found.st_dev, found.st_ino) == (status.st_dev, status.st_ino)


def _inherit(parent: int, name: str, descriptor: int, status: os.stat_result) -> None:
    """Give the new file the owner, attributes and mode of the old one. If that is impossible, nothing lands."""
    ours = os.fstat(descriptor)
    if (ours.st_uid, ours.st_gid) != (status.st_uid, status.st_gid):
        os.fchown(descriptor, status.st_uid, status.st_gid)
    old = os.open(name, files.READ, dir_fd=parent)
    try:
        for attribute in os.listxattr(old):
            if attribute.startswith(ATTRIBUTES):
                os.setxattr(descriptor, attribute, os.getxattr(old, attribute))
    finally:
        os.close(old)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _keep(mount: Mount, plan: Plan) -> str:
    """Keep the decoy as the box has left it. Returns where it is, as people write it."""
    assert plan.state is not None
    kept = f"{plan.state.edited}/{os.path.basename(mount.covers)[:100]}-{os.urandom(4).hex()}"
    try:
        os.rename(mount.source, kept)
    except OSError:
        return ""
    return shorten_home(kept, plan.person.home)


def keep_left(directory: str, given: str) -> None:
    """Keep the decoys that a box had changed when somebody ended it by force, and say where they are.

    Nothing lands: whose file it was, and whether it still is that file, only the box's own claudebox knew.
    """
    place = os.path.dirname(directory)
    for copy in sorted(os.listdir(directory)):
        number, mark, name = copy.partition(given)
        if not mark:
            continue
        try:
            is_edited = _read_left(f"{directory}/{number}") != _read_left(f"{directory}/{copy}")
            kept = f"{place}/{name}-{os.urandom(4).hex()}"
            if is_edited:
                os.rename(f"{directory}/{number}", kept)
        except OSError:
            continue
        if is_edited:
            shown = escape(shorten_home(kept, os.path.expanduser("~")))
            say(f"claudebox: {escape(name)}: a box that was ended by force had edited it; nothing landed\n")
            say(f"  as the box left it: {shown}\n")
    _remove(directory)


def _remove(directory: str) -> None:
    place, name = os.path.split(directory)
    try:
        parent = os.open(place, files.DIRECTORY)
    except OSError:
        return
    try:
        files.remove_tree(parent, name)
    except OSError:
        pass  # it is in nobody's way
    finally:
        os.close(parent)


def report(name: str, merged: Merged, kept: str) -> str:
    """One sentence about a file: what landed, what did not and why, and where that is."""
    parts = [f"landed {_named(list(merged.landed))}"] if merged.landed else []
    if merged.trouble:
        parts.append(f"nothing landed: {merged.trouble}")
    elif merged.held:
        parts.append(f"not landed: {_named([f'{key} ({why})' for key, why in merged.held])}")
    text = f"claudebox: {escape(name)}: {'; '.join(parts)}"
    return f"{text}. As the box left it: {escape(kept)}\n" if kept else f"{text}\n"


def _named(names: list[str]) -> str:
    shown = [escape(one) for one in names[:MOST_NAMED]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
