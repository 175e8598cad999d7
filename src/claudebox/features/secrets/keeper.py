"""Keeps masks on while the box runs.

A mount over a file is gone when somebody on the host renames another file into its place, as most editors do to save.
Two processes put it back. The hand watches the project from inside the box's mount namespace, and mounts. The head
stays on the host: it judges what a file holds now, writes the decoy, and tells the hand whether that file is masked.

What was masked when the box started stays masked, whatever the file holds now. A symlink gives what it leads to the
name that it has itself, as at the start: the head follows it, and tells the hand what else to ask about.

The hand loads nothing once it is in there, since that would be code of the agent, and it follows no symlink.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import time

from claudebox import files
from claudebox.errors import Problem
from claudebox.features.secrets import table
from claudebox.features.secrets.act import LIVE, NOTES, SHARED, Keeping
from claudebox.features.secrets.decide import differing
from claudebox.files import c_call
from claudebox.host.walk import SKIPPED
from claudebox.mounts import find_appearances
from claudebox.paths import is_below
from claudebox.process.companion import READY, die_with_parent
from claudebox.process.isolation import NEW_MOUNT_NAMESPACE, enter_as_owner
from claudebox.text import cut, escape, fill

# Numbers of system calls, which are the same on x86_64 and aarch64.
OPEN_TREE, MOVE_MOUNT, OPENAT2 = 428, 429, 437
CLONE_TREE = 1 | os.O_CLOEXEC
BY_DESCRIPTORS = 0x04 | 0x40  # MOVE_MOUNT_F_EMPTY_PATH and MOVE_MOUNT_T_EMPTY_PATH
BENEATH_WITHOUT_SYMLINKS = 0x08 | 0x04
DETACH_WITHOUT_SYMLINK = 2 | 8  # MNT_DETACH and UMOUNT_NOFOLLOW
CLOSED_AFTER_WRITING, MOVED_HERE, MADE, LOST, GONE, IS_DIRECTORY = 0x8, 0x80, 0x100, 0x4000, 0x8000, 0x40000000
WATCHED = CLOSED_AFTER_WRITING | MOVED_HERE | MADE
EVENT = 16  # bytes before the name
MOST_WATCHED, MOST_OPEN = 3000, 100  # directories; those of them that are open
MOST_MASKS, MOST_MOUNTS = 300, 5000  # decoys: further files appear empty; with more mounts the box is ended
LONGEST_PATH, LONGEST_NAME = 4200, 24  # bytes that are said of a path; characters that are shown
LATER = 0.5  # seconds, after which the program has started: what is not urgent
TRIES, MOST_TOLD, MOST_LINES = 5, 5, 100_000
# A new file is read again while it is being written, after these seconds each.
AGAIN = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064)
FEW = 100  # new files in a second, or files that wait to be judged; with more of them, somebody floods
NEW, BARE = b"0", b"1"  # what the hand says of a file; the second was readable
# What the head says instead of a number: ask about it and what is in it; watch it; it holds no secret.
ASK, WATCH, SHOW = b"*", b"+", b""


def keep(keeping: Keeping, channel: int) -> None:
    """Watch, wait for the number of the box's first process, and keep its masks on."""
    hand = Hand(keeping)
    for directory in hand.near:
        close(hand.watch(directory))
    from _socket import AF_UNIX, SOCK_SEQPACKET, socketpair

    ours, theirs = (one.detach() for one in socketpair(AF_UNIX, SOCK_SEQPACKET))
    if os.fork() == 0:  # while bwrap is at work, too
        os.close(ours)
        if not (first := os.read(channel, LONGEST_PATH)):
            os._exit(0)  # there will be no box
        os.write(theirs, READY)
        hand.enter(f"/proc/{first.decode()}/ns/mnt")
        os.write(channel, READY)  # for `made`
        os.write(channel, READY)  # for the parent, who relies on every companion
        os.close(channel)
        hand.work(theirs, select.poll())
    os.close(theirs)
    os.close(hand.events)
    if os.read(ours, LONGEST_PATH):  # until then the channel is the hand's
        Head(keeping, ours, channel).work(select.poll())


def close(descriptor: int) -> None:
    os.close(descriptor) if descriptor >= 0 else None


def open_beneath(root: int, path: str, flags: int) -> int:
    """Open a path without following any symlink; -1 if that cannot be done."""
    how = b"".join(word.to_bytes(8, "little") for word in (flags | os.O_CLOEXEC, 0, BENEATH_WITHOUT_SYMLINKS))
    return c_call("syscall", OPENAT2, root, os.fsencode(path.lstrip("/") or "."), how, len(how))


