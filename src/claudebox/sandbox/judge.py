"""Judges a box that bwrap has made, before its program starts.

Nothing that decided about the box is believed here. The kernel is asked what the box has, and that is held against the
law (`law.py`): a table of places of this host, each with how much a box may have of it and of all below it. Of several
entries above a place, the nearest counts; what has no entry above it, no box may have. For each mount of the box the
place behind it is found by the file system's device and the directory in it, which the kernel lists for every mount.
What cannot be traced, or is not known here, is a breach, and no program starts.

This file imports nothing of claudebox but the error.
"""

from __future__ import annotations

import os
import stat

from claudebox.errors import Problem, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from claudebox.sandbox.law import Law, Rule

    Streams = list[os.stat_result]  # the standard streams that the box is to have

# How much a box may have of a place. What is LATER is writable in a layer alone, which lands when the user says so.
NEVER, READ, LATER, WRITE = range(4)
HOW = ("never", "read-only", "writable in a layer", "writable")

PROC, OVERLAY, TERMINALS, NFS = b"proc", b"overlay", b"devpts", b"nfs"  # kinds of file systems
FRESH = (b"tmpfs", TERMINALS, PROC)  # bwrap makes these: they are empty, or show the box itself
LABEL = b"claudebox:"  # how the source of a layer begins
SHOWN_OF_PROC = ("/sys", "/bus", "/fs", "/irq")  # bound over themselves, read-only
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
CONSOLE = "/dev/console"
NAMESPACES = ("cgroup", "ipc", "mnt", "pid", "user", "uts")
CAPABILITIES = (b"CapInh", b"CapPrm", b"CapEff", b"CapBnd", b"CapAmb")
PATH_ONLY, CLOSED_AT_START = 0o10000000, 0o2000000  # O_PATH, O_CLOEXEC
MEMORY = "/memfd:"  # how the kernel calls a file that is in memory alone
MOST_NAMED = 5  # breaches in a message
LOWER_BITS = (1 << 32) - 1  # of the number of a file
GONE = "//deleted"  # how the kernel ends the path of a file without a name


class Row:
    """A mount, as the kernel describes it."""

    def __init__(self, line: bytes) -> None:
        words = line.rstrip(b"\n").split(b" ")
        rest = words.index(b"-", 6)
        self.number, self.parent, self.device = words[:3]
        self.root, self.path = _decode(words[3]), _decode(words[4])
        self.options = words[5].split(b",")
        self.kind, self.source = words[rest + 1 : rest + 3]
        if self.kind.startswith(NFS):  # which calls each root `/`; the source says which directory it is
            self.root = _decode(self.source.partition(b":/")[2].join((b"/", b"")))

        self.access = WRITE if b"rw" in self.options else READ


class Mounts:
    """What a process sees at which path."""

    def __init__(self, process: str) -> None:
        with open(f"{process}/mountinfo", "rb") as file:
            self.rows = [Row(line) for line in file]
        numbers = {row.number for row in self.rows if row.number != row.parent}
        self.top = next(row for row in self.rows if row.path == "/" and row.parent not in numbers)
        self.on = {(row.parent, row.path): row for row in self.rows if row is not self.top}
        self.devices = {row.device for row in self.rows}
        self.at: dict[tuple[bytes, str], list[Row]] = {}
        for row in self.rows:
            self.at.setdefault((row.device, row.root), []).append(row)

    def holder(self, path: str) -> Row:
        """The mount that shows what is at a path. One that is mounted below another one's back shows nothing."""
        here = self.top
        for above in reversed([*upwards(path)]):
            while (over := self.on.get((here.number, above))) is not None:
                here = over
        return here

    def behind(self, path: str) -> tuple[bytes, str]:
        """The device that has what is at a path, and where."""
        row = self.holder(path)
        return row.device, moved(path, row.path, row.root)

    def showing(self, device: bytes, where: str) -> Iterator[tuple[Row, str, bool]]:
        """Every mount that has a place of a device, at which path, and whether nothing lies over it there."""
        for above in (where,) if where.endswith(GONE) else upwards(where):
            for row in self.at.get((device, above), ()):
                path = moved(where, above, row.path)
                yield row, path, self.holder(path) is row


def upwards(path: str) -> Iterator[str]:
    """The path, and all directories above it, the nearest first."""
    while path not in ("", "/"):
        yield path
        path = path.rpartition("/")[0]
    yield "/"


def moved(path: str, old: str, new: str) -> str:
    """What a path in `old` is called where `old` is called `new`."""
    return new if path == old else new.rstrip("/") + path[len(old.rstrip("/")) :]


