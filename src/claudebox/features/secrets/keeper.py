"""Keeps masks on while the box runs.

A mount over a file is gone when somebody on the host renames another file into its place, as most editors do to save.
Two processes put it back:

    the host                  the hand, in the box's mount namespace              the box
    ────────                  ──────────────────────────────────────              ───────
    .env is saved ──inotify──> Watches ──> Hand ──> Box ──────────mount──────────> .env
                                           │  ▲
                                descriptor │  │ number of a decoy, SHOW, or GONE
                                           ▼  │
    .env ─────────read───────────────────> Head ──────────write──────────────────> its decoy
                              the head, outside

The head judges the very file that the hand has found: the box may have moved or removed it by then.
The hand never waits for the head. What was masked is covered again at once, by the decoy that it had; the head then
brings the decoy up to date. A new file whose name says that it may hold a secret is judged first, since the agent makes
such files, too; but if there is no answer soon, it is covered by an empty decoy until there is one.

What was masked when the box started stays masked, whatever the file holds now. Symlinks count as they were then.
"""

from __future__ import annotations

import os
import resource
import select
import stat
import sys
import time
from _socket import AF_UNIX, CMSG_SPACE, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socketpair
from itertools import islice, zip_longest

from claudebox import files
from claudebox.errors import Problem, suppress
from claudebox.features.secrets.decoys import LIVE, NOTES, SHARED, Keeping, find_hidden
from claudebox.features.secrets.table import is_swap, original
from claudebox.files import c_call
from claudebox.host.walk import GIT, SKIPPED
from claudebox.paths import is_inside, parents
from claudebox.process.companion import DONE, END, READY, die_with_parent, enter_as_owner
from claudebox.process.isolation import NEW_MOUNT_NAMESPACE
from claudebox.sandbox.mounts import find_appearances
from claudebox.text import cut, escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Iterable, Iterator

SHOW, GONE = -1, -2  # what the head says of a file that holds no secret; of one that does, or did, and is at no path
LONGEST_PATH = 5000  # bytes of a message between the two
MOST_HELD = 400  # descriptors of files that wait
MOST_ASKED = 10  # files about which the hand asks before it has answers
GRACE = 0.2  # seconds for which a new file waits for the head
MOST_NEWS = 20_000  # instead of more, or if the kernel has lost some, all directories are looked at
COARSE = 20_000_000  # nanoseconds by which the time of a change may lie behind the clock
LINKED = 1.0  # seconds in which nothing else happens to a symlink that was moved
FEW = 10  # new things, or directories, that are looked at before the next event


def keep(keeping: Keeping, channel: int) -> None:
    """Watch, wait for the number of the box's first process, and keep its masks on."""
    hand = Hand(keeping, channel)  # while bwrap is at work
    ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        if (first := os.read(channel, LONGEST_PATH)) not in (b"", END):  # else there will be no box
            hand.box.enter(f"/proc/{first.decode()}/ns/mnt")
            os.write(channel, READY)  # for `made`
            os.write(channel, READY)  # for the parent, who relies on every companion
            hand.work(theirs)
        with suppress(OSError):  # the parent of the box may have ended
            os.write(channel, DONE if not hand.gaps.is_lost else READY)
        os._exit(0)
    theirs.close()
    os.close(channel)
    hand.watches.close()
    Head(keeping, ours).work()


