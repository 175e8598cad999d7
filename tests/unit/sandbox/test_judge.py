"""What the judge makes of the kernel's list of mounts: which place of the host is behind each mount of a box.

The lists are made up, as kernels of odd hosts write them. A line here is `number parent device root path`, then, if it
matters, the kind of file system, the options and the source.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from claudebox.errors import Problem
from claudebox.sandbox.judge import LATER, NEVER, READ, WRITE, Judge, Mounts, Row, moved, upwards
from claudebox.sandbox.law import Law, Rule

pytestmark = pytest.mark.req("JUDGE-01")

NOBODY = ("nobody knows",)
OWN: tuple[str, ...] = ()  # bwrap made it, and it is empty
SAFE = "rw,nosuid,nodev"
MANY = 10_000
BARE = "1 0 8:1 / /"  # a host with one disk


def line(text: str) -> bytes:
    """As the kernel writes it. A path is written as it is there, with its escapes."""
    number, parent, device, root, path, *more = text.split()
    kind, options, source = (*more, *("ext4", SAFE, "/dev/x")[len(more) :])
    return f"{number} {parent} {device} {root} {path} {options} shared:7 master:3 - {kind} {source} rw\n".encode()


def lines(text: str) -> bytes:
    return b"".join(line(one) for one in text.strip().splitlines())


def listed(where: Path, content: bytes) -> Mounts:
    where.mkdir(parents=True, exist_ok=True)
    (where / "mountinfo").write_bytes(content)
    return Mounts(str(where))


def law(*rules: Rule) -> Law:
    return Law(
        places={rule.path: rule for rule in rules},
        claude=("", ""),
        layers=("", "", ""),
        of_proc=(),
        names=frozenset(),
        withheld=(),
        links=(),
        call_filter=b"",
        has_hosts_network=True,
        devices=frozenset(),
        typed=b"",
        groups=frozenset(),
    )


def looking(where: Path, host: bytes, box: bytes, what: Law, made: bytes | None = None) -> Judge:
    """A judge that sees these lists. Its box has the files of `where`/box/root."""
    judge = Judge.__new__(Judge)
    judge.law = what
    judge.process, judge.builder = str(where / "box"), str(where / "made")
    judge.host, judge.box = listed(where / "host", host), listed(where / "box", box)
    judge.made = listed(where / "made", host if made is None else made)
    judge.layers, judge.rules = {}, {}
    return judge


def behind(where: Path, host: bytes, row: str) -> tuple[str, ...]:
    """The places of the host that a mount of the box shows: of some file systems nobody knows it."""
    judge = looking(where, host, lines("1 0 0:99 / / tmpfs") + line(f"2 1 {row}"), law(Rule("/", NEVER, "seen")))
    found = judge.box.rows[1]
    (where / "box/root/dev").mkdir(parents=True)
    (where / "box/root/dev/console").touch()
    (where / "box/fd").mkdir()
    (where / "box/fd/1").touch()
    said = list(judge._of_mount(found))
    if said == [f"nobody knows what is behind {found.path}"] or not said:
        return NOBODY if said else ()
    return tuple(sorted(path for _, path, is_seen in judge.host.showing(found.device, found.root) if is_seen))


# Paths.


ESCAPED = {
    "/a\\040b": "/a b",
    "/a\\011b": "/a\tb",
    "/a\\012b": "/a\nb",
    "/a\\134b": "/a\\b",
    "/a\\134040b": "/a\\040b",
    "/\\040\\012\\134": "/ \n\\",
    "/a#b": "/a#b",
    "/a\\043b": "/a#b",
    "/caf\\303\\251": "/café",
}


@pytest.mark.parametrize("written", ESCAPED)
def test_path_is_read_as_the_kernel_means_it(written: str) -> None:
    row = Row(line(f"2 1 8:1 {written} {written}"))
    assert (row.root, row.path) == (ESCAPED[written], ESCAPED[written])


@pytest.mark.parametrize(
    "path", ["/plain", "/line\nbreak", "/a\tb c\\d", "/" + "/".join(["long " * 40] * 20), "/\udcff\udc80", "/\\012"]
)
def test_path_is_written_and_read_alike(path: str) -> None:
    name = os.fsencode(path)
    for character in b"\\ \t\n":
        name = name.replace(bytes([character]), b"\\%03o" % character)
    row = Row(b"2 1 8:1 " + name + b" " + name + b" rw - ext4 /dev/x rw\n")
    assert (row.root, row.path) == (path, path)


def test_path_of_4000_bytes(tmp_path: Path) -> None:
    long = "/" + "/".join(["d" * 199] * 20)
    assert len(long) == 4000
    host = lines(BARE) + line(f"2 1 8:2 / {long}")
    assert behind(tmp_path, host, f"8:2 /shop {long}/shop") == (f"{long}/shop",)


def test_optional_fields_and_sources_may_be_missing_or_odd() -> None:
    for text, kind, source in (
        (b"2 1 0:5 / /a rw - tmpfs  rw\n", b"tmpfs", b""),
        (b"2 1 0:5 / /- rw - 9p C:\\134 rw,aname=drvfs;path=C:\\134\n", b"9p", b"C:\\134"),
        (b"2 1 0:5 / /a rw shared:1 master:2 propagate_from:3 unbindable - 9p C:\\134 rw\n", b"9p", b"C:\\134"),
        (b"2 1 0:5 / /a rw - fuse.sshfs me@host:/- rw\n", b"fuse.sshfs", b"me@host:/-"),
        (b"2 1 0:5 / /a rw - ext4 - rw", b"ext4", b"-"),
    ):
        assert (Row(text).kind, Row(text).source) == (kind, source)


BROKEN = {
    "empty file": b"",
    "empty line": b"\n",
    "no dash": b"2 1 8:1 / /a rw shared:1\n",
    "cut in the middle": b"2 1 8:1 / /a\n",
    "nothing behind the dash": b"2 1 8:1 / /a rw -\n",
    "kind alone": b"2 1 8:1 / /a rw - ext4\n",
    "no digits in an escape": b"2 1 8:1 /\\x40 /a rw - ext4 x rw\n",
    "escape that is no byte": b"2 1 8:1 /\\777 /a rw - ext4 x rw\n",
    "escape at the end": b"2 1 8:1 / /a\\ rw - ext4 x rw\n",
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_list_is_refused(case: str, tmp_path: Path) -> None:
    """Whoever reads it raises something, and the judge makes a refusal of that: never a pass."""
    for content in (BROKEN[case], lines(BARE) + BROKEN[case]) if BROKEN[case] else (b"",):
        with pytest.raises((ValueError, LookupError, StopIteration)):
            listed(tmp_path, content)


class Blind(Judge):
    """A judge that cannot look."""

    def __init__(self, error: Exception, process: str = "/proc/self") -> None:
        self.error, self.process = error, process

    def breaches(self) -> Iterable[str]:  # type: ignore[override]
        yield "something is wrong"
        raise self.error


@pytest.mark.parametrize(
    "error",
    [ValueError(), LookupError(), KeyError(), StopIteration(), ProcessLookupError(), PermissionError(), OSError()],
    ids=repr,
)
def test_what_cannot_be_looked_at_is_refused(error: Exception) -> None:
    with pytest.raises(Problem, match="it cannot be looked at"):
        Blind(error).require_lawful()


def test_box_that_has_ended_meanwhile_is_no_breach() -> None:
    with pytest.raises(ProcessLookupError):
        Blind(FileNotFoundError(), "/proc/0").require_lawful()


def test_refusal_names_five_breaches_and_counts_the_others() -> None:
    class Many(Blind):
        def breaches(self) -> Iterable[str]:  # type: ignore[override]
            yield from (f"breach {number}" for number in (*range(7), 3))

    with pytest.raises(Problem) as caught:
        Many(ValueError()).require_lawful()
    assert "breach 0; breach 1; breach 2; breach 3; breach 4; and 2 more" in caught.value.message
    assert caught.value.status == 125


def test_no_breach_is_no_problem() -> None:
    class Content(Blind):
        def breaches(self) -> Iterable[str]:  # type: ignore[override]
            return iter(())

    Content(ValueError()).require_lawful()


def test_arithmetic_on_paths() -> None:
    assert [*upwards("/a/b")] == ["/a/b", "/a", "/"]
    assert [*upwards("/")] == ["/"]
    assert [*upwards("")] == ["/"]
    assert [*upwards("net:[4026531992]")] == ["net:[4026531992]", "/"]  # as the root of a namespace in /run/netns is
    assert moved("/a/b", "/", "/x") == "/x/a/b"
    assert moved("/a/b", "/a", "/") == "/b"
    assert moved("/a", "/a", "/") == "/"
    assert moved("/a", "/a", "/x") == "/x"
    assert moved("/", "/", "/") == "/"


# What is at a path.

LISTS = {
    "one disk": BARE,
    "two at one path": """
        1 0 8:1 / /
        2 1 8:2 / /mnt
        3 2 8:3 / /mnt""",
    "a later mount hides one below it": """
        1 0 8:1 / /
        2 1 8:2 / /mnt/deep
        3 1 8:3 / /mnt""",
    "a mount on what hides": """
        1 0 8:1 / /
        2 1 8:2 / /mnt/deep
        3 1 8:3 / /mnt
        4 3 8:4 / /mnt/deep""",
    "rootfs is its own parent": """
        1 1 0:2 / / rootfs
        20 1 8:1 / /
        21 20 8:2 / /mnt""",
    "rootfs comes last": """
        20 1 8:1 / /
        21 20 8:2 / /mnt
        1 1 0:2 / / rootfs""",
    "two over the root": """
        1 1 0:2 / / rootfs
        2 1 8:1 / /
        3 2 0:40 / / overlay
        4 3 8:2 / /mnt""",
    "children come before parents": """
        4 3 8:4 / /mnt/deep
        3 1 8:3 / /mnt
        1 0 8:1 / /""",
}
HELD_BY = {
    ("one disk", "/"): "8:1 /",
    ("one disk", "/a/b"): "8:1 /a/b",
    ("two at one path", "/mnt"): "8:3 /",
    ("two at one path", "/mnt/x"): "8:3 /x",
    ("two at one path", "/mntx"): "8:1 /mntx",
    ("a later mount hides one below it", "/mnt/deep"): "8:3 /deep",
    ("a later mount hides one below it", "/mnt/deep/x"): "8:3 /deep/x",
    ("a mount on what hides", "/mnt/deep/x"): "8:4 /x",
    ("a mount on what hides", "/mnt/x"): "8:3 /x",
    ("rootfs is its own parent", "/"): "8:1 /",
    ("rootfs is its own parent", "/etc"): "8:1 /etc",
    ("rootfs is its own parent", "/mnt/x"): "8:2 /x",
    ("rootfs comes last", "/etc"): "8:1 /etc",
    ("rootfs comes last", "/mnt/x"): "8:2 /x",
    ("two over the root", "/"): "0:40 /",
    ("two over the root", "/etc"): "0:40 /etc",
    ("two over the root", "/mnt/x"): "8:2 /x",
    ("children come before parents", "/mnt/deep/x"): "8:4 /x",
}


@pytest.mark.parametrize(("name", "path"), HELD_BY)
def test_mount_that_shows_a_path(name: str, path: str, tmp_path: Path) -> None:
    device, where = listed(tmp_path, lines(LISTS[name])).behind(path)
    assert f"{device.decode()} {where}" == HELD_BY[name, path]


# What is behind a mount of the box.

DISKS = """
    1 0 8:1 / /
    2 1 8:2 / /home
    3 1 0:20 / /proc proc
    4 1 0:5 / /dev devtmpfs
    5 4 0:21 / /dev/pts devpts
    6 1 0:30 / /tmp tmpfs
    7 1 0:31 / /run tmpfs"""
BTRFS = """
    1 0 0:22 /@ / btrfs
    2 1 0:22 /@home /home btrfs
    3 1 0:22 /@var/log /var/log btrfs
    4 1 0:22 / /btrfs btrfs"""
CONTAINER = """
    700 600 0:52 / / overlay rw,relatime overlay
    701 700 0:55 / /proc proc
    702 700 0:56 / /dev tmpfs
    703 702 0:57 / /dev/pts devpts
    704 702 0:53 / /dev/mqueue mqueue
    705 700 8:1 /var/lib/docker/containers/6f3a/resolv.conf /etc/resolv.conf
    706 700 8:1 /var/lib/docker/containers/6f3a/hostname /etc/hostname
    707 700 8:1 /var/lib/docker/containers/6f3a/hosts /etc/hosts
    708 700 8:1 /home/me/src /work
    709 702 0:57 /0 /dev/console devpts"""
TWICE = """
    1 0 8:1 / /
    2 1 8:1 /data/home /home"""
MEMORY = """
    1 0 8:1 / /
    2 1 0:41 / /home/alice tmpfs"""
WSL = """
    70 60 8:32 / / ext4
    71 70 0:30 / /mnt/wsl tmpfs
    72 70 0:31 / /usr/lib/wsl/drivers 9p
    73 70 0:35 / /init rootfs
    80 70 0:64 / /mnt/c 9p rw,noatime C:\\134
    81 70 0:65 / /mnt/d drvfs rw,noatime D:\\134"""
SNAP = """
    1 0 8:1 / /
    2 1 7:0 / /snap/core22/1380 squashfs ro,nodev snap
    3 1 7:1 / /snap/firefox/4336 squashfs ro,nodev snap
    4 1 7:2 / /snap/bare/5 squashfs ro,nodev snap
    5 1 7:0 /usr/lib /var/lib/snapd/hostfs/lib squashfs ro,nodev snap
    6 1 0:25 /snapd/ns /run/snapd/ns tmpfs
    7 6 0:4 mnt:[4026532601] /run/snapd/ns/firefox.mnt nsfs"""
AUTOFS = """
    1 0 8:1 / /
    2 1 0:40 / /home autofs rw,relatime auto.home
    3 2 8:9 / /home/alice
    4 1 0:41 / /proc/sys/fs/binfmt_misc autofs
    5 4 0:42 / /proc/sys/fs/binfmt_misc binfmt_misc"""
COVERED = """
    1 0 8:1 / /
    2 1 8:2 / /mnt/secret
    3 1 8:3 / /mnt"""
DELETED = """
    1 0 8:1 / /
    2 1 8:1 /home/me/gone//deleted /mnt"""
