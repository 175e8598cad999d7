"""Keeps masks on while the box runs.

A mount over a file is gone when somebody on the host renames another file into its place, as most editors do to save.
Two processes put it back. The hand is in the box's mount namespace, watches directories of the host, and mounts. The
head stays outside: asked about a path, it judges the file, writes a decoy, and answers with the number of that decoy.

The hand never waits for the head. What was masked is covered again at once, by the decoy that it had. A new file whose
name says that it may hold a secret is judged first, since the agent makes such files, too; but if there is no answer
soon, it is covered by an empty decoy until there is one.

What was masked when the box started stays masked, whatever the file holds now. Symlinks count as they were then.
"""

from __future__ import annotations

import os
import select
import stat
import time
from itertools import islice

from claudebox import files
from claudebox.errors import Problem
from claudebox.features.secrets.act import LIVE, NOTES, SHARED, Keeping
from claudebox.features.secrets.decide import differing
from claudebox.files import c_call
from claudebox.host.walk import SKIPPED
from claudebox.process.companion import READY, die_with_parent
from claudebox.process.isolation import NEW_MOUNT_NAMESPACE, NEW_USER_NAMESPACE
from claudebox.sandbox.mounts import find_appearances
from claudebox.text import cut, escape, fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Numbers of system calls. Those of the newer ones are the same on x86_64 and aarch64.
OPEN_TREE, MOVE_MOUNT, OPENAT2 = 428, 429, 437
SET_SCHEDULING = {"x86_64": 314, "aarch64": 274}
SLICE = 100_000  # nanoseconds: from Linux 6.12 on, who asks for little at a time is let in before others
CLONE_TREE = 1 | os.O_CLOEXEC
BY_DESCRIPTORS = 0x04 | 0x40  # MOVE_MOUNT_F_EMPTY_PATH and MOVE_MOUNT_T_EMPTY_PATH
BENEATH_WITHOUT_SYMLINKS = 0x08 | 0x04
GET_OWNER, DETACH_WITHOUT_SYMLINK = 0xB701, 2 | 8  # NS_GET_USERNS; MNT_DETACH and UMOUNT_NOFOLLOW
WRITTEN, CLOSED_AFTER_WRITING, MOVED_HERE, MADE, LOST, GONE = 0x2, 0x8, 0x80, 0x100, 0x4000, 0x8000
IN_DIRECTORY, IS_DIRECTORY = CLOSED_AFTER_WRITING | MOVED_HERE | MADE, 0x40000000
EVENT = 16  # bytes before the name
# Directories: those of the start, nearest first; those that are made later. And descriptors beside theirs.
MOST_AT_START, MOST_LATER, MORE_OPEN = 3000, 3000, 200
MOST_MASKS, MOST_SHOWN = 600, 5000  # decoys: further files appear empty; files of which it is known since when
LONGEST_PATH, LONGEST_NAME = 4200, 18  # bytes that are said of a path; characters that are shown
MOST_NEWS = 20_000  # of more, or if the kernel has lost some, all directories are looked at instead
AT_ONCE, FEW = 100, 10  # entries of a directory, and new things, that are looked at before the next event
AGAIN = (0.003, 0.01, 0.0)  # seconds after which a file is judged again that could not be read
GRACE = 0.2  # seconds for which a new file waits for the head
LONG = 0.1  # seconds: a file that the box had for longer than it takes to write one may be open there
LATER = 0.5  # seconds, after which the program has started: then the head loads what it needs
TRIES, MOST_ASKED, MOST_TOLD, MOST_LINES = 5, 10, 5, 100_000
SHOW = -1  # what the head says of a file that holds no secret
IN_GIT = frozenset("objects refs logs hooks info lfs".split())  # directories of .git without configuration


def keep(keeping: Keeping, channel: int) -> None:
    """Watch, wait for the number of the box's first process, and keep its masks on."""
    hand = Hand(keeping, channel)
    from _socket import AF_UNIX, SOCK_SEQPACKET, socketpair

    ours, theirs = (one.detach() for one in socketpair(AF_UNIX, SOCK_SEQPACKET))
    if os.fork() == 0:  # while bwrap is at work, too
        os.close(ours)
        if first := os.read(channel, LONGEST_PATH):  # else there will be no box
            hand.enter(f"/proc/{first.decode()}/ns/mnt")
            os.write(channel, READY)  # for `made`
            os.write(channel, READY)  # for the parent, who relies on every companion
            hand.work(theirs)
        os._exit(0)
    for descriptor in (theirs, channel, hand.events, *hand.directories.values()):
        os.close(descriptor)
    Head(keeping, ours).work()