def _decode(path: bytes) -> str:
    """A path without the octal codes that the kernel writes for blanks, line breaks and backslashes."""
    if b"\\" not in path:
        return os.fsdecode(path)
    first, *codes = path.split(b"\\")
    return os.fsdecode(first + b"".join(bytes((int(code[:3], 8),)) + code[3:] for code in codes))


class Judge:
    """One box, and what the law says about it."""

    def __init__(self, law: Law, builder: int, first: int, call_filter: bytes, pipe: int, streams: Streams) -> None:
        self.law, self.call_filter, self.streams = law, call_filter, streams
        self.pipe = os.fstat(pipe)  # through which bwrap gets the filter
        self.rules: dict[tuple[bytes, str], list[tuple[str, Rule | None]]] = {}
        self.process, self.builder = f"/proc/{first}", f"/proc/{builder}"
        self.host, self.made, self.box = map(Mounts, ("/proc/self", self.builder, self.process))
        # Layers are made in the namespace in which bwrap starts, and nowhere else.
        overlays = [row for row in self.made.rows if row.kind == OVERLAY and row.source.startswith(LABEL)]
        self.layers = {row.device: row for row in overlays if row.device not in self.host.devices}
        for row in self.box.rows:
            if row.device in self.layers:
                row.access = min(row.access, LATER)

    def require_lawful(self) -> None:
        """Raise a Problem that names the breaches."""
        found: list[str] = []
        try:
            found += self.breaches()
        except (OSError, ValueError, LookupError, StopIteration, RuntimeError) as error:
            if self._has_ended():
                raise ProcessLookupError from None  # it starts nothing
            found.append(f"it cannot be looked at ({type(error).__name__})")
        if found:
            raise refusal(*dict.fromkeys(found))

    def _has_ended(self) -> bool:
        try:
            return self._stat()[0] in (b"Z", b"X")
        except OSError:
            return True

    def _stat(self) -> list[bytes]:
        """The state of the box's first process, and what follows it in its `stat`."""
        with open(f"{self.process}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2].split()

    def breaches(self) -> Iterator[str]:
        yield from self._of_process()
        yield from self._of_descriptors()
        yield from self._of_environment()
        for row in self.box.rows:
            if self.box.holder(row.path) is row:  # of one that is covered, nothing is seen
                yield from self._of_mount(row)
        for layer in self.layers.values():
            yield from self._of_layer(layer.path)
        for path, rule in self.law.places.items():
            if rule.access in (NEVER, LATER) and os.path.lexists(path):
                yield from self._of_place(path, rule)
        yield from self._of_what_is_made()

    # Processes.

    def _of_process(self) -> Iterator[str]:
        for name in (*NAMESPACES, *([] if self.law.has_hosts_network else ["net"])):
            if os.stat(f"{self.process}/ns/{name}").st_ino == os.stat(f"/proc/self/ns/{name}").st_ino:
                yield f"it has the {name} namespace of this host"
        with open(f"{self.process}/status", "rb") as file:
            status = dict(line.split(b":", 1) for line in file)
        for key, own in ((b"Uid", os.geteuid()), (b"Gid", os.getegid())):
            if {*map(int, status[key].split())} != {own}:
                yield f"its {key.decode()} is not that of claudebox"
        groups = {*map(int, status[b"Groups"].split())}
        if not groups.issubset(self.law.groups):
            yield f"it has groups: {sorted(groups)}"
        for key in CAPABILITIES:
            if int(status[key], 16):
                yield f"it has capabilities ({key.decode()})"
        if int(status[b"NoNewPrivs"]) != 1:
            yield "programs in it can get new privileges"
        for name in ("uid_map", "gid_map"):
            with open(f"{self.process}/{name}") as file:
                rows = [line.split() for line in file]
            if len(rows) != 1 or rows[0][0] == "0" or rows[0][2] != "1":
                yield f"it is root in its {name}, or another account is"
        if not self.law.has_hosts_network:
            with open(f"{self.process}/net/dev") as file:
                devices = {line.partition(":")[0].strip() for line in file if ":" in line}
            if not devices.issubset(self.law.devices):
                yield f"its network has {' '.join(sorted(devices))}"
        if self.call_filter != self.law.call_filter:
            yield "its seccomp filter is another one"

    def _of_descriptors(self) -> Iterator[str]:
        terminal = self._terminal()
        for name in os.listdir(f"{self.process}/fd"):
            path, number = f"{self.process}/fd/{name}", int(name)
            target, status = os.readlink(path), os.stat(path)
            with open(f"{self.process}/fdinfo/{name}", "rb") as file:
                flags = int(dict(line.split(b":", 1) for line in file if b":" in line)[b"flags"], 8)
            if number < len(self.streams):
                is_file = number == 0 and stat.S_ISREG(status.st_mode) and not target.startswith(MEMORY)
                is_own = _same(status, self.streams[number]) or status.st_rdev == terminal != 0
                if is_file or not is_own:
                    yield f"descriptor {number} is {target}, not what claudebox was started with"
            elif not (flags & CLOSED_AT_START or _same(status, self.pipe) or self._is_bwraps_proc(status, flags)):
                yield f"descriptor {number} stays open: {target}"

    def _terminal(self) -> int:
        """The device of the box's own terminal; 0 if it has none."""
        number = int(self._stat()[4])
        return os.makedev(number >> 8 & 0xFFF, (number & 0xFF) | (number >> 12 & 0xFFF00))

    def _is_bwraps_proc(self, status: os.stat_result, flags: int) -> bool:
        """Whether it is the /proc that bwrap works with, and closes before the program starts."""
        return bool(flags & PATH_ONLY) and _same(status, os.stat(f"{self.builder}/root/proc"))

    def _of_environment(self) -> Iterator[str]:
        with open(f"{self.process}/environ", "rb") as file:
            environment = file.read()
        with open(f"{self.builder}/cmdline", "rb") as file:
            command = file.read().removesuffix(self.law.typed)
        words = command.split(b"\0")
        if b"--args" in words:
            yield "bwrap has options that cannot be seen (--args)"
        pairs = [pair.partition(b"=")[::2] for pair in environment.split(b"\0") if pair]
        pairs += [(words[at + 1], words[at + 2]) for at, word in enumerate(words[:-2]) if word == b"--setenv"]
        for name, value in ((os.fsdecode(name), value) for name, value in pairs):
            if not {name, name.rstrip("0123456789")} & self.law.names:
                yield f"nobody named the variable {name}"
            yield from (f"{name} has the secret of {origin}" for origin, secret in self.law.withheld if secret in value)
        for origin, secret in self.law.withheld:
            if any(word.endswith((b"\0" + secret, b"=" + secret)) for word in (b"\0" + word for word in words)):
                yield f"the command line has the secret of {origin}"

    # Mounts.

    def _of_mount(self, row: Row) -> Iterator[str]:
        is_bare = row.path in DEVICES or row.path == CONSOLE or row.kind == TERMINALS
        lacking = {b"nosuid", *(() if is_bare else (b"nodev",))}.difference(row.options)
        yield from (f"{row.path} lacks {option.decode()}" for option in lacking)
        rules = self._rules_of(row)
        if row.kind == PROC and row.access == READ and row.root in SHOWN_OF_PROC and row.path == f"/proc{row.root}":
            return
        if not rules:
            is_fresh = row.kind in FRESH and row.device not in self.host.devices | self.made.devices
            if not is_fresh or (row.kind == PROC and not self._is_own_proc(row)):
                yield f"nobody knows what is behind {row.path}"
        elif (row.path, row.kind) == (CONSOLE, TERMINALS):
            if os.stat(f"{self.process}/root{CONSOLE}").st_rdev != os.stat(f"{self.process}/fd/1").st_rdev:
                yield f"{CONSOLE} is another terminal than its own"
        else:
            yield from self._of_rules(row, rules)

    def _rules_of(self, row: Row) -> list[tuple[str, Rule | None]]:
        """What the law says of the place behind a mount, or of several that are one and the same: each rule once."""
        if (row.device, row.root) not in self.rules:
            places = [path for _, path, is_seen in self.host.showing(row.device, row.root) if is_seen]
            if (layer := self.layers.get(row.device)) is not None:
                places = [moved(row.root, "/", layer.path)]
            found: dict[str | None, tuple[str, Rule | None]] = {}
            for place in places:
                rule = self.law.nearest(place)
                found.setdefault(rule.path if rule is not None else None, (place, rule))
            self.rules[row.device, row.root] = list(found.values())
        return self.rules[row.device, row.root]

    def _is_own_proc(self, row: Row) -> bool:
        """Whether it shows the processes of the box, and no others."""
        first, own = f"{self.process}/root/proc/1/ns/pid", f"{self.process}/ns/pid"
        return (row.root, row.path) == ("/", "/proc") and os.stat(first).st_ino == os.stat(own).st_ino

    def _of_layer(self, place: str) -> Iterator[str]:
        """The kernel does not tell over what a layer lies. It shows what is in its place, and what boxes changed."""
        with suppress(PermissionError):  # nobody in the box can list it either
            for path in (f"{place}/{name}" for name in os.listdir(f"{self.builder}/root{place}")):
                if all(self._is_strange(path) for _ in range(3)):  # not just saved while this looked
                    yield f"the layer over {place} shows another {path}"

    def _is_strange(self, path: str) -> bool:
        """Whether a layer shows what is not on this host, or another file of that name, and no box has changed it."""
        outside, inside = (_status(f"{top}{path}") for top in ("", f"{self.builder}/root"))
        if inside is None or self._is_changed(path):
            return False
        # The kernel may say in the upper bits on which of several disks it is.
        return outside is None or (stat.S_ISREG(outside.st_mode) and (inside.st_ino ^ outside.st_ino) & LOWER_BITS != 0)

    def _is_changed(self, path: str) -> bool:
        """Whether boxes have changed what a layer shows there."""
        return any(_status(upper) is not None for upper in self.law.uppers(path))

    def _of_rules(self, row: Row, rules: list[tuple[str, Rule | None]]) -> Iterator[str]:
        """Of what is one and the same place, one rule must allow it, and none withhold it."""
        if row.access == READ and any(self.law.is_run_by_claude(row.path, place) for place, _ in rules):
            return
        for place, rule in ((place, rule) for place, rule in rules if rule is not None):
            if rule.access == NEVER:
                yield f"{row.path} shows {place}: {rule.why}"
            envs = f"{place}/envs" if rule.without else ""
            inner = [f"envs/{name}/" for name in os.listdir(envs)] if os.path.isdir(envs) else []
            for name in (f"{top}{name}" for top in ("", *inner) for name in rule.without):
                if self.box.holder(f"{row.path}/{name}") is row:
                    yield from self._of_part(row, f"{place}/{name}", f"{row.path}/{name}", "it may hold tokens")
        if not any(rule is not None and row.access <= rule.access and rule.means(place) for place, rule in rules):
            yield f"{row.path} shows {rules[0][0]}, {HOW[row.access]}: nothing allows that"

    def _of_place(self, path: str, rule: Rule) -> Iterator[str]:
        """What lies in a place that the box has, and of which it may have less."""
        seen = [self.host.behind(path)]
        if (layer := self.made.holder(path)).device in self.layers:
            seen.append((layer.device, moved(path, layer.path, "/")))
        for device, where in seen:
            for row, shown, is_seen in self.box.showing(device, where):
                if row.root != where and row.access > rule.access and (is_seen or rule.access == NEVER):
                    yield from self._of_part(row, path, shown, rule.why, is_covered=not is_seen)

    def _of_part(self, row: Row, path: str, shown: str, why: str, *, is_covered: bool = False) -> Iterator[str]:
        """Whether a path of the box leads to a file of this host; if that is covered, to its content.

        In a layer, boxes may have put something else there. A symlink leads elsewhere from here than in the box.
        """
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            outside, here = os.lstat(path), f"{self.process}/root/."
            if stat.S_ISLNK(outside.st_mode):
                return
            for part in shown[1:].split("/"):
                if stat.S_ISLNK(os.lstat(here).st_mode):
                    return
                here += f"/{part}"
            inside = os.lstat(here)
            is_same = not self._is_changed(path) if row.device in self.layers else _same(inside, outside)
            if is_covered:
                are_files = stat.S_ISREG(inside.st_mode) and stat.S_ISREG(outside.st_mode)
                is_same = are_files and inside.st_size == outside.st_size > 0 and _content(here) == _content(path)
            if is_same:
                yield f"{shown} is what {path} is on this host: {why}"

    def _of_what_is_made(self) -> Iterator[str]:
        """What bwrap makes: nothing is beside it, and no symlink leads to another place."""
        if others := [name for name in os.listdir(f"{self.process}/root/proc") if name.isdigit() and name != "1"]:
            yield f"{len(others)} other processes are in its pid namespace"
        for path in ("/", "/dev"):
            if self.box.holder(path).access != READ:
                yield f"{path} of the box is writable"
        for path, targets in self.law.links:
            with suppress(OSError):
                if (target := os.readlink(f"{self.process}/root{path}")) not in targets:
                    yield f"{path} is a symlink to {target}"
        for path, access in self.law.of_proc:
            row = self.box.holder(path)
            is_covered = row.path == path and row.access == READ and (access == READ or row.kind != PROC)
            if not is_covered and os.path.lexists(path):
                yield f"{path} is open, and has to be {'hidden' if access == NEVER else HOW[access]}"


def refusal(*breaches: str) -> Problem:
    more = f"; and {len(breaches) - MOST_NAMED} more" if len(breaches) > MOST_NAMED else ""
    what = f"the box has what the law does not allow, and was not started: {'; '.join(breaches[:MOST_NAMED])}{more}"
    return Problem(what, "see what is allowed: claudebox --audit\n      start it again; if it stays so, report it")


def _content(path: str) -> bytes:
    # Another box may have put a pipe in its place meanwhile, for which an ordinary open waits.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        return file.read()


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