class Hand:
    """Covers files in the box when something happens to them on the host."""

    def __init__(self, keeping: Keeping, channel: int) -> None:
        self.channel = channel
        self.judging = keeping.judging
        self.numbers = dict(keeping.numbers)  # what is masked, and the numbers of the decoys
        self.at_start = frozenset(keeping.numbers)
        self.began = keeping.judging.facts.host.began - COARSE
        self.host = os.open("/", files.NAME_ONLY)
        self.watches, self.box, self.gaps = Watches(keeping, self.host), Box(keeping, self.host), Gaps(keeping, channel)
        self.news: dict[str, int] = {}  # what has happened to what is not masked
        self.links: dict[str, float] = {}  # symlinks that seem to have been moved where they are, and when
        # Files to ask about, by path and inode (0 if it was gone already), and their descriptors or -1.
        self.waiting: dict[tuple[str, int], int] = {}
        self.asked: list[tuple[str, int]] = []  # those about which it has, in this order
        # Until when new files wait for an answer, in this order: by inode, since the box can move their directories.
        self.patience: dict[int, tuple[float, str, int]] = {}  # with the path, and the directory's watch
        self.bare: set[int] = set()  # inodes of files that the box could read, and that the user has to know of
        self.bared: dict[str, float] = {}  # when a file that is masked was found bare last

    def work(self, head: socket) -> None:
        """Take events about masked files first, then answers, then a part of the rest: so no flood holds up a mask."""
        hurry()
        self.head, poll = head, select.poll()
        for descriptor in (head.fileno(), self.watches.events, self.channel):
            os.set_blocking(descriptor, False)
            poll.register(descriptor, select.POLLIN)
        for path, number in [*self.numbers.items()]:
            self.cover(path, number)
            if self.is_bare(path):  # it was saved since it was found
                self.look(path)
        self.watches.add_closed()
        while True:
            ready = dict(poll.poll(self.pause()))
            if self.channel in ready:
                if not os.read(self.channel, LONGEST_PATH):
                    return  # the parent of the box has ended
                self.gaps.is_over = True
            if self.watches.events in ready:
                self.take_events()
            self.ask()
            if head.fileno() in ready:
                self.hear()
            self.lose_patience()
            self.read_on()
            if self.watches.is_full and not self.gaps.is_full:
                self.gaps.tell_full()
            if self.gaps.is_over and not (ready or self.is_busy()):
                return  # all is told that the box could read, also what it read just before its end

    def is_busy(self) -> bool:
        return bool(self.news or self.waiting or self.asked or self.watches.has_more())

    def pause(self) -> float | None:
        """Milliseconds to wait for something to happen; None for as long as it takes."""
        has_question = bool(self.waiting) and len(self.asked) < MOST_ASKED
        if self.news or has_question or self.watches.has_more() or (self.gaps.is_over and not self.asked):
            return 0
        soonest = next(iter(self.patience.values()), None)
        return None if soonest is None else max(0.0, soonest[0] - time.monotonic()) * 1000

    def take_events(self) -> None:
        events = self.watches.read_events()
        is_whole, now = not self.watches.has_lost, time.monotonic()
        for path, had_come in self.watches.take_left().items():
            # While a mask is on, only the host moves a file: as an editor does before it writes another one.
            if path in self.at_start and (had_come or now - self.bared.get(path, 0.0) < LONG):
                self.gaps.tell_replaced(path)
        if not is_whole:
            self.watches.has_lost = False
            self.gaps.tell_lost()
            events = dict.fromkeys(self.numbers, 0) | events
        for path, first in self.watches.take_renamed().items():
            here = open_beneath(self.host, path, files.NAME_ONLY) if first not in self.numbers else -1
            if here >= 0:  # else it has gone on, and is told of by its first name
                self.news.pop(first, None)
                self.waiting.pop((first, 0), None)
                events.pop(first, None)
                self.follow(first, here)
        for path, here in self.watches.take_written():
            self.follow(path, here)
        for path in self.numbers.keys() & events.keys():
            self.meet(path, events.pop(path))
        for path, event in events.items():
            # The box can make any number of other names, which are not kept: so these crowd out none that counts.
            if event & IS_DIRECTORY or self.judging.kind(path) is not None:
                self.news[path] = self.news.get(path, 0) | event
        if not is_whole or len(self.news) > MOST_NEWS:
            self.news = dict(islice(self.news.items(), MOST_NEWS))
            self.watches.read_again(self.watches.directories)

    def read_on(self) -> None:
        """Look at a few new things, and at a part of the next directories."""
        for path in [*islice(self.news, FEW)]:
            self.meet(path, self.news.pop(path))
        room = AT_ONCE
        while room > 0 and self.watches.has_more():
            entries = self.watches.read_entries()
            room -= len(entries) + AT_ONCE // FEW
            for path, is_directory in entries:
                self.meet(path, IS_DIRECTORY if is_directory else 0, has_come=self.watches.is_moved)

    def meet(self, path: str, event: int, *, has_come: bool = True) -> None:
        if event & IS_DIRECTORY:
            number = self.watches.add(path)
            if has_come:  # one that is known was moved, and what happened in it meanwhile may have been missed
                self.watches.read_again([number], is_moved=True)
        else:
            self.look(path, event, may_be_known=not (event or has_come))

    def look(self, path: str, event: int = 0, *, may_be_known: bool = False) -> None:
        """Cover a file that is known to hold secrets, and have it judged; a new one if its name says secret.

        What has not changed since this start began to look was judged then, and nobody has to wait for it.
        """
        number, watch = self.numbers.get(path), 0
        if number is not None:
            self.cover(path, number)
        elif self.judging.kind(path) is None:
            return
        else:
            watch = self.watches.add(os.path.dirname(path))
        directory = self.watches.directories.get(watch)
        beneath = (self.host, path) if directory is None else (directory, os.path.basename(path))
        here = open_beneath(*beneath, files.NAME_ONLY)
        if here < 0 or stat.S_ISLNK(os.fstat(here).st_mode):
            self.miss(path, event, is_link=here >= 0)
        elif may_be_known and number is None and os.fstat(here).st_ctime_ns < self.began:
            pass
        elif (number is not None or self.is_news(path, here, watch)) and self.holds(path, here):
            return
        if here >= 0:
            os.close(here)

    def miss(self, path: str, event: int, *, is_link: bool) -> None:
        """Have it told that a file is gone which came a moment ago, unless it is a symlink that was moved here.

        The box can put one in the place of a file. But then two things happen to that.
        """
        has_come, now = event & (MOVED_HERE | CLOSED_AFTER_WRITING), time.monotonic()
        is_first = now - self.links.get(path, -LINKED) > LINKED
        if is_link and is_first and event == MOVED_HERE and len(self.links) < MOST_NEWS:
            self.links[path] = now
        elif has_come or (event and not is_first):
            self.waiting[path, 0] = -1  # behind those that it may be a copy of

    def follow(self, first: str, here: int) -> None:
        """Have a file judged by the name that it had first, wherever the box has moved it since."""
        status = os.fstat(here)
        is_held = False
        if stat.S_ISREG(status.st_mode):
            self.watches.add_file(first, here)
            if status.st_size:
                is_held = self.has_room_for(first, here)
            else:
                self.gaps.note_shown(first, status)
        if not is_held:
            os.close(here)

    def is_news(self, path: str, here: int, watch: int) -> bool:
        """Whether a file has to be judged that is not known yet."""
        status = os.fstat(here)
        if stat.S_ISDIR(status.st_mode):
            return False
        self.watches.add_file(path, here)
        if stat.S_ISREG(status.st_mode) and not os.fstat(here).st_size:
            self.gaps.note_shown(path, status)  # until something is written
            return False
        self.patience.setdefault(status.st_ino, (time.monotonic() + GRACE, path, watch))
        return True

    def holds(self, path: str, here: int) -> bool:
        """Have a file judged by its descriptor: so that counts which the box could read. Returns if that stays open."""
        inode = os.fstat(here).st_ino
        if self.numbers.get(path) == SHARED:
            if inode in self.bare:
                self.gaps.tell(path, "saved")
            return False
        return self.has_room_for(path, here)

    def has_room_for(self, path: str, here: int) -> bool:
        inode = os.fstat(here).st_ino
        is_held = (path, inode) not in self.waiting and len(self.waiting) < MOST_HELD
        self.waiting.setdefault((path, inode), here if is_held else -1)
        return is_held

    def cover(self, path: str, number: int) -> None:
        if self.box.cover(path, number):
            if path in self.at_start:
                self.bared[path] = time.monotonic()
            if status := status_of(path):
                self.bare.add(status.st_ino)
            else:
                self.gaps.tell(path, "made")  # somebody moves it at this moment

    def is_bare(self, path: str) -> bool:
        status = status_of(path)
        return status is not None and status.st_ino in self.bare

    def lose_patience(self) -> None:
        """Cover new files about which the head has said nothing in time, wherever their directories are now."""
        for inode, (end, path, watch) in [*islice(self.patience.items(), FEW)]:
            if end <= time.monotonic():
                del self.patience[inode]
                is_known = watch in self.watches.directories
                above = self.watches.path_of(watch) if is_known else ""
                here = f"{above}/{os.path.basename(path)}" if above else path
                self.cover(here, SHARED)
                if here != path:
                    self.look(here)

    def ask(self) -> None:
        """Ask about files, those that are masked first: so a flood of new ones holds up none of these."""
        while self.waiting and len(self.asked) < MOST_ASKED:
            key = next((key for key in self.waiting if key[0] in self.numbers), next(iter(self.waiting)))
            self.asked.append(key)
            self.send(*key, self.waiting.pop(key))

    def send(self, path: str, inode: int, here: int) -> None:
        if here < 0 and inode:
            here = open_beneath(self.host, path, files.NAME_ONLY)
            if here >= 0 and os.fstat(here).st_ino != inode:  # which is one to ask about itself
                os.close(here)
                here = -1
        rights = [(SOL_SOCKET, SCM_RIGHTS, here.to_bytes(INT, sys.byteorder))] if here >= 0 else []
        try:
            self.head.sendmsg([os.fsencode(path)], rights)
        except OSError:  # the box can have as many descriptors under way as the kernel allows
            self.head.sendmsg([os.fsencode(path)])
        if here >= 0:
            os.close(here)

    def hear(self) -> None:
        """Do what the head says of the first file that it was asked about."""
        if not (said := self.head.recv(LONGEST_PATH)):
            os._exit(0)  # the parent then ends the box
        (asked, known), (number, inode) = self.asked.pop(0), map(int, said.split(b" ", 2)[:2])
        path, inode = os.fsdecode(said.split(b" ", 2)[2]), inode or known
        what, is_new = "saved" if path in self.at_start else "made", asked not in self.numbers or not inode
        if number == SHOW:
            # Else it was written or moved meanwhile.
            if inode and {(asked, inode), (path, inode)}.isdisjoint((*self.waiting, *self.asked)):
                self.show(path, inode)
            return
        if number != GONE:
            self.numbers[path] = number
            self.box.identify(number)
            self.cover(path, number)
        is_there = number != GONE and inode_of(path) == inode
        if inode in self.bare or path != asked or (is_new and not is_there):
            self.gaps.tell(path, what, asked)

    def show(self, path: str, inode: int) -> None:
        self.patience.pop(inode, None)
        self.numbers.pop(path, None)
        self.box.uncover(path, inode)
        if status := status_of(path):
            self.gaps.note_shown(path, status)
        self.bare.discard(inode)