BEHIND: dict[tuple[str, str], tuple[str, ...]] = {
    # On disks.
    (DISKS, "8:1 /usr /usr"): ("/usr",),
    (DISKS, "8:2 /alice/shop /home/alice/shop"): ("/home/alice/shop",),
    (DISKS, "8:2 / /mnt"): ("/home",),
    (DISKS, "8:1 / /mnt"): ("/",),
    (DISKS, "8:3 / /mnt"): NOBODY,
    (DISKS, "8:1 /home/alice /home/alice"): NOBODY,  # what lies below the mount at /home
    (DISKS, "0:30 / /tmp tmpfs"): ("/tmp",),
    (DISKS, "0:30 /claudebox-x /tmp tmpfs"): ("/tmp/claudebox-x",),
    (DISKS, "0:77 / /tmp tmpfs"): OWN,
    (DISKS, "0:77 / /mnt ramfs"): NOBODY,
    (DISKS, "0:77 / /mnt fuse.sshfs"): NOBODY,
    (DISKS, "0:77 / /mnt overlay"): NOBODY,
    (DISKS, "0:20 / /proc proc"): ("/proc",),
    (DISKS, "0:21 / /dev/pts devpts"): ("/dev/pts",),
    (DISKS, "0:78 / /dev/pts devpts"): OWN,
    (DISKS, "0:5 /null /dev/null devtmpfs"): ("/dev/null",),
    (DISKS, "0:5 /mem /dev/mem devtmpfs"): ("/dev/mem",),
    (DISKS, "0:77 / /sys sysfs"): NOBODY,
    (DISKS, "0:77 / /sys/fs/cgroup cgroup2"): NOBODY,
    (DISKS, "0:77 / /dev/mqueue mqueue"): NOBODY,
    (DISKS, "0:4 net:[4026532177] /mnt nsfs"): NOBODY,
    (DISKS, "8:1 /usr//deleted /usr"): NOBODY,
    (DISKS, "8:2 /alice/a\\040b\\012c /mnt"): ("/home/alice/a b\nc",),
    # On btrfs all subvolumes have one device, and the way to them says which.
    (BTRFS, "0:22 /@home/alice/shop /home/alice/shop btrfs"): ("/btrfs/@home/alice/shop", "/home/alice/shop"),
    (BTRFS, "0:22 /@/usr /usr btrfs"): ("/btrfs/@/usr", "/usr"),
    (BTRFS, "0:22 /@home /home btrfs"): ("/btrfs/@home", "/home"),
    (BTRFS, "0:22 /@/home/alice /mnt btrfs"): ("/btrfs/@/home/alice",),
    (BTRFS, "0:22 /@homes /mnt btrfs"): ("/btrfs/@homes",),
    (BTRFS.rpartition("\n")[0], "0:22 /@snapshots /mnt btrfs"): NOBODY,
    # In a container.
    (CONTAINER, "0:52 /usr /usr overlay"): ("/usr",),
    (CONTAINER, "8:1 /var/lib/docker/containers/6f3a/resolv.conf /etc/resolv.conf"): ("/etc/resolv.conf",),
    (CONTAINER, "8:1 /var/lib/docker/containers/6f3a/hosts /etc/hosts"): ("/etc/hosts",),
    (CONTAINER, "8:1 /home/me/src/shop /work/shop"): ("/work/shop",),
    (CONTAINER, "8:1 /home/me/.ssh /work"): NOBODY,
    (CONTAINER, "0:52 /etc/resolv.conf /etc/resolv.conf overlay"): NOBODY,  # below the file that docker mounts
    (CONTAINER, "0:56 /null /dev/null tmpfs"): ("/dev/null",),
    (CONTAINER, "0:56 / /dev tmpfs"): ("/dev",),
    (CONTAINER, "0:57 /3 /dev/console devpts"): OWN,
    (CONTAINER, "0:57 /3 /mnt devpts"): ("/dev/pts/3",),
    # A home that is visible in two places.
    (TWICE, "8:1 /data/home/alice/shop /home/alice/shop"): ("/data/home/alice/shop", "/home/alice/shop"),
    (TWICE, "8:1 /data/home/alice/.ssh /mnt"): ("/data/home/alice/.ssh", "/home/alice/.ssh"),
    (TWICE, "8:1 /home/alice /mnt"): NOBODY,
    # A home in memory is not a fresh tmpfs.
    (MEMORY, "0:41 /shop /home/alice/shop tmpfs"): ("/home/alice/shop",),
    (MEMORY, "0:41 / /home/alice tmpfs"): ("/home/alice",),
    (MEMORY, "0:42 / /home/alice tmpfs"): OWN,
    # Windows.
    (WSL, "0:64 /Users/me/shop /mnt/c/Users/me/shop 9p"): ("/mnt/c/Users/me/shop",),
    (WSL, "0:65 / /mnt/d drvfs"): ("/mnt/d",),
    (WSL, "0:66 / /mnt/e 9p"): NOBODY,
    (WSL, "0:31 / /usr/lib/wsl/drivers 9p"): ("/usr/lib/wsl/drivers",),
    (WSL, "0:35 / /init rootfs"): ("/init",),
    # Snaps.
    (SNAP, "7:0 / /snap/core22/1380 squashfs"): ("/snap/core22/1380",),
    (SNAP, "7:0 /usr/lib /snap squashfs"): ("/snap/core22/1380/usr/lib", "/var/lib/snapd/hostfs/lib"),
    (SNAP, "7:9 / /snap/new squashfs"): NOBODY,
    (SNAP, "0:4 mnt:[4026532601] /mnt nsfs"): ("/run/snapd/ns/firefox.mnt",),
    # Mounted on demand.
    (AUTOFS, "8:9 /shop /home/alice/shop"): ("/home/alice/shop",),
    (AUTOFS, "0:40 / /home autofs"): ("/home",),
    (AUTOFS, "0:43 / /home/bob autofs"): NOBODY,
    # What nobody on the host can see does not count as a place.
    (COVERED, "8:2 / /mnt/secret"): NOBODY,
    (COVERED, "8:3 /secret /mnt"): ("/mnt/secret",),
    (DELETED, "8:1 /home/me/gone//deleted /mnt"): ("/mnt",),
    (DELETED, "8:1 /home/me/gone /mnt"): ("/home/me/gone",),
}