def open_beneath(root: int, path: str, flags: int) -> int:
    """Open a path without following any symlink; -1 if that cannot be done."""
    how = b"".join(word.to_bytes(8, "little") for word in (flags | os.O_CLOEXEC, 0, BENEATH_WITHOUT_SYMLINKS))
    return c_call("syscall", OPENAT2, root, os.fsencode(path.lstrip("/") or "."), how, len(how))


def hurry() -> None:
    """Have this process run as soon as it is woken, where the kernel can do that."""
    numbers = ((48, 4), (0, 12), (os.getpriority(os.PRIO_PROCESS, 0), 4), (0, 4), (SLICE, 8), (0, 16))
    wish = b"".join(number.to_bytes(size, "little", signed=True) for number, size in numbers)
    c_call("syscall", SET_SCHEDULING.get(os.uname().machine, -1), 0, wish, 0)


class Hand:
    """Watches the directories of the host, and mounts in the box."""

    def __init__(self, keeping: Keeping, channel: int) -> None:
        self.keeping, self.channel, self.numbers = keeping, channel, dict(keeping.numbers)
        self.judging = keeping.judging
        self.host, self.box, self.decoys, self.head = os.open("/", files.NAME_ONLY), -1, -1, -1
        # By the number of its watch, a descriptor of each directory: that leads there, even if it is moved.
        self.directories: dict[int, int] = {}
        self.files: dict[int, str] = {}  # the paths of files that are watched themselves
        self.closed: list[str] = []  # directories that can be watched with the rights of the box's owner only
        self.unread: list[int] = []  # watched directories of which the content was not looked at
        self.listing: tuple[int, Iterator[os.DirEntry[str]]] | None = None  # of the one that is being looked at
        self.news: dict[str, int] = {}  # events about what is not masked
        self.waiting: dict[str, None] = {}  # files to ask about
        self.asked: list[str] = []  # those about which it has, in this order
        self.patience: dict[str, float] = {}  # until when new files wait for an answer, in this order
        self.places: dict[str, list[str]] = {}  # by directory of the host, where the box shows it
        self.ours: dict[tuple[int, int], int] = {}  # device and inode of decoys, and their numbers
        self.bare: set[str] = set()  # files that the box could read, and that the user has to know of
        self.shown: dict[str, tuple[int, float]] = {}  # files that the box had as they are: their inodes, since when
        self.told: dict[str, str] = {}
        self.is_full, self.next_sweep = False, 0.0  # whether there were too many directories
        self.removed: list[int] = []  # those that were removed: the kernel does so when they are closed, on the disk
        self.events = c_call("inotify_init1", os.O_CLOEXEC | os.O_NONBLOCK)
        if self.events < 0:
            hint = "sudo sysctl fs.inotify.max_user_instances=512"
            raise Problem("the kernel gives no inotify instance, by which masks are kept on", hint)
        most = self.room = raise_limit(MOST_AT_START + MOST_LATER + MORE_OPEN) - MORE_OPEN
        directories = self.judging.directories()
        gits = [path for path in directories if path.endswith("/.git") or path in self.judging.also]
        near = dict.fromkeys((keeping.project, *map(os.path.dirname, keeping.numbers), *gits))
        for path in near:
            if self.watch(path) == -1:
                hint = "sudo sysctl fs.inotify.max_user_watches=524288"
                raise Problem(f"the kernel does not watch {path}, by which masks are kept on", hint)
        self.unread = [*self.directories]
        for path in directories[:MOST_AT_START]:
            self.watch(path)
        self.room = min(len(self.directories) + MOST_LATER, most)

    def enter(self, namespace: str) -> None:
        """Enter the box's mounts, with the rights of whoever made the user namespace that owns them.

        All paths stay those of the host: the root directory does, and so nothing of the box is loaded as code.
        """
        mounts = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
        owner = c_call("ioctl", mounts, GET_OWNER)
        if c_call("setns", owner, NEW_USER_NAMESPACE) != 0 or c_call("setns", mounts, NEW_MOUNT_NAMESPACE) != 0:
            raise Problem("the kernel does not let claudebox enter the box, to keep masks on", "claudebox --check")
        die_with_parent()  # only now: the kernel forgets it when a process gains rights
        self.box, self.decoys = os.open("/", files.NAME_ONLY), os.open(self.keeping.place, files.NAME_ONLY)
        os.fchdir(self.host)
        os.chroot(".")
        nothing = os.stat("/dev/null")  # lies over files that are hidden
        self.ours[nothing.st_dev, nothing.st_ino] = SHARED
        for number in (SHARED, *self.numbers.values()):
            self.identify(number)

    def identify(self, number: int) -> None:
        status = os.stat(f"{number}", dir_fd=self.decoys)
        self.ours[status.st_dev, status.st_ino] = number

    def work(self, head: int) -> None:
        """Take events about masked files first, then answers, then a part of the rest: so no flood holds up a mask."""
        hurry()
        self.head, poll = head, select.poll()
        for descriptor in (head, self.events, self.channel):
            os.set_blocking(descriptor, False)
            poll.register(descriptor, select.POLLIN)
        for path, number in self.keeping.numbers.items():
            self.cover(path, number)
            self.look(path) if path in self.bare else None  # it was saved since it was found
        for path in self.closed:
            self.watch(path)
        self.note(FULL) if self.is_full else None
        while True:
            self.ask()
            soonest = next(iter(self.patience.values()), None)
            wait = None if soonest is None else max(0.0, soonest - time.monotonic()) * 1000
            ready = dict(poll.poll(0 if self.news or self.unread or self.listing else wait))
            if self.channel in ready:
                return  # the parent of the box has ended
            if self.events in ready:
                self.read_events()
            if head in ready:
                self.hear()
            self.lose_patience()
            self.read_on()

    def read_events(self) -> None:
        data, found = os.read(self.events, 1 << 16), self.news
        while data:
            number, event = (int.from_bytes(data[at : at + 4], "little", signed=True) for at in (0, 4))
            end = EVENT + int.from_bytes(data[12:EVENT], "little")
            if event & LOST or len(found) > MOST_NEWS:
                found.clear()
                found |= dict.fromkeys(self.numbers, 0)
                self.unread = [*self.directories]
            elif event & GONE:
                self.forget(number)
            elif number in self.directories:
                found[f"{self.path_of(number)}/{os.fsdecode(data[EVENT:end].rstrip(bytes(1)))}"] = event
            elif number in self.files:
                found[self.files[number]] = event
            data = data[end:]
        for path in self.numbers.keys() & found.keys():
            self.meet(path)

    def meet(self, path: str) -> None:
        self.watch(path) if self.news.pop(path) & IS_DIRECTORY else self.look(path)

    def path_of(self, number: int) -> str:
        """The path that a directory has now: somebody may have moved one that it lies in."""
        return os.readlink(f"/proc/self/fd/{self.directories[number]}")

    def watch(self, path: str) -> int:
        """Watch a directory, if it is one to watch. Returns 0 if it is not there, and -1 if the kernel refuses."""
        name = os.path.basename(path)
        if name in IN_GIT if "/.git/" in path else name in SKIPPED and name != ".git" and path not in self.judging.also:
            return 0
        here = open_beneath(self.host, path, os.O_PATH | os.O_DIRECTORY)
        if here < 0:
            return 0
        if self.box < 0 and not os.access(f"/proc/self/fd/{here}", os.R_OK):
            self.closed.append(path)
            os.close(here)
            return 0
        number = self.add_watch(here, IN_DIRECTORY)
        if number < 0 or number in self.directories:  # then it was moved, and its content is known
            os.close(here)
            return number
        self.directories[number] = here
        self.unread += [number] if self.box >= 0 else []
        return number

    def add_watch(self, descriptor: int, what: int) -> int:
        """The number of a watch; -1 if there are too many."""
        is_inside = self.box >= 0
        is_over = is_inside and len(self.directories) + len(self.files) >= self.room
        if is_over and not self.removed and time.monotonic() > self.next_sweep:
            self.next_sweep = time.monotonic() + 1
            self.removed = [one for one, there in self.directories.items() if not os.fstat(there).st_nlink]
        if is_over and self.removed:
            self.forget(self.removed.pop())
        has_room = len(self.directories) + len(self.files) < self.room
        number = c_call("inotify_add_watch", self.events, b"/proc/self/fd/%d" % descriptor, what) if has_room else -1
        if number < 0 and not self.is_full:
            self.is_full = True
            self.note(FULL) if is_inside else None
        return number

    def forget(self, number: int) -> None:
        self.files.pop(number, None)
        if number in self.directories:
            os.close(self.directories.pop(number))

    def read_on(self) -> None:
        """Look at a few new things, and at a part of the next directory."""
        for path in [*islice(self.news, FEW)]:
            self.meet(path)
        if self.listing is None and self.unread:
            number = self.unread.pop(0)
            try:
                self.listing = number, os.scandir(f"/proc/self/fd/{self.directories[number]}")
            except (KeyError, OSError):
                return  # removed meanwhile
        if self.listing is not None:
            number, entries = self.listing
            part = list(islice(entries, AT_ONCE))
            above = self.path_of(number) if number in self.directories else ""
            for entry in part if above else ():
                path = f"{above}/{entry.name}"
                self.watch(path) if entry.is_dir(follow_symlinks=False) else self.look(path)
            self.listing = self.listing if part and above else None

    def look(self, path: str) -> None:
        """Cover a file that is known to hold secrets. Have it judged; and a new one if its name says secret."""
        number = self.numbers.get(path)
        if number is not None:
            self.cover(path, number)
            if number != SHARED:
                self.waiting[path] = None
            elif path in self.bare:
                self.tell(path, "saved")
            return
        here = open_beneath(self.host, path, files.NAME_ONLY) if self.judging.kind(path) is not None else -1
        if here < 0:
            return  # an ordinary one, removed meanwhile, or a symlink
        status = os.fstat(here)
        if not stat.S_ISDIR(status.st_mode):
            watch = self.add_watch(here, WRITTEN)
            self.files |= {watch: path} if watch >= 0 else {}
            if stat.S_ISREG(status.st_mode) and not os.fstat(here).st_size:
                self.note_shown(path, status)  # until something is written
            else:
                self.patience.setdefault(path, time.monotonic() + GRACE)
                self.waiting[path] = None
        os.close(here)

    def note_shown(self, path: str, status: os.stat_result) -> None:
        """Note that the box has a file as it is, and since when: it may have that open later."""
        if len(self.shown) < MOST_SHOWN and self.shown.get(path, (0, 0.0))[0] != status.st_ino:
            self.shown[path] = status.st_ino, time.monotonic()

    def lose_patience(self) -> None:
        """Cover new files about which the head has said nothing in time."""
        for path, end in [*islice(self.patience.items(), FEW)]:
            if end <= time.monotonic():
                del self.patience[path]
                self.cover(path, SHARED)

    def ask(self) -> None:
        """Ask about files, those that are masked first: so a flood of new ones holds up none of these."""
        while self.waiting and len(self.asked) < MOST_ASKED:
            path = next((path for path in self.waiting if path in self.numbers), next(iter(self.waiting)))
            del self.waiting[path]
            self.asked.append(path)
            os.write(self.head, os.fsencode(path))

    def hear(self) -> None:
        """Do what the head says of the first file that it was asked about."""
        if not (said := os.read(self.head, LONGEST_PATH)):
            os._exit(0)  # the parent then ends the box
        path, (number, inode) = self.asked.pop(0), map(int, said.split())
        if number != SHOW:
            self.patience.pop(path, None)
            self.numbers[path] = number
            self.identify(number)
            self.cover(path, number)
            if path in self.bare:
                self.tell(path, "saved" if path in self.keeping.numbers else "made")
                self.bare.discard(path)
        elif path not in self.waiting and path not in self.asked:  # else it was written meanwhile
            self.patience.pop(path, None)
            self.numbers.pop(path, None)
            self.uncover(path, inode)
            if status := files.lstat(None, path):
                self.note_shown(path, status)
            self.bare.discard(path)

    def places_of(self, path: str) -> Iterator[int]:
        """Descriptors of the directory of a file, wherever the box shows it."""
        above = os.path.dirname(path)
        if above not in self.places:
            self.places[above] = [*dict.fromkeys(find_appearances(above, self.keeping.mounts))]
        for place in self.places[above]:
            directory = open_beneath(self.box, place, os.O_PATH | os.O_DIRECTORY)
            if directory >= 0:
                yield directory
                os.close(directory)

    def cover(self, path: str, number: int) -> None:
        """Mount a decoy wherever the box shows the file itself."""
        name = os.path.basename(path)
        for directory in self.places_of(path):
            for _ in range(TRIES):  # somebody may replace it at this moment
                target, is_bare = self.find_bare(directory, name, number)
                if target < 0:
                    break
                self.bare |= {path} if is_bare else set()
                decoy = c_call("syscall", OPEN_TREE, self.decoys, b"%d" % number, CLONE_TREE)
                c_call("syscall", MOVE_MOUNT, decoy, b"", target, b"", BY_DESCRIPTORS)
                os.close(decoy) if decoy >= 0 else None
                os.close(target)
            else:
                raise Problem(f"{path} cannot be masked", "")

    def find_bare(self, directory: int, name: str, number: int) -> tuple[int, bool]:
        """A descriptor of a file that needs this decoy, -1 if it does not; and whether it has no other."""
        try:
            target = os.open(name, files.NAME_ONLY, dir_fd=directory)
        except OSError:
            return -1, False
        status = os.fstat(target)
        now = self.ours.get((status.st_dev, status.st_ino))
        is_file = not stat.S_ISDIR(status.st_mode) and not stat.S_ISLNK(status.st_mode)
        if is_file and (now is None or now == SHARED != number):
            return target, now is None
        os.close(target)
        return -1, False

    def uncover(self, path: str, inode: int) -> None:
        """Take the mask off the file that was judged, and off no other that somebody has moved to its path.

        Nobody in the box renames what a mask is on. And in a layer, nothing moves what is on the host.
        """
        above, name = os.path.split(path)
        here = open_beneath(self.host, above, os.O_PATH | os.O_DIRECTORY)
        status = files.lstat(here, name) if here >= 0 else None
        is_judged = status is not None and status.st_ino == inode
        for directory in self.places_of(path) if is_judged else ():
            of_host, of_box = os.fstat(here), os.fstat(directory)
            if of_host.st_dev == of_box.st_dev and of_host.st_ino != of_box.st_ino:
                continue
            os.fchdir(directory)
            for _ in range(2):  # its own decoy may lie over the empty one
                status = files.lstat(directory, name)
                if status is not None and (status.st_dev, status.st_ino) in self.ours:
                    c_call("umount2", os.fsencode(name), DETACH_WITHOUT_SYMLINK)
        os.close(here) if here >= 0 else None

    def tell(self, path: str, what: str) -> None:
        """Note it for the end, and tell it at once, once for each file."""
        status = files.lstat(None, path)
        if path in self.told or len(self.told) >= MOST_TOLD or status is None:
            return
        inode, since = self.shown.get(path, (0, 0.0))
        is_open = status.st_nlink > 1 or (inode == status.st_ino and time.monotonic() - since > LONG)
        self.told[path] = f"{what}{HAD if is_open else ''}"
        # It has to fit into a row of 80.
        gap = "it can read it" if is_open else "readable for some ms"
        advice = "" if is_open or self.keeping.is_review else " (no gap: --review)"
        self.note(f"{_shown(path, self.keeping)} was {self.told[path]}: {gap}{advice}")

    def note(self, text: str) -> None:
        """Say something at once, and write down all that has to be said at the end."""
        with open(f"{self.keeping.directory}/{NOTES}", "w") as file:
            file.write(gap_text(self.told, self.keeping) + (_lines(FULL) if self.is_full else ""))
        try:
            if os.fork():  # an agent can have filled a pipe that nobody reads: then to write takes forever
                return
        except OSError:
            return  # there are too many processes: it is said at the end
        try:
            die_with_parent()
            for target in (self.channel, *(() if os.isatty(self.keeping.errors) else (self.keeping.errors,))):
                os.write(target, f"claudebox: {text}\n".encode())
        finally:
            os._exit(0)