class Hand:
    """Watches the directories of the host, and mounts in the box."""

    def __init__(self, keeping: Keeping) -> None:
        self.keeping, self.numbers = keeping, dict(keeping.numbers)
        above = map(os.path.dirname, keeping.numbers)
        self.near = tuple(dict.fromkeys((keeping.project, f"{keeping.project}/.git", *above)))
        self.host, self.box, self.decoys, self.head = os.open("/", files.NAME_ONLY), -1, -1, -1
        self.directories: dict[int, str] = {}  # by the number of their watch
        self.ours: dict[tuple[int, int], int] = {}  # device and inode of decoys, and their numbers
        self.shown: dict[str, list[int]] = {}  # of a directory, what `shown_in` has found
        self.has_lost = False  # whether events were lost
        self.asked: set[str] = set()  # files, and directories of which every file is one to ask about
        self.covered: set[str] = set()
        self.waiting: dict[str, bytes] = {}  # what the head has no room for yet
        self.events = c_call("inotify_init1", os.O_CLOEXEC | os.O_NONBLOCK)
        if self.events < 0:
            hint = "sudo sysctl fs.inotify.max_user_instances=512"
            raise Problem("the kernel gives no inotify instance, by which masks are kept on", hint)

    def watch(self, path: str) -> int:
        """Watch a directory, and return a descriptor of it; -1 if it is not there."""
        here = open_beneath(self.host, path, os.O_RDONLY | os.O_DIRECTORY)
        if here >= 0:
            os.fchdir(here)  # the kernel takes a path, and in the box /proc does not know this process
            number = c_call("inotify_add_watch", self.events, b".", WATCHED)
            if number < 0 and path in self.near:
                hint = "sudo sysctl fs.inotify.max_user_watches=524288"
                raise Problem(f"the kernel does not watch {path}, by which masks are kept on", hint)
            if number >= 0:
                self.directories[number] = path
            self.forget(path)
        return here

    def enter(self, namespace: str) -> None:
        """Enter the box's mounts, with the rights of whoever made the user namespace that owns them."""
        if not enter_as_owner(namespace, NEW_MOUNT_NAMESPACE):
            raise Problem("the kernel does not let claudebox enter the box, to keep masks on", "claudebox --check")
        die_with_parent()  # only now: the kernel forgets it when a process gains rights
        sys.path.clear()
        sys.meta_path.clear()
        self.box, self.decoys = os.open("/", files.NAME_ONLY), os.open(self.keeping.place, files.NAME_ONLY)

    def work(self, head: int, poll: select.poll) -> None:
        self.head, later = head, time.monotonic() + LATER
        os.set_blocking(head, False)
        for descriptor in (head, self.events):
            poll.register(descriptor, select.POLLIN)
        self.has_lost = True  # whatever has happened since the files were looked at
        while True:
            poll.modify(head, select.POLLIN | (select.POLLOUT if self.waiting else 0))
            poll.poll(0 if self.has_lost else LATER * 1000 if later else None)
            self.read_events()
            self.obey()
            self.say()
            if later and time.monotonic() > later:
                later = 0.0
                self.look_at((self.keeping.project,), is_deep=True, is_new=False)
            if self.has_lost:
                self.has_lost = False
                for path in tuple(self.numbers):
                    self.look(path)
                self.look_at(self.near, is_deep=not later)
            self.say()

    def look_at(self, directories: tuple[str, ...], *, is_deep: bool = False, is_new: bool = True) -> None:
        """Watch directories, and look at what is in them. One that was moved gets its new path."""
        waiting = list(directories)
        while waiting:
            path = waiting.pop()
            here = self.watch(path)
            if here < 0:
                continue
            with os.scandir(here) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        self.look(f"{path}/{entry.name}") if is_new or entry.is_symlink() else None
                    elif is_deep and entry.name not in SKIPPED and len(self.directories) < MOST_WATCHED:
                        waiting.append(f"{path}/{entry.name}")
            os.close(here)

    def read_events(self) -> None:
        try:
            data = os.read(self.events, 1 << 16)
        except BlockingIOError:
            return
        found: dict[str, int] = {}
        while data:
            number, event = (int.from_bytes(data[at : at + 4], "little", signed=True) for at in (0, 4))
            end = EVENT + int.from_bytes(data[12:EVENT], "little")
            self.has_lost = self.has_lost or bool(event & LOST)
            if event & GONE:
                self.directories.pop(number, None)
            elif number in self.directories:
                name = os.fsdecode(data[EVENT:end].rstrip(b"\0"))
                found[f"{self.directories[number]}/{name}"] = event
            data = data[end:]
        for path, event in found.items():
            if not event & IS_DIRECTORY:
                self.look(path)
            elif os.path.basename(path) not in SKIPPED:
                self.look_at((path,), is_deep=True)

    def look(self, path: str) -> None:
        """Cover a file that is known to hold secrets. Ask about it, about a new one of such a name, and symlinks."""
        number = self.numbers.get(path)
        if number is not None:
            self.ask(path, BARE if self.cover(path, number) else NEW)
        elif (
            not self.asked.isdisjoint((path, os.path.dirname(path)))
            or table.kind_of(path, self.keeping.project) is not None
        ) or stat.S_ISLNK(self.mode(path)):
            self.ask(path, NEW)

    def mode(self, path: str) -> int:
        """Of a file of the host; 0 if there is none."""
        try:
            return os.stat(path.lstrip("/"), dir_fd=self.host, follow_symlinks=False).st_mode
        except OSError:
            return 0

    def ask(self, path: str, what: bytes) -> None:
        self.waiting[path] = max(what, self.waiting.pop(path, NEW))

    def say(self) -> None:
        """Ask the head about what waits, as far as it takes it."""
        try:
            for path in tuple(self.waiting):
                os.write(self.head, self.waiting[path] + os.fsencode(path))
                del self.waiting[path]
        except BlockingIOError:
            pass

    def obey(self) -> None:
        """Do what the head says of a path: the number of a decoy to cover it with, or another word."""
        try:
            while said := os.read(self.head, LONGEST_PATH):
                word, _, name = said.partition(b" ")
                path = os.fsdecode(name)
                if word in (ASK, WATCH):
                    self.asked.update([path] if word == ASK else [])
                    self.look_at((os.path.dirname(path),), is_new=False)
                    self.look_at((path,), is_deep=True)
                    self.look(path)  # if it is a file
                elif word == SHOW:
                    self.numbers.pop(path, None)
                    self.uncover(path)
                else:
                    self.numbers[path] = int(word)
                    if self.cover(path, int(word)):
                        self.ask(path, BARE)
            os._exit(0)
        except BlockingIOError:
            pass

    def shown_in(self, directory: str) -> list[int]:
        """Descriptors of a directory, wherever the box shows it. They lead there even if it is moved."""
        if directory not in self.shown:
            if len(self.shown) >= MOST_OPEN:
                self.forget(*self.shown)
            places = dict.fromkeys(find_appearances(directory, self.keeping.mounts))
            found = [open_beneath(self.box, place, os.O_PATH | os.O_DIRECTORY) for place in places]
            self.shown[directory] = [one for one in found if one >= 0]
        return self.shown[directory]

    def forget(self, *directories: str) -> None:
        for descriptor in [one for path in directories for one in self.shown.pop(path, ())]:
            os.close(descriptor)

    def cover(self, path: str, number: int) -> bool:
        """Mount a decoy wherever the box shows the file itself. Returns whether it was bare."""
        was_bare, status = False, os.stat(f"{number}", dir_fd=self.decoys)
        self.ours[status.st_dev, status.st_ino] = number
        above, _, name = path.rpartition("/")
        for directory in self.shown_in(above):
            for _ in range(TRIES):  # somebody may replace it at this moment
                target, is_bare = self.find_bare(directory, name, number)
                if target < 0:
                    break
                self.count(path)
                decoy = c_call("syscall", OPEN_TREE, self.decoys, b"%d" % number, CLONE_TREE)
                was_bare |= c_call("syscall", MOVE_MOUNT, decoy, b"", target, b"", BY_DESCRIPTORS) == 0 and is_bare
                close(decoy)
                close(target)
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
        if stat.S_ISREG(status.st_mode) and (now is None or now == SHARED != number):
            return target, now is None
        os.close(target)
        return -1, False

    def count(self, path: str) -> None:
        self.covered.add(path)
        if len(self.covered) > MOST_MOUNTS:
            self.covered = {path for path in self.covered if self.mode(path)}
        if len(self.covered) > MOST_MOUNTS:
            notes = os.open(f"{self.keeping.directory}/{NOTES}"[1:], os.O_WRONLY | os.O_APPEND, dir_fd=self.host)
            os.write(notes, FLOODED)
            os._exit(1)  # and the box with it

    def uncover(self, path: str) -> None:
        above, _, name = path.rpartition("/")
        self.covered.discard(path)
        self.forget(above)  # another directory may be in its place
        for directory in self.shown_in(above):
            os.fchdir(directory)
            for _ in range(2):  # its own decoy may lie over the one for the time being
                status = files.lstat(directory, name)
                if status is not None and (status.st_dev, status.st_ino) in self.ours:
                    c_call("umount2", os.fsencode(name), DETACH_WITHOUT_SYMLINK)