# The kernel's numbers: what happens in a directory, and to a file; then what it says besides.
CLOSED_AFTER_WRITING = 0x8
MOVED_AWAY = 0x40
MOVED_HERE = 0x80
MADE = 0x100
INT = 4  # bytes
IN_DIRECTORY = CLOSED_AFTER_WRITING | MOVED_AWAY | MOVED_HERE | MADE
WRITTEN = 0x2
CHANGED = 0x4  # such as the number of its names
LOST = 0x4000
IGNORED = 0x8000  # it is not watched any more
IS_DIRECTORY = 0x40000000
EVENT = 16  # bytes before the name
# Directories: those of the start, nearest first, and those that are made later. And descriptors beside theirs.
MOST_AT_START = 3000
MOST_LATER = 3000
MOST_FILES = 20_000
MORE_OPEN = 700
FILES_OPEN = 100  # of those, for files that are watched themselves; more if the limit leaves more
AT_ONCE = 100  # entries of a directory that are looked at before the next event
IN_GIT = frozenset("objects refs logs hooks info lfs".split())  # directories of .git without configuration


class Watches:
    """Directories of the host and single files, about which the kernel tells what happens."""

    def __init__(self, keeping: Keeping, host: int) -> None:
        self.judging, self.host = keeping.judging, host
        # What leads to a file that is masked, whatever it is called.
        masked = {os.path.dirname(path) for path in keeping.numbers}
        between = {above for path in masked for above in parents(path) if is_inside(above, keeping.project)}
        self.needed = masked | between
        # By the number of its watch, a descriptor of each directory: that leads there, even if it is moved.
        self.directories: dict[int, int] = {}
        # Files that are watched themselves: the names by which they are judged, and descriptors or -1.
        self.files: dict[int, tuple[str, int]] = {}
        self.written: dict[int, None] = {}  # those of them that were written to, and are not at that name
        self.held = 0  # their descriptors
        self.left: dict[str, bool] = {}  # what was moved away, and whether it had come only a moment before
        self.renamed: dict[str, str] = {}  # by its path, what first had the name of a secret
        self.is_inside = False  # whether this process has the rights of the box's owner
        self.closed: list[str] = []  # directories that can be watched with these only
        # Watched directories that were not looked at, and whether they were moved or made.
        self.unread: dict[int, bool] = {}
        self.is_moved = False  # whether that which is being looked at was
        self.listing: tuple[int, Iterator[os.DirEntry[str]]] | None = None  # of the one that is being looked at
        self.removed: list[int] = []  # those that were removed: the kernel does so when they are closed, on the disk
        self.next_sweep = 0.0
        self.is_full = False  # whether there was too much to watch
        self.has_lost = False  # whether the kernel has lost something that happened
        self.events = c_call("inotify_init1", os.O_CLOEXEC | os.O_NONBLOCK)
        if self.events < 0:
            hint = "sudo sysctl fs.inotify.max_user_instances=512"
            raise Problem("the kernel gives no inotify instance, by which masks are kept on", hint)
        _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        self.room = limit - MORE_OPEN
        directories = self.judging.directories()
        gits = [path for path in directories if path.endswith(f"/{GIT}") or path in self.judging.also]
        for path in dict.fromkeys((keeping.project, *masked, *gits)):
            if self.add(path) == -1:
                hint = "sudo sysctl fs.inotify.max_user_watches=524288"
                raise Problem(f"the kernel does not watch {path}, by which masks are kept on", hint)
        for path in (*between, *directories[:MOST_AT_START]):
            self.add(path)
        self.is_full |= len(directories) > MOST_AT_START
        self.read_again([*self.directories])  # somebody may have made a file since they were looked at
        room = self.room
        self.room = min(len(self.directories) + MOST_LATER, room)
        self.room_for_files = min(MOST_FILES, FILES_OPEN + room - self.room)

    def close(self) -> None:
        for descriptor in (self.events, *self.directories.values(), *(here for _, here in self.files.values())):
            if descriptor >= 0:
                os.close(descriptor)

    def add(self, path: str) -> int:
        """Watch a directory, if it is one to watch. Returns 0 if it is not, and -1 if the kernel refuses."""
        here = open_beneath(self.host, path, os.O_PATH | os.O_DIRECTORY) if self.is_wanted(path) else -1
        if here < 0:
            return 0
        if not self.is_inside and not os.access(f"/proc/self/fd/{here}", os.R_OK):
            self.closed.append(path)
            os.close(here)
            return 0
        if self.is_inside and not self.has_room():
            self.make_room()
        number = self.add_watch(here, IN_DIRECTORY) if self.has_room() else -1
        self.is_full |= number < 0
        if number < 0 or number in self.directories:
            os.close(here)
            return number
        self.directories[number] = here
        if self.is_inside:
            self.unread[number] = True
        return number

    def is_wanted(self, path: str) -> bool:
        name = os.path.basename(path)
        is_usual = name not in IN_GIT if f"/{GIT}/" in path else name not in SKIPPED or name == GIT
        return is_usual or path in self.needed or path in self.judging.also

    def add_closed(self) -> None:
        self.is_inside = True
        for path in self.closed:
            self.add(path)

    def add_file(self, path: str, descriptor: int) -> None:
        """Watch a file that may be written to for long before it is closed."""
        number = self.add_watch(descriptor, WRITTEN | CHANGED) if len(self.files) < MOST_FILES else -1
        self.is_full |= number < 0
        if number < 0:
            return
        here = self.files.get(number, ("", -1))[1]
        if here < 0 and self.held < self.room_for_files:
            here = os.dup(descriptor)
            self.held += 1
        self.files[number] = path, here

    def let_go(self, number: int) -> None:
        """Close the descriptor of a file: while there is one, the kernel leaves what was removed on the disk."""
        path, here = self.files[number]
        if here >= 0:
            os.close(here)
            self.held -= 1
            self.files[number] = path, -1

    def add_watch(self, descriptor: int, what: int) -> int:
        """The number of a watch; -1 if the kernel refuses."""
        return c_call("inotify_add_watch", self.events, b"/proc/self/fd/%d" % descriptor, what)

    def has_room(self) -> bool:
        return len(self.directories) < self.room

    def make_room(self) -> None:
        """Forget a directory that was removed. Closing many of them at once would hold up masks."""
        if not self.removed and time.monotonic() > self.next_sweep:
            self.next_sweep = time.monotonic() + 1
            self.removed = [one for one, there in self.directories.items() if not os.fstat(there).st_nlink]
        if self.removed:
            self.forget(self.removed.pop())

    def forget(self, number: int) -> None:
        if number in self.files:
            self.let_go(number)
            del self.files[number]
        if number in self.directories:
            os.close(self.directories.pop(number))

    def path_of(self, number: int) -> str:
        """The path that a directory has now: somebody may have moved one that it lies in."""
        return path_of(self.directories[number])

    def read_events(self) -> dict[str, int]:
        """What has changed, and how."""
        data, found, moved = os.read(self.events, 1 << 16), dict[str, int](), dict[int, str]()
        while data:
            number, event, cookie = (int.from_bytes(data[at : at + INT], "little", signed=True) for at in (0, 4, 8))
            end = EVENT + int.from_bytes(data[12:EVENT], "little")
            if event & LOST:
                self.has_lost = True
            elif event & IGNORED:
                self.forget(number)
            elif number in self.directories and (above := self.path_of(number)):
                path = f"{above}/{os.fsdecode(data[EVENT:end].rstrip(bytes(1)))}"
                if event & MOVED_AWAY:
                    self.left[path] = path in found
                    moved[cookie] = path
                elif cookie in moved and not event & IS_DIRECTORY:
                    first = self.renamed.pop(moved[cookie], moved[cookie])
                    if self.judging.kind(first) is not None:
                        self.renamed[path] = first
                found[path] = event | (found[path] | MADE if path in found else 0)
            elif number in self.files:
                path, here = self.files[number]
                if here >= 0 and not os.fstat(here).st_nlink:
                    self.let_go(number)
                elif event & WRITTEN and here >= 0 and path_of(here) != path:
                    self.written[number] = None
                elif event & WRITTEN:  # if it is not there, the box may have it open
                    found[path] = found.get(path, 0) | CLOSED_AFTER_WRITING
            data = data[end:]
        return found

    def take_left(self) -> dict[str, bool]:
        left, self.left = self.left, {}
        return left

    def take_renamed(self) -> dict[str, str]:
        renamed, self.renamed = self.renamed, {}
        return renamed

    def take_written(self) -> list[tuple[str, int]]:
        """Files that were written to elsewhere, each with a descriptor of its own."""
        found = [self.files[number] for number in self.written if number in self.files]
        self.written.clear()
        return [(path, os.dup(here)) for path, here in found if here >= 0]

    def read_again(self, numbers: Iterable[int], *, is_moved: bool = False) -> None:
        """Have directories looked at behind those that wait already: so all are some time, however often one asks."""
        known = (number for number in numbers if number in self.directories)
        self.unread |= {number: is_moved or self.unread.get(number, False) for number in known}

    def has_more(self) -> bool:
        return bool(self.unread or self.listing)

    def read_entries(self) -> list[tuple[str, bool]]:
        """A part of what is in the next directory, each path with whether that is a directory."""
        if self.listing is None and self.unread:
            number = next(iter(self.unread))
            self.is_moved = self.unread.pop(number)
            try:
                self.listing = number, os.scandir(f"/proc/self/fd/{self.directories[number]}")
            except (KeyError, OSError):
                return []  # removed meanwhile
        if self.listing is None:
            return []
        number, entries = self.listing
        part = list(islice(entries, AT_ONCE)) if number in self.directories else []
        if not part:
            self.listing = None
            return []
        above = self.path_of(number)
        return [(f"{above}/{entry.name}", entry.is_dir(follow_symlinks=False)) for entry in part if above]


