"""Opens, reads, writes, moves and removes files where an agent may be at work at the same moment.

What a box has left is hostile: names, kinds, modes and depth are its choice, and what was looked at may be something
else a moment later. So a file is one name in an open directory, no symlink is followed, nothing is opened that could
block, and a new file is complete before it gets its name. A path of several names is taken only where no box can write.
"""

from __future__ import annotations

import errno
import os
import stat

from claudebox.errors import Problem, quote, suppress
from claudebox.model import Preparation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

PRIVATE, PRIVATE_FILE, PERMISSIONS = 0o700, 0o600, 0o777
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
NAME_ONLY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
PIECE = 1 << 20
SMALL = 1 << 16  # bytes: a file that is copied in one piece, holes or not
DEEPEST = 200  # directories that are copied, each with two descriptors

GET_VERSION = 0x80087601  # FS_IOC_GETVERSION
# renameat2
NO_REPLACE, EXCHANGE = 1, 2


def lstat(parent: int | None, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def open_directory(path: str) -> int:
    """Open a directory by its whole path. A symlink on the way would make it another one than the box had."""
    with Open(os.open("/", NAME_ONLY)) as root:
        return open_below(root, path, stays=False)


class Parent:
    """The directory of a path, open while a `with` lasts, and the name in it."""

    def __init__(self, path: str) -> None:
        directory, self.name = os.path.split(path)
        self.descriptor = open_directory(directory)

    def __enter__(self) -> tuple[int, str]:
        return self.descriptor, self.name

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


class Open:
    """A descriptor, until a `with` ends."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __enter__(self) -> int:
        return self.descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


def open_below(root: int, path: str, *, stays: bool = True, makes: bool = False) -> int:
    """Open a directory, entering it name by name.

    With `stays`, all of them have to be on one file system. With `makes`, those that are missing are made.
    """
    here, device = os.dup(root), os.fstat(root).st_dev
    try:
        for name in filter(None, path.split("/")):
            if makes:
                make_directory(here, name)
            # Who may pass through a directory need not be able to list it.
            below = os.open(name, NAME_ONLY | os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
            if stays and os.fstat(here).st_dev != device:
                raise OSError(errno.EINVAL, "another file system is mounted there")
        return os.open(".", DIRECTORY, dir_fd=here)
    finally:
        os.close(here)


def open_hidden_directory(parent: int, name: str) -> tuple[int, int]:
    """Open a directory of an agent's even if its mode forbids it. Returns a descriptor, and the mode to give back."""
    mode = stat.S_IMODE(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    if mode & PRIVATE != PRIVATE:
        change_mode(parent, name, mode | PRIVATE)
    return os.open(name, DIRECTORY, dir_fd=parent), mode


def open_hidden_file(parent: int, name: str) -> int:
    """Open a plain file of an agent's for reading, even if its mode forbids it."""
    try:
        return open_file(parent, name)
    except PermissionError:
        mode = stat.S_IMODE(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        change_mode(parent, name, mode | stat.S_IRUSR)
        try:
            return open_file(parent, name)
        finally:
            change_mode(parent, name, mode)


def open_file(parent: int | None, name: str) -> int:
    """Open a plain file for reading. Anything else is an error."""
    descriptor = os.open(name, READ, dir_fd=parent)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a plain file")
    return descriptor


def has_content(parent: int | None, name: str, content: bytes) -> bool:
    """Whether there is a plain file with this content."""
    with suppress(OSError), Open(open_file(parent, name)) as descriptor:
        return os.read(descriptor, len(content) + 1) == content
    return False


def change_mode(parent: int, name: str, mode: int) -> None:
    """Change a mode, never through a symlink: the kernel has no call for that, but /proc has a way."""
    with Open(os.open(name, NAME_ONLY, dir_fd=parent)) as handle:
        if not stat.S_ISLNK(os.fstat(handle).st_mode):
            os.chmod(f"/proc/self/fd/{handle}", mode)


def make_directory(parent: int | None, name: str) -> None:
    """Make a directory for this user alone, unless another box has just made it."""
    with suppress(FileExistsError):
        os.mkdir(name, PRIVATE, dir_fd=parent)


def make_private(path: str) -> None:
    """Make directories like `os.makedirs`, which would leave all but the last open to other users."""
    if not os.path.isdir(path):
        make_private(os.path.dirname(path))
        make_directory(None, path)


def put_aside(parent: int | None, name: str) -> None:
    """Move what an agent has put in the place of something of ours out of the way."""
    os.rename(name, f"{name}.aside.{os.urandom(6).hex()}", src_dir_fd=parent, dst_dir_fd=parent)


class Replacement:
    """A new file, made under another name beside the one that it will have. It gets that when it is complete.

    It is used in a `with`, whose end removes the other name. With `room`, as many bytes are reserved now, for what must
    not be lost to a full disk later.
    """

    def __init__(self, name: str, parent: int | None = None, room: int = 0) -> None:
        directory, last = os.path.split(name)
        self.name, self.parent = name, parent
        self.temporary = os.path.join(directory, f".{last}.{os.urandom(6).hex()}")
        self.descriptor = os.open(self.temporary, NEW_FILE, PRIVATE_FILE, dir_fd=parent)
        try:
            if room:
                os.posix_fallocate(self.descriptor, 0, room)
        except OSError:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
            with suppress(OSError):  # it was renamed
                os.unlink(self.temporary, dir_fd=self.parent)

    def put(self, content: bytes, *, is_safe: bool = True) -> None:
        """Write the file and give it its name. If it is to be safe, not even a power failure leaves half of it.

        If another box has written the same at this moment, that file stays: it may be mounted already. An agent may
        have put a symlink in the place of the temporary file: the symlink gets the name, not what it leads to.
        """
        write_all(self.descriptor, content)
        os.ftruncate(self.descriptor, len(content))
        if is_safe:
            os.fsync(self.descriptor)
        names = {"src_dir_fd": self.parent, "dst_dir_fd": self.parent}
        try:
            os.link(self.temporary, self.name, **names, follow_symlinks=False)
            return
        except OSError:
            pass  # something is there, or the file system has no links
        if not has_content(self.parent, self.name, content):
            status = lstat(self.parent, self.name)
            if status is not None and stat.S_ISDIR(status.st_mode):
                put_aside(self.parent, self.name)  # which no file can replace
            os.rename(self.temporary, self.name, **names)


def write_whole(name: str, content: bytes, parent: int | None = None, *, is_safe: bool = True) -> None:
    """Write a file whole, or not at all. Raises OSError, and leaves what was there then."""
    with Replacement(name, parent) as new:
        new.put(content, is_safe=is_safe)


def write_new(name: str, content: bytes, mode: int, parent: int | None = None) -> None:
    """Write a file where nothing is."""
    with Open(os.open(name, NEW_FILE, PRIVATE_FILE, dir_fd=parent)) as descriptor:
        write_all(descriptor, content)
        os.fchmod(descriptor, mode)


def write_all(target: int, content: bytes) -> None:
    written = os.write(target, content)
    while written < len(content):
        written += os.write(target, memoryview(content)[written:])


def open_lock(path: str) -> int:
    """Open a lock, and make it if it is missing.

    It is a FIFO, to which nobody ever writes: whoever waits for something else beside it never takes it for readable.
    """
    flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileNotFoundError):
        return os.open(path, flags)
    with suppress(FileExistsError):
        os.mkfifo(path, PRIVATE_FILE)
    return os.open(path, flags)


def take_lock(descriptor: int, *, is_shared: bool = False, waits: bool = False) -> bool:
    """Take a lock until the descriptor is closed, alone or with others. False if somebody else has it."""
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


_addresses: dict[str, int] = {}  # looked up once: a landing renames ten thousand files


def c_call(name: str, *arguments: int | bytes) -> int:
    """Call a function of the C library, for what Python lacks. -1 if it fails, or if this Python cannot call it.

    `ctypes` takes as long to import as all of claudebox; `_ctypes`, its part in C, is enough.
    """
    try:
        import _ctypes
    except ImportError:
        return -1
    if name not in _addresses:
        loaded = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None: the libraries that are loaded already
        _addresses[name] = _ctypes.dlsym(loaded, name)
    return int(_ctypes.call_function(_addresses[name], arguments))


def rename(from_directory: int, from_name: str, to_directory: int, to_name: str, flags: int) -> None:
    """Rename, without replacing what is there, or by exchanging both. File systems that know neither get two steps."""
    words = os.fsencode(from_name) + b"\0", os.fsencode(to_name) + b"\0"
    if c_call("renameat2", from_directory, words[0], to_directory, words[1], flags) == 0:
        return
    # The call has no errno here. The plain one tells what is wrong, if it is not the flags.
    if flags == NO_REPLACE:
        if lstat(to_directory, to_name) is not None:
            raise FileExistsError(errno.EEXIST, "something is there already")
        os.rename(from_name, to_name, src_dir_fd=from_directory, dst_dir_fd=to_directory)
        return
    aside = f".{from_name}.aside"
    os.rename(to_name, aside, src_dir_fd=to_directory, dst_dir_fd=from_directory)
    try:
        os.rename(from_name, to_name, src_dir_fd=from_directory, dst_dir_fd=to_directory)
    except OSError:
        os.rename(aside, to_name, src_dir_fd=from_directory, dst_dir_fd=to_directory)
        raise
    os.rename(aside, from_name, src_dir_fd=from_directory, dst_dir_fd=from_directory)


def copy_content(source: int, target: int, size: int) -> None:
    """Copy a file without filling its holes: a file of a terabyte may have no content at all."""
    if size <= SMALL and len(content := os.read(source, SMALL + 1)) == size:
        write_all(target, content)
        return
    for start, end in _pieces_with_data(source, size):
        os.lseek(source, start, os.SEEK_SET)
        os.lseek(target, start, os.SEEK_SET)
        while start < end and (piece := os.read(source, min(end - start, PIECE))):
            write_all(target, piece)
            start += len(piece)
    os.ftruncate(target, size)


def _pieces_with_data(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    position = 0
    while position < size:
        try:
            start = os.lseek(descriptor, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            yield position, size  # this file system knows of no holes
            return
        position = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, position


def copy_tree(source: int, name: str, target: int, depth: int = 0) -> None:
    """Copy a directory with all in it, a file or a symlink. FIFOs, sockets and devices are left out."""
    status = os.stat(name, dir_fd=source, follow_symlinks=False)
    if depth > DEEPEST:
        raise OSError(errno.ELOOP, f"directories are nested deeper than {DEEPEST}")
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    elif stat.S_ISDIR(status.st_mode):
        os.mkdir(name, PRIVATE, dir_fd=target)
        hidden, _ = open_hidden_directory(source, name)
        with Open(hidden) as here, Open(os.open(name, DIRECTORY, dir_fd=target)) as there:
            for inner in os.listdir(here):
                copy_tree(here, inner, there, depth + 1)
    elif stat.S_ISREG(status.st_mode):
        file = open_hidden_file(source, name)
        with Open(file) as here, Open(os.open(name, NEW_FILE, PRIVATE_FILE, dir_fd=target)) as there:
            copy_content(here, there, status.st_size)
            os.fchmod(there, status.st_mode & PERMISSIONS)


class Directories:
    """Opens the directories of one tree, and keeps the last one open: changes come in the order of a walk."""

    def __init__(self, root: int, *, is_layers: bool = False) -> None:
        self.root = root
        self.is_layers = is_layers
        self.path = ""
        self.descriptor = -1

    def open(self, path: str) -> int:
        if self.descriptor < 0 or path != self.path:
            self.close()
            self.descriptor = self._open_in_layer(path) if self.is_layers else open_below(self.root, path)
            self.path = path
        return self.descriptor

    def _open_in_layer(self, path: str) -> int:
        here = os.dup(self.root)
        for name in filter(None, path.split("/")):
            try:
                below, _ = open_hidden_directory(here, name)
            finally:
                os.close(here)
            here = below
        return here

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


def remove_path(path: str) -> None:
    """Remove what has this path, if anything has, in a directory into which no box can put something else."""
    parent, name = os.path.split(path)
    if os.path.isdir(parent):
        with Open(os.open(parent, DIRECTORY)) as here:
            remove_tree(here, name, is_ours=True)


def remove_tree(parent: int, name: str, *, is_ours: bool = False) -> None:
    """Remove a directory with all in it, whatever its modes and however deep it is.

    Directories are moved up before they are emptied: a box can nest them deeper than any stack or descriptor table. If
    somebody was ended while doing that, those lie beside it, or beside where it was. They go as well where everything
    is claudebox's own; elsewhere such a name may be the user's, so there nobody can know it in advance.
    """
    moved = f".{name}." if is_ours else f".removed-{os.urandom(8).hex()}."
    left = [one for one in os.listdir(parent) if one.startswith(moved) and one[len(moved) :].isdecimal()]
    waiting = [name, *left]
    number = 0
    while waiting:
        current = waiting.pop()
        status = lstat(parent, current)
        if status is None:
            continue
        if not stat.S_ISDIR(status.st_mode):
            os.unlink(current, dir_fd=parent)
            continue
        change_mode(parent, current, PRIVATE)
        with Open(os.open(current, DIRECTORY, dir_fd=parent)) as here:
            for inner in os.listdir(here):
                if not stat.S_ISDIR(os.stat(inner, dir_fd=here, follow_symlinks=False).st_mode):
                    os.unlink(inner, dir_fd=here)
                    continue
                change_mode(here, inner, PRIVATE)
                number += 1
                while lstat(parent, f"{moved}{number}") is not None:
                    number += 1
                os.rename(inner, f"{moved}{number}", src_dir_fd=here, dst_dir_fd=parent)
                waiting.append(f"{moved}{number}")
        os.rmdir(current, dir_fd=parent)


def generation(descriptor: int) -> int:
    """What tells two files apart that had the same inode one after the other; 0 if the file system does not say."""
    import fcntl
    import sys

    try:
        return int.from_bytes(fcntl.ioctl(descriptor, GET_VERSION, bytes(8))[:4], sys.byteorder)
    except OSError:
        return 0


def mount_number(descriptor: int) -> str:
    """The number of the mount that a descriptor belongs to: between two of them nothing can be renamed."""
    with open(f"/proc/self/fdinfo/{descriptor}") as file:
        return next((line.split()[1] for line in file if line.startswith("mnt_id:")), "")


def prepare(preparations: tuple[Preparation, ...]) -> None:
    """Write claudebox's own state, as a Plan says it."""
    for preparation in preparations:
        try:
            _prepare(preparation)
        except OSError as error:
            directory = quote(os.path.dirname(preparation.path))
            raise Problem(
                f"cannot write {preparation.path}: {error.strerror}",
                f"see whose it is, and whether the disk is full:\n      ls -ld {directory}\n      df -h {directory}",
            ) from None


def _prepare(preparation: Preparation) -> None:
    directory, name = os.path.split(preparation.path)
    if preparation.kind == Preparation.DIRECTORY:
        make_private(directory)
    with Open(os.open(directory, DIRECTORY)) as parent:
        if preparation.kind == Preparation.USED:
            os.utime(name, dir_fd=parent, follow_symlinks=False)
        elif preparation.kind == Preparation.FILE:
            content = _with_others(parent, name, preparation)
            if not has_content(parent, name, content):  # most launches change nothing
                write_whole(name, content, parent, is_safe=False)
        elif preparation.kind == Preparation.LINK:
            with suppress(FileExistsError):
                os.symlink(preparation.content, os.fsencode(name), dir_fd=parent)
        else:
            _ensure(parent, name, is_directory=preparation.kind == Preparation.DIRECTORY)


def _ensure(parent: int, name: str, *, is_directory: bool) -> None:
    """Make a directory or a file of that name. Anything of another kind, such as a symlink, is moved out of the way."""
    status = lstat(parent, name)
    if status is not None:
        if (stat.S_ISDIR if is_directory else stat.S_ISREG)(status.st_mode):
            if is_directory and status.st_mode & PRIVATE != PRIVATE:
                change_mode(parent, name, PRIVATE)  # which an agent took from it, so that no box would start again
            return
        put_aside(parent, name)
    if is_directory:
        make_directory(parent, name)
        return
    with suppress(FileExistsError):  # another box of this project is starting
        write_new(name, b"", PRIVATE_FILE, parent)


def _with_others(parent: int, name: str, preparation: Preparation) -> bytes:
    """The content, with the lines that another box of the project has added since this one was planned.

    The lock is held until the directory is closed, that is until the file is written.
    """
    before, content = preparation.before, preparation.content
    if before is None:
        return content
    take_lock(parent, waits=True)
    if lstat(parent, name) is None or has_content(parent, name, before) or has_content(parent, name, content):
        return content
    with Open(open_file(parent, name)) as descriptor:
        others = os.read(descriptor, os.fstat(descriptor).st_size).split(b"\n")
    first, *lines = content.split(b"\n")
    if others[0] != first or others[-2:] != lines[-2:]:
        raise OSError(0, "another box has left something else there; try again")
    known = {*before.split(b"\n"), *lines}
    return b"\n".join([first, *lines[:-2], *(line for line in others[1:] if line not in known), *lines[-2:]])