class Head:
    """Judges files on the host, and writes their decoys."""

    def __init__(self, keeping: Keeping, hand: int) -> None:
        self.keeping, self.hand, self.numbers = keeping, hand, dict(keeping.numbers)
        self.next = max((one for one in self.numbers.values() if one != SHARED), default=0) + 1
        self.lines = {line for one in set(self.numbers.values()) for line in _lines_of(self.decoy(one))}
        # Of files that the box sees as they are.
        self.shown = {path: _lines_of(path) for path in keeping.judging.secrets.shown}

    def work(self) -> None:
        poll = select.poll()
        poll.register(self.hand, select.POLLIN)
        if not poll.poll(LATER * 1000):
            self.answer(f"{self.keeping.project}/.env")  # which has all loaded that it takes
        while said := os.read(self.hand, LONGEST_PATH):
            os.write(self.hand, b"%d %d" % (self.answer(os.fsdecode(said)), self.inode))

    def answer(self, path: str) -> int:
        """The number of the decoy for a file, which it has written; or that it need not be masked."""
        for pause in AGAIN:
            self.inode, inode = 0, _inode_of(path)  # of the file that was read, 0 if none was; and of what is there
            try:
                decoy = self.find_decoy(path)
            except Exception:  # whatever is in a file, masks stay on
                if path in self.numbers:
                    return self.numbers[path]
                decoy = b"", files.PRIVATE_FILE
            if not inode or _inode_of(path) != inode or (decoy is None and path in self.keeping.numbers):
                self.inode = 0
                return self.numbers.get(path, SHOW)  # replaced at this moment, which is an event of its own
            if decoy is None:
                return SHOW
            if decoy[0]:
                return self.write(path, *decoy)
            time.sleep(pause)  # git, for example, replaces its configuration several times
        return self.write(path, b"", files.PRIVATE_FILE)

    def find_decoy(self, path: str) -> tuple[bytes, int] | None:
        """What the box sees instead, and its mode; None if nothing in the file is secret.

        Lines of our own decoys are no secrets: the agent has copied them. Nor is what the box was shown of this file.
        """
        masked, content, self.inode = self.keeping.judging.judge(path)
        if masked is None:
            if content and sum(map(len, self.shown.values())) < MOST_LINES:
                self.shown[path] = set(content.splitlines())
            return None
        secret = differing(content or b"", masked.decoy)
        is_news = path in self.keeping.numbers or secret - self.lines - self.shown.get(path, set())
        return (masked.decoy, masked.mode) if is_news or not masked.decoy else None

    def decoy(self, number: int) -> str:
        return f"{self.keeping.directory}/{number}"

    def write(self, path: str, content: bytes, mode: int) -> int:
        """Write the decoy in place, so that a mask that is on shows it, too."""
        self.lines.update(content.splitlines() if len(self.lines) < MOST_LINES else ())
        number = self.numbers.get(path)
        if number is None:
            self.numbers[path] = number = self.next if self.next < MOST_MASKS else SHARED
            with open(f"{self.keeping.directory}/{LIVE}", "ab") as file:
                file.write(os.fsencode(path) + b"\0")
            if number != SHARED:
                files.write_new(self.decoy(number), content, mode)
                self.next += 1
        elif number != SHARED:
            with open(self.decoy(number), "r+b") as file:
                file.write(content)
                file.truncate()
        return number