# System calls. The numbers of these are the same on x86_64 and aarch64.
OPEN_TREE = 428
MOVE_MOUNT = 429
CLONE_TREE = 1 | os.O_CLOEXEC
BY_DESCRIPTORS = 0x04 | 0x40  # MOVE_MOUNT_F_EMPTY_PATH and MOVE_MOUNT_T_EMPTY_PATH
DETACH_WITHOUT_SYMLINK = 2 | 8  # MNT_DETACH and UMOUNT_NOFOLLOW
TRIES = 5  # to mount over a file that somebody replaces at this moment


class Box:
    """The box as its files are seen from its mount namespace, and the decoys that are mounted over them."""

    def __init__(self, keeping: Keeping, host: int) -> None:
        self.keeping, self.host = keeping, host
        self.root, self.decoys = -1, -1
        self.places: dict[str, list[str]] = {}  # by directory of the host, where the box shows it
        self.ours: dict[tuple[int, int], int] = {}  # device and inode of decoys, and their numbers

    def enter(self, namespace: str) -> None:
        """Enter the box's mounts.

        All paths stay those of the host: the root directory does, and so nothing of the box is loaded as code.
        """
        if not enter_as_owner(namespace, NEW_MOUNT_NAMESPACE):
            raise Problem("the kernel does not let claudebox enter the box, to keep masks on", "claudebox --check")
        die_with_parent()  # only now: the kernel forgets it when a process gains rights
        self.root, self.decoys = os.open("/", files.NAME_ONLY), os.open(self.keeping.place, files.NAME_ONLY)
        os.fchdir(self.host)
        os.chroot(".")
        nothing = os.stat("/dev/null")  # lies over files that are hidden
        self.ours[nothing.st_dev, nothing.st_ino] = SHARED
        for number in (SHARED, *self.keeping.numbers.values()):
            self.identify(number)

    def identify(self, number: int) -> None:
        status = os.stat(f"{number}", dir_fd=self.decoys)
        self.ours[status.st_dev, status.st_ino] = number

    def places_of(self, path: str) -> Iterator[int]:
        """Descriptors of the directory of a file, wherever the box shows it."""
        above = os.path.dirname(path)
        if above not in self.places:
            self.places[above] = [*dict.fromkeys(find_appearances(above, self.keeping.mounts))]
        for place in self.places[above]:
            directory = open_beneath(self.root, place, os.O_PATH | os.O_DIRECTORY)
            if directory >= 0:
                yield directory
                os.close(directory)

    def cover(self, path: str, number: int) -> bool:
        """Mount a decoy wherever the box shows the file itself. Returns whether it did so somewhere."""
        was_bare = False
        for directory in self.places_of(path):
            for _ in range(TRIES):
                target, is_bare = self.find_bare(directory, os.path.basename(path), number)
                if target < 0:
                    break
                was_bare |= is_bare
                decoy = c_call("syscall", OPEN_TREE, self.decoys, b"%d" % number, CLONE_TREE)
                if decoy >= 0:
                    c_call("syscall", MOVE_MOUNT, decoy, b"", target, b"", BY_DESCRIPTORS)
                    os.close(decoy)
                os.close(target)
            else:
                raise Problem(f"{path} cannot be masked", "")
        return was_bare

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
        if here < 0:
            return
        with files.Open(here):
            of_host = os.fstat(here)
        if inode_of(path) != inode:
            return
        for directory in self.places_of(path):
            of_box = os.fstat(directory)
            if of_host.st_dev == of_box.st_dev and of_host.st_ino != of_box.st_ino:
                continue
            os.fchdir(directory)
            for _ in range(2):  # its own decoy may lie over the empty one
                status = status_of(name, directory)
                if status is not None and (status.st_dev, status.st_ino) in self.ours:
                    c_call("umount2", os.fsencode(name), DETACH_WITHOUT_SYMLINK)