class Head:
    """Judges files on the host, and writes their decoys."""

    def __init__(self, keeping: Keeping, hand: int, channel: int) -> None:
        self.keeping, self.hand, self.channel, self.numbers = keeping, hand, channel, dict(keeping.numbers)
        self.next = max(self.numbers.values(), default=0) + 1
        # When to judge a file, how often it was, and what the hand has said. The first one has the rest loaded.
        self.due = {f"{keeping.project}/.env": (time.monotonic() + LATER, len(AGAIN), NEW)}
        self.links: dict[str, str] = {}  # symlinks with telling names, and where they lead
        self.open: dict[str, int] = {}  # the inodes of files that the box had as they are
        self.lines = {line for one in self.numbers.values() for line in _read(self.decoy(one)).splitlines()}
        self.told: dict[str, str] = {}

    def work(self, poll: select.poll) -> None:
        for descriptor in (self.channel, self.hand):
            poll.register(descriptor, select.POLLIN)
        os.set_blocking(self.channel, False)
        while True:
            soonest = min((when for when, _, _ in self.due.values()), default=None)
            ready = dict(poll.poll(None if soonest is None else max(0.0, soonest - time.monotonic()) * 1000))
            if self.channel in ready:
                return  # the parent of the box has ended
            if self.hand in ready:
                said = os.read(self.hand, LONGEST_PATH)
                if not said:
                    return  # the parent then ends the box
                self.hear(os.fsdecode(said[1:]), said[:1])
            if self.hand not in ready or len(self.due) > FEW:
                self.judge_next()

    def hear(self, path: str, what: bytes) -> None:
        if os.path.islink(path):
            self.follow(path)
            return
        if not os.path.lexists(path):
            return  # a new one is a new event
        self.due[path] = (time.monotonic(), 0, max(what, self.due.pop(path, (0.0, 0, NEW))[2]))

    def follow(self, path: str) -> None:
        """Ask about what a symlink leads to, and about other targets: it may be on the way there."""
        self.links.pop(path, None)
        self.links[path] = ""
        telling = [link for link in self.links if self.is_telling(link)]
        for link in dict.fromkeys((*telling[-MOST_MASKS:], *[*self.links][-FEW:])):
            try:
                target = os.path.realpath(link)
            except OSError:  # replaced meanwhile, which is an event of its own
                continue
            if is_below(target, self.keeping.project) and target != self.links[link]:
                self.links[link] = target
                os.write(self.hand, (ASK if self.is_telling(link) else WATCH) + b" " + os.fsencode(target))

    def is_telling(self, link: str) -> bool:
        """Whether the name says that the file, or what is in the directory, is secret."""
        return any(table.kind_of(path, self.keeping.project) is not None for path in (link, f"{link}/x"))

    def kind(self, path: str) -> table.Kind | None:
        """What the name of a file says, and those of symlinks that lead to it or to its directory."""
        above, _, name = path.rpartition("/")
        names = [path, *(link for link, target in self.links.items() if target == path)]
        names += [f"{link}/{name}" for link, target in self.links.items() if target == above]
        return table.strictest(table.kind_of(one, self.keeping.project) for one in names)

    def judge_next(self) -> None:
        """Judge a file: known ones first, then the newest. So a flood pushes back none that is known."""
        now, is_flood = time.monotonic(), len(self.due) > FEW
        waiting = [(path not in self.numbers, -when, path) for path, (when, _, _) in self.due.items() if when <= now]
        if not waiting:
            return
        path = min(waiting)[2]
        _, tries, what = self.due.pop(path)
        is_known, is_last, is_sure = path in self.numbers, tries == len(AGAIN) or is_flood, True
        try:
            decoy = self.find_decoy(path)
        except Exception:
            is_sure = False
            # What is new is masked in any case. What is known has a mask, and may have been replaced at this moment.
            decoy = (b"", files.PRIVATE) if is_last or not is_known else (_read(self.decoy(self.numbers[path])), 0)
        if decoy is not None:
            self.write(path, *decoy)
            if what != NEW:
                self.tell(path, "saved" if path in self.keeping.numbers else "made")
        elif path not in self.keeping.numbers and os.path.lexists(path):
            if is_known:
                del self.numbers[path]
                os.write(self.hand, SHOW + b" " + os.fsencode(path))
            if is_last and len(self.open) < MOST_MOUNTS:
                self.open[path] = os.lstat(path).st_ino
        if not is_last and (decoy is None or not is_sure):
            self.due[path] = (now + AGAIN[tries], tries + 1, NEW)

    def find_decoy(self, path: str) -> tuple[bytes, int] | None:
        """What the box sees instead, and its mode; None if nothing in the file is secret.

        Lines of our own decoys are no secrets: the agent has copied them.
        """
        masked = self.keeping.judge(path, self.kind(path))
        if masked is None or not masked.decoy or path in self.keeping.numbers:
            if masked is None and len(self.lines) < MOST_LINES and os.path.isfile(path):
                # What the box is shown now is no secret in the next version of the file either.
                self.lines.update(_read(path).splitlines())
            return None if masked is None else (masked.decoy, masked.mode)
        secret = differing(_read(path), masked.decoy)
        return (masked.decoy, masked.mode) if secret - self.lines else None

    def decoy(self, number: int) -> str:
        return f"{self.keeping.directory}/{number}"

    def write(self, path: str, content: bytes, mode: int) -> None:
        """Write the decoy in place, so that a mask that is on shows it, too."""
        self.lines.update(content.splitlines())
        if path not in self.numbers:
            self.numbers[path] = self.next if self.next < MOST_MASKS * 2 else SHARED
            with open(f"{self.keeping.directory}/{LIVE}", "ab") as file:
                file.write(os.fsencode(path) + b"\0")
            if self.numbers[path] != SHARED:
                files.write_new(self.decoy(self.next), content, mode)
                self.next += 1
        elif self.numbers[path] != SHARED:
            with open(self.decoy(self.numbers[path]), "r+b") as file:
                file.write(content)
                file.truncate()
        os.write(self.hand, b"%d " % self.numbers[path] + os.fsencode(path))

    def tell(self, path: str, what: str) -> None:
        """Note it for the end, and tell it at once, once for each file."""
        if path in self.told or len(self.told) >= MOST_TOLD:
            return
        status = files.lstat(None, path)
        is_open = status is not None and (status.st_nlink > 1 or self.open.get(path) == status.st_ino)
        self.told[path] = f"{what}{HAD if is_open else ''}"
        name = cut(escape(path.removeprefix(f"{self.keeping.project}/")), LONGEST_NAME)
        # It has to fit into a row of 80.
        gap = "it can read it" if is_open else "readable in the box for some ms"
        advice = "" if is_open or self.keeping.is_review else " (no gap: --review)"
        with open(f"{self.keeping.directory}/{NOTES}", "w") as file:
            file.write(gap_text(self.told, self.keeping))
        self.say(f"{name} was {self.told[path]}: {gap}{advice}")

    def say(self, text: str) -> None:
        for target in (self.channel, *(() if os.isatty(self.keeping.errors) else (self.keeping.errors,))):
            try:
                os.write(target, f"claudebox: {text}\n".encode())
            except OSError:
                pass  # nobody reads it


def _read(path: str) -> bytes:
    with open(os.open(path, files.READ), "rb") as file:
        return file.read()


FLOODED = b"claudebox: too many files with names of secrets were made in the project\n"
HAD = " in a file that the agent has"  # under another name, or open since it held no secret
GAP = "while the box ran; for some thousandths of a second the agent could read it"
ADVICE = ": for no gap at all, --review"
REVIEWED = ": here only whole names of secrets, in the root and beside masked files, have no gap"


def gap_text(told: dict[str, str], keeping: Keeping) -> str:
    """What to say at the end, the graver first."""
    text = ""
    for is_open in (True, False):
        ways = {path: what for path, what in told.items() if what.endswith(HAD) == is_open}
        names = [cut(escape(path.removeprefix(f"{keeping.project}/")), LONGEST_NAME) for path in ways]
        were = f"{'was' if len(names) == 1 else 'were'} {' or '.join(sorted(set(ways.values())))}"
        rest = (
            ": it can read it. Replace these secrets"
            if is_open
            else f" {GAP}{REVIEWED if keeping.is_review else ADVICE}"
        )
        text += "\n  ".join(fill(f"claudebox: {', '.join(names)} {were}{rest}".split(), 2)) + "\n" if names else ""
    return text