def _inode_of(path: str) -> int:
    """0 if it is not there, -1 if that cannot be seen now: an agent can close a directory for a moment."""
    try:
        status = files.lstat(None, path)
    except OSError:
        return -1
    return status.st_ino if status is not None else 0


def _lines_of(path: str) -> set[bytes]:
    try:
        with open(os.open(path, files.READ), "rb") as file:
            return set(file.read().splitlines())
    except OSError:
        return set()


def raise_limit(amount: int) -> int:
    """Have this process open more files than is usual, as far as it may, and say how many those are."""
    import resource

    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = amount if most == resource.RLIM_INFINITY else min(amount, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(now, wanted), most))
    return wanted


FULL = "too many directories were made: a new file with a secret in the last ones is masked at the next start only"
HAD = " in a file that the agent has"  # under another name, or open since it held no secret
GAP = (
    "while the box ran; for some thousandths of a second the agent could read it, and a program that waits for it does"
)
ADVICE = ": for no gap at all, --review"
REVIEWED = ": here only whole names of secrets, in the root and beside masked files, have no gap"


def gap_text(told: dict[str, str], keeping: Keeping) -> str:
    """What to say at the end, the graver first."""
    text = ""
    for is_open in (True, False):
        ways = {path: what for path, what in told.items() if what.endswith(HAD) == is_open}
        were = f"{'was' if len(ways) == 1 else 'were'} {' or '.join(sorted(set(ways.values())))}"
        reviewed = REVIEWED if keeping.is_review else ADVICE
        rest = ": it can read it. Replace these secrets" if is_open else f" {GAP}{reviewed}"
        text += _lines(f"{', '.join(_shown(path, keeping) for path in ways)} {were}{rest}") if ways else ""
    return text


def _shown(path: str, keeping: Keeping) -> str:
    return cut(escape(path.removeprefix(f"{keeping.project}/")), LONGEST_NAME)


def _lines(text: str) -> str:
    return "\n  ".join(fill(f"claudebox: {text}".split(), 2)) + "\n"