MOST_SHOWN = 5000  # files of which it is known since when the box has them
LONG = 0.1  # seconds: a file that the box had for longer than it takes to write one may be open there
MOST_TOLD = 5  # files that are named, of each kind: so the agent cannot use up the graver ones with lesser ones
# What is said of those that are not.
HAD, AWAY, BRIEF, OTHER = "in files that the agent has", "gone again", "readable for some ms", ""
LONGEST_NAME = 18  # characters: what is said has to fit into a row of 80
FULL = "there is too much to watch: a new file with a secret in the last directories is masked at the next start only"
MUCH = "so much happened that not everything could be looked at"


class Gaps:
    """What the agent could read for a moment. The user is told at once, and again when the box has ended."""

    def __init__(self, keeping: Keeping, channel: int) -> None:
        self.keeping, self.channel = keeping, channel
        self.shown: dict[str, tuple[int, float]] = {}  # files that the box had as they are: their inodes, since when
        self.told: set[tuple[str, str]] = set()
        self.lines: dict[str, list[str]] = {HAD: [], AWAY: [], BRIEF: [], OTHER: []}
        self.more = dict.fromkeys(self.lines, 0)
        self.is_full = False
        self.is_over = False  # whether the box has ended
        self.is_lost = False  # whether something could not be kept until then

    def note_shown(self, path: str, status: os.stat_result) -> None:
        """Note that the box has a file as it is, and since when: it may have that open later."""
        if len(self.shown) < MOST_SHOWN and self.shown.get(path, (0, 0.0))[0] != status.st_ino:
            self.shown[path] = status.st_ino, time.monotonic()

    def tell(self, path: str, what: str, first: str = "") -> None:
        """Tell of a file, once of each kind. Of those above a limit only the number is said, at the end.

        The box may have had it under another name first.
        """
        status, (inode, since) = status_of(path), self.shown.get(first or path, (0, 0.0))
        is_forgotten = not inode and len(self.shown) >= MOST_SHOWN  # it may have had any
        # Under another name, or open since it held no secret.
        is_old = status is not None and inode == status.st_ino and time.monotonic() - since > LONG
        if is_forgotten or is_old or (status is not None and status.st_nlink > 1):
            which, text = HAD, f"{what} in a file that the agent has: it can read it"
        elif status is None or stat.S_ISLNK(status.st_mode):
            which, text = AWAY, f"{what}, and is gone again: the box may have it"
            if is_swap(path) or not self.told.isdisjoint({(original(path), HAD), (original(path), BRIEF)}):
                return  # an editor has removed what it keeps of a file, of which the user knows
        else:
            hint = "" if self.keeping.is_review else " (no gap: --review)"
            which, text = BRIEF, f"{what}: readable for some ms{hint}"
        if not self.told.isdisjoint({(path, which), (path, HAD)}):
            return
        self.told.add((path, which))
        self.more[which] += len(self.lines[which]) >= MOST_TOLD
        if self.more[which]:
            self.note()
        else:
            self.say(path, f"was {text}", which)

    def tell_replaced(self, path: str) -> None:
        """Tell that a masked file may not be the user's any more: a box can exchange it in the gap."""
        if (path, OTHER) not in self.told:
            self.told.add((path, OTHER))
            self.say(path, "was replaced by the box, unless you did it: look into it", OTHER)

    def tell_full(self) -> None:
        self.is_full = True
        self.say("", FULL, OTHER)

    def tell_lost(self) -> None:
        if ("", OTHER) not in self.told:
            self.told.add(("", OTHER))
            self.say("", MUCH, OTHER)

    def note(self) -> None:
        """Have it all said at the end, the graver first. This never becomes shorter."""
        more = {which: [f"and {n} more {which}"] if n else [] for which, n in self.more.items()}
        lines = [f"claudebox: {line}\n" for which in self.lines for line in (*self.lines[which], *more[which])]
        try:
            with open(f"{self.keeping.directory}/{NOTES}", "r+") as file:
                file.writelines(lines)
        except OSError:
            self.is_lost = True

    def say(self, path: str, text: str, which: str) -> None:
        """Say a line now, and have it said again at the end, with the whole path."""
        name = escape(path.removeprefix(f"{self.keeping.project}/"))
        self.lines[which].append(f"{name} {text}".lstrip())
        self.note()
        if self.is_over:
            return
        line = f"claudebox: {cut(name, LONGEST_NAME)} {text}\n" if name else f"claudebox: {text}\n"
        try:
            if os.fork():  # an agent can have filled a pipe that nobody reads: then to write takes forever
                return
        except OSError:
            return  # there are too many processes: it is said at the end
        try:
            die_with_parent()
            os.write(self.channel, line.encode())
            if not os.isatty(self.keeping.errors):
                os.write(self.keeping.errors, line.encode())
        finally:
            os._exit(0)