@pytest.mark.parametrize(("host", "row"), BEHIND, ids=lambda text: text.strip().partition("\n")[0])
def test_what_is_behind_a_mount(host: str, row: str, tmp_path: Path) -> None:
    assert behind(tmp_path, lines(host), row) == BEHIND[host, row]


def test_own_processes_are_seen_and_no_others(tmp_path: Path) -> None:
    """A new file system for processes shows those of some namespace: a file stands for that of the box."""
    judge = looking(tmp_path, lines(DISKS), lines("1 0 0:99 / / tmpfs\n2 1 0:77 / /proc proc"), law())
    for process in ("ns", "root/proc/1/ns"):
        (tmp_path / "box" / process).mkdir(parents=True)
    (tmp_path / "box/ns/pid").touch()
    os.link(tmp_path / "box/ns/pid", tmp_path / "box/root/proc/1/ns/pid")
    assert list(judge._of_mount(judge.box.rows[1])) == []
    (tmp_path / "box/root/proc/1/ns/pid").unlink()
    (tmp_path / "box/root/proc/1/ns/pid").touch()
    assert list(judge._of_mount(judge.box.rows[1])) == ["nobody knows what is behind /proc"]


# NFS with a mount below it that the server has by itself.
NFS = """
    1 0 8:1 / /
    2 1 0:52 / /home nfs4 rw srv:/export/home
    3 2 0:53 / /home/alice/scratch nfs4 rw srv:/export/home/alice/scratch"""


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("0:52 / /home nfs4 rw,nosuid,nodev srv:/export/home", ("/home",)),
        ("0:53 / /home/alice/scratch nfs4 rw,nosuid,nodev srv:/export/home/alice/scratch", ("/home/alice/scratch",)),
        ("0:54 / /mnt nfs4 rw,nosuid,nodev srv:/export/other", NOBODY),
    ],
)
def test_what_is_behind_a_whole_nfs_mount(row: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    assert behind(tmp_path, lines(NFS), row) == expected


# How a mount may be.


def test_mount_without_nosuid_or_nodev_is_a_breach(tmp_path: Path) -> None:
    allows = law(Rule("/shop", WRITE, "the project"), Rule("/dev", WRITE, "devices"))
    rows = {
        "8:1 /shop /shop ext4 rw,nosuid,nodev": [],
        "8:1 /shop /shop ext4 rw,nodev": ["/shop lacks nosuid"],
        "8:1 /shop /shop ext4 rw,nosuid": ["/shop lacks nodev"],
        "8:1 /dev/null /dev/null ext4 rw,nosuid": [],
        "0:9 / /dev/pts devpts rw,nosuid": [],
        "8:1 /dev/null /null ext4 ro,nosuid": ["/null lacks nodev"],
    }
    for row, expected in rows.items():
        judge = looking(tmp_path, lines(BARE), lines("1 0 0:99 / / tmpfs") + line(f"2 1 {row}"), allows)
        assert list(judge._of_mount(judge.box.rows[1])) == expected, row


RULES = (
    Rule("/shop", WRITE, "the project"),
    Rule("/review", LATER, "reviewed"),
    Rule("/usr", READ, "of this system"),
    Rule("/shop/.env", NEVER, "secret"),
    Rule("/shop/kept/open", WRITE, "you named it"),
    Rule("/shop/kept", LATER, "this host obeys it"),
    Rule("/tmp", READ, "made for this box", names="claudebox-"),
)
ALLOWED = {
    "8:1 /shop /shop ext4 rw,nosuid,nodev": True,
    "8:1 /shop/sub /elsewhere ext4 rw,nosuid,nodev": True,
    "8:1 /shop /shop ext4 ro,nosuid,nodev": True,
    "8:1 /shop/.env /shop/.env ext4 ro,nosuid,nodev": False,
    "8:1 /shop/.env/below /x ext4 ro,nosuid,nodev": False,
    "8:1 /shop/kept /shop/kept ext4 rw,nosuid,nodev": False,
    "8:1 /shop/kept /shop/kept ext4 ro,nosuid,nodev": True,
    "8:1 /shop/kept/open/x /x ext4 rw,nosuid,nodev": True,
    "8:1 /review /review ext4 rw,nosuid,nodev": False,
    "8:1 /usr /usr ext4 rw,nosuid,nodev": False,
    "8:1 /usr/lib /usr/lib ext4 ro,nosuid,nodev": True,
    "8:1 /usrlocal /usr ext4 ro,nosuid,nodev": False,
    "8:1 /home /home ext4 ro,nosuid,nodev": False,
    "8:1 / /all ext4 ro,nosuid,nodev": False,
    "8:1 /tmp /x ext4 ro,nosuid,nodev": False,
    "8:1 /tmp/claudebox-1 /x ext4 ro,nosuid,nodev": True,
    "8:1 /tmp/claudebox-1/below /x ext4 ro,nosuid,nodev": True,
    "8:1 /tmp/other/claudebox-1 /x ext4 ro,nosuid,nodev": False,
    "8:1 /tmp/claudebox-1 /x ext4 rw,nosuid,nodev": False,
}


@pytest.mark.parametrize("row", ALLOWED)
def test_nearest_rule_counts(row: str, tmp_path: Path) -> None:
    judge = looking(tmp_path, lines(BARE), lines("1 0 0:99 / / tmpfs") + line(f"2 1 {row}"), law(*RULES))
    assert (not list(judge._of_mount(judge.box.rows[1]))) == ALLOWED[row]


def test_of_two_names_for_one_place_one_may_allow_it_and_one_may_forbid_it(tmp_path: Path) -> None:
    def breaches(*rules: Rule) -> list[str]:
        row = line("2 1 8:1 /data/home/alice/x /x ext4 ro,nosuid,nodev")
        judge = looking(tmp_path, lines(TWICE), lines("1 0 0:99 / / tmpfs") + row, law(*rules))
        return list(judge._of_mount(judge.box.rows[1]))

    named, secret = Rule("/data/home/alice", READ, "you named it"), Rule("/home/alice/x", NEVER, "secret")
    assert breaches(named) == []
    assert breaches(named, secret) == ["/x shows /home/alice/x: secret"]
    assert breaches() == ["/x shows /home/alice/x, read-only: nothing allows that"]


# What lies in a place that the box has.


class Scene:
    """A home with a secret, and a box that has the home at /mnt. A hard link stands for what a mount shows there."""

    def __init__(self, where: Path) -> None:
        self.where = where
        self.home, self.seen = where / "home", where / "box/root/mnt"
        self.secret = self.home / "deep/.netrc"
        for directory in (self.secret.parent, self.seen / "deep"):
            directory.mkdir(parents=True)
        self.secret.write_text("password\n")
        self.shown = self.seen / "deep/.netrc"

    def breaches(self, more: str = "", access: int = NEVER, options: str = "ro") -> list[str]:
        rows = f"1 0 0:99 / / tmpfs\n2 1 8:1 {self.home} /mnt ext4 {options}\n{more}"
        rule = Rule(str(self.secret), access, "secret")
        judge = looking(self.where, lines(BARE), lines(rows), law(rule))
        return list(judge._of_place(rule.path, rule))

    @property
    def told(self) -> str:
        return f"/mnt/deep/.netrc is what {self.secret} is on this host: secret"


def test_secret_in_a_tree_of_the_box_is_named(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    assert scene.breaches() == [], "it is not there"
    os.link(scene.secret, scene.shown)
    assert scene.breaches() == [scene.told]


def test_what_has_to_be_hidden_counts_read_only_and_what_is_held_counts_writable(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    os.link(scene.secret, scene.shown)
    assert scene.breaches(access=LATER) == []
    assert scene.breaches(access=LATER, options="rw") == [scene.told]
    assert scene.breaches(access=NEVER, options="rw") == [scene.told]


def test_other_file_in_its_place_is_no_breach(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.shown.write_text("made up\n")
    covering = "3 2 0:98 / /mnt/deep/.netrc tmpfs"
    assert scene.breaches() == []
    assert scene.breaches(covering) == []
    # A decoy with the same content covers nothing.
    scene.shown.write_text("password\n")
    assert scene.breaches() == []
    assert scene.breaches(covering) == [scene.told]


def test_symlink_on_the_way_leads_elsewhere_in_the_box(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    (scene.seen / "deep").rmdir()
    (scene.seen / "deep").symlink_to(scene.home / "deep")
    assert scene.breaches() == []


def test_tree_without_its_files_of_tokens(tmp_path: Path) -> None:
    """A toolchain may be there, but not what may hold tokens."""
    tools = tmp_path / "tools"
    seen = tmp_path / "box/root/tools"
    for directory in (tools / "etc", seen / "etc"):
        directory.mkdir(parents=True)
    (tools / "etc/npmrc").write_text("token\n")
    os.link(tools / "etc/npmrc", seen / "etc/npmrc")
    rows = f"1 0 0:99 / / tmpfs\n2 1 8:1 {tools} /tools ext4 ro,nosuid,nodev\n"
    kind = law(Rule(str(tools), READ, "toolchains of yours", trees=(("", ""),), without=("etc/npmrc", "pip.conf")))
    judge = looking(tmp_path, lines(BARE), lines(rows), kind)
    told = [f"/tools/etc/npmrc is what {tools}/etc/npmrc is on this host: it may hold tokens"]
    assert list(judge._of_mount(judge.box.rows[1])) == told
    covered = looking(tmp_path, lines(BARE), lines(rows + "3 2 0:98 / /tools/etc/npmrc tmpfs"), kind)
    assert list(covered._of_mount(covered.box.rows[1])) == []


def test_single_programs_and_no_scripts(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    (programs / "deep").mkdir(parents=True)
    for name, content in (("uv", b"\x7fELF..."), ("script", b"#!/bin/sh\n"), ("deep/uv", b"\x7fELF...")):
        (programs / name).write_bytes(content)
    kind = law(Rule(str(programs), READ, "single programs of yours", has_programs=True))
    for name, is_allowed in (("/uv", True), ("/script", False), ("/deep/uv", False)):
        row = line(f"2 1 8:1 {programs}{name} /x ext4 ro,nosuid,nodev")
        judge = looking(tmp_path, lines(BARE), lines("1 0 0:99 / / tmpfs") + row, kind)
        assert (not list(judge._of_mount(judge.box.rows[1]))) == is_allowed, name


# Many.


def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is looked up from now on."""
    looked: list[str] = []
    holder = Mounts.holder

    def counting(self: Mounts, path: str) -> Row:
        looked.append(path)
        return holder(self, path)

    monkeypatch.setattr(Mounts, "holder", counting)
    return looked


def test_ten_thousand_mounts_of_one_device_take_as_many_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the project, each from a directory of its own. With a step for each pair, this would not end."""
    rows = "\n".join(f"{number} 1 8:1 /data/{number} /shop/{number}" for number in range(10, MANY + 10))
    allows = law(Rule("/shop", WRITE, "the project"), *(Rule(f"/shop/s{number}", NEVER, "s") for number in range(100)))
    judge = looking(
        tmp_path, lines(f"{BARE}\n{rows}"), lines(f"1 0 0:99 / / tmpfs\n2 1 8:1 /shop /shop\n{rows}"), allows
    )
    looked, begun = steps(monkeypatch), time.monotonic()
    assert [breach for row in judge.box.rows[1:] for breach in judge._of_mount(row)] == []
    assert [breach for path, rule in allows.places.items() for breach in judge._of_place(path, rule)] == []
    assert len(looked) < 4 * MANY
    assert time.monotonic() - begun < 60


NFS_HOME = """
    1 0 8:1 / /
    2 1 0:52 / /home/alice nfs4 rw srv:/export/home/alice
    3 1 0:52 / /work/shop nfs4 rw srv:/export/work/shop"""


# NFS writes `/` as the root of every mount (nfs_show_path); only the source says which directory it is.
def test_directory_of_an_nfs_mount_is_found(tmp_path: Path) -> None:
    row = "0:52 / /home/alice/src/shop nfs4 rw,nosuid,nodev srv:/export/home/alice/src/shop"
    assert behind(tmp_path, lines(NFS_HOME), row) == ("/home/alice/src/shop",)


def test_nfs_mount_of_a_secret_does_not_pass_for_the_project(tmp_path: Path) -> None:
    row = line("2 1 0:52 / /x nfs4 rw,nosuid,nodev srv:/export/home/alice/.ssh")
    allows = law(Rule("/work/shop", WRITE, "the project"), Rule("/home/alice/.ssh", NEVER, "secret"))
    judge = looking(tmp_path, lines(NFS_HOME), lines("1 0 0:99 / / tmpfs") + row, allows)
    assert list(judge._of_mount(judge.box.rows[1])) != []


def test_toolchain_on_a_disk_of_its_own(tmp_path: Path) -> None:
    host, box = lines(f"{BARE}\n2 1 8:2 / /home/alice/go"), lines("1 0 0:99 / / tmpfs\n2 1 8:2 / /home/alice/go")
    allows = law(Rule("/home/alice/go", READ, "toolchains of yours", trees=(("bin", ""), ("", ""))))
    judge = looking(tmp_path, host, box, allows)
    judge.box.rows[1].access = READ
    assert list(judge._of_mount(judge.box.rows[1])) == []


def test_root_of_a_mount_has_no_slash_at_its_end() -> None:
    assert moved("/", "/", "/home") == "/home"


# With a step for each pair, 2,000 took 7 seconds.
def test_many_mounts_of_one_directory_take_as_many_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = 500
    rows = "\n".join(f"{number} 1 8:1 /data /shop/{number}" for number in range(10, many + 10))
    box = lines(f"1 0 0:99 / / tmpfs\n2 1 8:1 /shop /shop\n{rows}")
    judge = looking(tmp_path, lines(f"{BARE}\n{rows}"), box, law(Rule("/shop", WRITE, "the project")))
    looked = steps(monkeypatch)
    assert [breach for row in judge.box.rows[1:] for breach in judge._of_mount(row)] == []
    assert len(looked) < 20 * many