MOST_MASKS = 600  # decoys: further files appear empty
AGAIN = (0.003, 0.01, 0.0)  # seconds after which a file is judged again that could not be read
LATER = 0.5  # seconds, after which the program has started: then the head loads what it needs
MOST_LINES = 100_000


class Head:
    """Judges files on the host, and writes their decoys."""

    def __init__(self, keeping: Keeping, hand: socket) -> None:
        self.keeping, self.hand, self.numbers = keeping, hand, dict(keeping.numbers)
        self.next = max((one for one in self.numbers.values() if one != SHARED), default=0) + 1
        self.lines = {line for one in set(self.numbers.values()) for line in _lines_of(self.decoy(one))}
        self.hidden = find_hidden(keeping.mounts, is_dir=True)
        self.identities: dict[str, str] = {}  # of files that were masked since: device and inode
        # Of files that the box sees as they are.
        self.shown = {path: _lines_of(path) for path in keeping.judging.secrets.shown}

    def work(self) -> None:
        poll = select.poll()
        poll.register(self.hand, select.POLLIN)
        if not poll.poll(LATER * 1000):
            with files.Open(os.memfd_create("")) as sample:  # which has all loaded that it takes
                os.write(sample, b"API_TOKEN=a1B2c3D4e5\n")
                self.keeping.judging.judge(f"{self.keeping.project}/.env", sample)
        while (said := self.hand.recvmsg(LONGEST_PATH, CMSG_SPACE(INT)))[0]:
            here = int.from_bytes(said[1][0][2], sys.byteorder) if said[1] else -1
            number, inode, path = self.answer(os.fsdecode(said[0]), here)
            self.hand.send(b"%d %d %s" % (number, inode, os.fsencode(path)))
            if here >= 0:
                os.close(here)

    def answer(self, asked: str, here: int) -> tuple[int, int, str]:
        """The number of the decoy for a file, which it has written; or SHOW or GONE. And its inode, and where it is."""
        if any(is_inside(asked, place) for place in self.hidden):
            return SHARED, 0, asked  # it is seen only if somebody has put another directory there: then no key of it
        if here < 0:
            return GONE, 0, asked
        inode = os.fstat(here).st_ino
        for pause in AGAIN:
            path = path_of(here)
            is_there = inode_of(path) == inode
            path = path if is_there else asked
            try:
                decoy, read = self.find_decoy(path, asked, here)
            except Exception:  # whatever is in a file, masks stay on
                if path in self.numbers:
                    return self.numbers[path], inode, path
                decoy, read = (b"", files.PRIVATE_FILE, "0 0"), 0
            if decoy is None:
                return (self.numbers[path], inode, path) if path in self.keeping.numbers else (SHOW, read, path)
            if not is_there:
                return GONE, inode, asked
            if decoy[0]:
                return self.write(path, *decoy), inode, path
            time.sleep(pause)  # somebody may be writing it
        return self.write(path, b"", files.PRIVATE_FILE, "0 0"), inode, path

    def find_decoy(self, path: str, asked: str, here: int) -> tuple[tuple[bytes, int, str] | None, int]:
        """What the box sees instead, its mode, and of which file; None if that holds no secret. And the inode.

        Lines of our own decoys are no secrets: the agent has copied them. Nor is what the box was shown of this file.
        """
        masked, content, inode = self.keeping.judging.judge(path, here, asked)
        if masked is None:
            if content and sum(map(len, self.shown.values())) < MOST_LINES:
                self.shown[path] = set(content.splitlines())
            return None, inode
        pairs = zip_longest((content or b"").splitlines(), masked.decoy.splitlines())
        secret = {real for real, shown in pairs if real is not None and real != shown}
        is_news = path in self.keeping.numbers or secret - self.lines - self.shown.get(path, set())
        decoy = masked.decoy, masked.mode, f"{masked.device} {masked.inode}"
        return (decoy if is_news or not masked.decoy else None), inode

    def decoy(self, number: int) -> str:
        return f"{self.keeping.directory}/{number}"

    def write(self, path: str, content: bytes, mode: int, identity: str) -> int:
        """Write the decoy in place, so that a mask that is on shows it, too. On a full disk, the empty one is left."""
        if len(self.lines) < MOST_LINES:
            self.lines.update(content.splitlines())
        number = self.numbers.setdefault(path, self.next if self.next < MOST_MASKS else SHARED)
        try:
            if path not in self.keeping.numbers and self.identities.get(path) != identity:
                self.identities[path] = identity
                with open(f"{self.keeping.directory}/{LIVE}", "ab") as file:
                    file.write(os.fsencode(f"{identity} {path}\0"))
            if number == self.next:
                self.next += 1
                files.write_new(self.decoy(number), content, mode)
            elif number != SHARED:
                with open(self.decoy(number), "r+b") as file:
                    file.write(content)
                    file.truncate()
        except OSError:
            if number not in self.keeping.numbers.values():
                self.numbers[path] = number = SHARED
        return number


def status_of(path: str, above: int | None = None) -> os.stat_result | None:
    """None also if it cannot be seen: an agent can close a directory, or put a file or a symlink in its place."""
    try:
        return files.lstat(above, path)
    except OSError:
        return None


def inode_of(path: str) -> int:
    status = status_of(path)
    return status.st_ino if status is not None else 0


def path_of(descriptor: int) -> str:
    """Where an open file or directory is now; "" if that is too deep for the kernel to say."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


def _lines_of(path: str) -> set[bytes]:
    try:
        with open(os.open(path, files.READ), "rb") as file:
            return set(file.read().splitlines())
    except OSError:
        return set()


OPENAT2 = 437
BENEATH_WITHOUT_SYMLINKS = 0x08 | 0x04
SET_SCHEDULING = {"x86_64": 314, "aarch64": 274}
SLICE = 100_000  # nanoseconds: from Linux 6.12 on, who asks for little at a time is let in before others


def open_beneath(root: int, path: str, flags: int) -> int:
    """Open a path without following any symlink; -1 if that cannot be done."""
    how = b"".join(word.to_bytes(8, "little") for word in (flags | os.O_CLOEXEC, 0, BENEATH_WITHOUT_SYMLINKS))
    return c_call("syscall", OPENAT2, root, os.fsencode(path.lstrip("/") or "."), how, len(how))


def hurry() -> None:
    """Have this process run as soon as it is woken, where the kernel can do that."""
    numbers = ((48, 4), (0, 12), (os.getpriority(os.PRIO_PROCESS, 0), 4), (0, 4), (SLICE, 8), (0, 16))
    wish = b"".join(number.to_bytes(size, "little", signed=True) for number, size in numbers)
    c_call("syscall", SET_SCHEDULING.get(os.uname().machine, -1), 0, wish, 0)
