"""What the kernel shows of itself as files: nothing of it can be written, and the hardware is not there."""

import errno
import json
import platform
import uuid
from collections.abc import Iterator

import pytest

from attacks.unprotected import FILTER, without
from claudebox.sandbox import seccomp as table
from conftest import Account, Box, make_account
from patience import comes_true

pytestmark = [pytest.mark.req("SEC-02"), pytest.mark.root_differs("the kernel lets root write here")]

# Opened, never written to: where this has success, nothing happens.
WRITABLE = """
import os
OWN = {"/proc/self", "/proc/thread-self"}
for directory, names, files in os.walk("/proc"):
    names[:] = [name for name in names if not name.isdigit() and f"{directory}/{name}" not in OWN]
    for name in files:
        path = f"{directory}/{name}"
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))
            print(path)
        except OSError:
            pass
"""
HARMLESS = {f"/proc/pressure/{what}" for what in ("cpu", "io", "irq", "memory")}  # to be woken up when it rises
DEVICES = set("console core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero".split())


@pytest.mark.parametrize("tier", ["full", "none"])
def test_nothing_of_the_kernel_can_be_written(box: Box, tier: str) -> None:
    found = box.inside("python3", "-c", WRITABLE, options=("--network", tier)).stdout.split()
    assert set(found) <= HARMLESS


def test_root_could_on_the_host(account: Account) -> None:
    if account.is_root:
        assert "/proc/sys/kernel/core_pattern" in account.run("python3", "-c", WRITABLE).stdout.split()


def test_user_could_in_a_plain_bwrap(user: Account) -> None:
    """Settings of the namespaces that are its own."""
    words = "bwrap --unshare-all --disable-userns --unshare-user --ro-bind / / --proc /proc --dev /dev -- python3 -c"
    assert set(user.run(*words.split(), WRITABLE).stdout.split()) - HARMLESS != set()


def test_hardware_is_not_there(box: Box, account: Account) -> None:
    look = "ls /sys /sys/class/net /sys/fs/cgroup 2>/dev/null | head -1"
    assert account.run("sh", "-c", look).stdout != ""
    assert box.sh(look) == ""


def test_devices_are_those_that_every_program_needs(box: Box) -> None:
    assert set(box.sh("ls /dev").split()) <= DEVICES


def test_what_the_kernel_shows_to_root_alone_is_not_there(box: Box, account: Account) -> None:
    look = "cat /proc/slabinfo /proc/vmallocinfo /proc/timer_list /proc/pagetypeinfo 2>/dev/null | head -c 1"
    if account.is_root:
        assert account.run("sh", "-c", look).stdout != ""
    assert box.sh(f"{look}; echo done") == "done\n"


HOLD_LOCK = """
import fcntl, struct, time
file = open("locked", "w")
fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 777333, 1, 0))  # F_OFD_SETLK
open("holds", "w").close()
time.sleep(600)
"""


@pytest.mark.req("FD-01")
def test_what_tells_of_others_is_empty(box: Box) -> None:
    """Locks, with places that their holder chooses; and events, such as keys that are pressed."""
    look = "cat /proc/locks /proc/interrupts /proc/softirqs /proc/irq/*/spurious 2>/dev/null; echo done"
    with box.account.running("python3", "-c", HOLD_LOCK, cwd=box.project):
        assert comes_true((box.project / "holds").exists)
        outside = box.account.run("sh", "-c", look).stdout
        assert all(sign in outside for sign in ("777333", "CPU0", "TIMER", "unhandled"))
        assert box.sh(look) == "done\n"
        # A new pid namespace alone hides no lock of this kind.
        plain = "bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev -- cat /proc/locks"
        assert "777333" in box.account.run(*plain.split()).stdout


def test_messages_of_the_kernel_cannot_be_read(box: Box) -> None:
    # Not only silence: a box that did not start would be silent, too.
    assert box.sh("dmesg 2>/dev/null || echo refused") == "refused\n"
    assert box.sh("cat /dev/kmsg /proc/kmsg 2>/dev/null; echo done") == "done\n"


# Memory and queues that processes of the host share by number, and the group of processes that they belong to.


CANARY = "canary-7d31aa"
SHARE = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
CREATE, REMOVE = 0o1000, 0
key, what = int(sys.argv[1]), sys.argv[2]
number = libc.shmget(key, 4096, 0o600 | (CREATE if what == "make" else 0))
if number < 0:
    sys.exit("nothing there")
if what == "remove":
    libc.shmctl(number, REMOVE, None)
    sys.exit()
address = libc.shmat(number, None, 0)
if what == "make":
    ctypes.memmove(address, b"CANARY", len("CANARY") + 1)
print(ctypes.string_at(address).decode())
""".replace("CANARY", CANARY)


@pytest.fixture
def shared(account: Account) -> Iterator[str]:
    """The key of a piece of memory that the account shares."""
    key = str(uuid.uuid4().int & 0x3FFFFFFF | 1)
    assert account.run("python3", "-c", SHARE, key, "make").stdout == f"{CANARY}\n"
    yield key
    account.run("python3", "-c", SHARE, key, "remove")


def test_memory_that_the_host_shares_is_not_there(box: Box, shared: str) -> None:
    look = ("python3", "-c", SHARE, shared, "look")
    assert box.account.run(*look).stdout == f"{CANARY}\n"
    seen = box.inside(*look)
    # Not only silence: a box that did not start would be silent, too.
    assert (seen.stdout, "nothing there" in seen.stderr) == ("", True)


def test_group_of_processes_has_no_name(box: Box) -> None:
    """The path of a cgroup tells which container, session or service started the box."""
    paths = {line.rpartition(":")[2] for line in box.sh("cat /proc/self/cgroup").splitlines()}
    assert paths == {"/"}


# Sockets of families that no ordinary program uses: each is code of the kernel, some go past a network namespace.


OPEN_EACH = """
import errno, json, socket, sys
def attempt(family, kind, protocol):
    try:
        socket.socket(family, kind, protocol).close()
        return "open"
    except OSError as error:
        return errno.errorcode[error.errno]
print(json.dumps([attempt(*words) for words in json.loads(sys.argv[1])]))
"""
STREAM, DATAGRAM, RAW, SEQPACKET, DCCP = 1, 2, 3, 5, 6
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
USUAL = [
    *[(UNIX, STREAM, 0), (UNIX, DATAGRAM, 0), (UNIX, SEQPACKET, 0)],
    *[(INET, STREAM, 0), (INET, DATAGRAM, 0), (INET, STREAM, 6), (INET, DATAGRAM, 17)],
    (NETLINK, RAW, 0),
]
FAMILIES = [family for family in range(50) if family not in (UNIX, INET, INET6, NETLINK)]
UNUSUAL = [
    *[((family, kind, 0), "EAFNOSUPPORT") for family in FAMILIES for kind in (STREAM, DATAGRAM, RAW, SEQPACKET)],
    *[((NETLINK, RAW, protocol), "EPROTONOSUPPORT") for protocol in range(1, 23)],
    *[((INET, STREAM, protocol), "EPROTONOSUPPORT") for protocol in (33, 132, 136, 256)],
    *[((INET6, kind, 0), "ESOCKTNOSUPPORT") for kind in (SEQPACKET, DCCP)],
]
# Open to everybody where nothing filters: events of the devices, and generic netlink with its many users.
OPEN_TO_ALL = [(NETLINK, RAW, 15), (NETLINK, RAW, 16)]


def attempts(done_output: str, words: list[tuple[int, int, int]]) -> Iterator[tuple[tuple[int, int, int], str]]:
    return zip(words, json.loads(done_output), strict=True)


def inside(box: Box, words: list[tuple[int, int, int]]) -> dict[tuple[int, int, int], str]:
    return dict(attempts(box.inside("python3", "-c", OPEN_EACH, json.dumps(words)).stdout, words))


def test_usual_sockets_can_be_made(box: Box) -> None:
    assert set(inside(box, USUAL).values()) == {"open"}


def test_unusual_sockets_do_not_exist(box: Box) -> None:
    assert inside(box, [words for words, _ in UNUSUAL]) == dict(UNUSUAL)


def test_some_of_them_do_without_the_filter(box: Box) -> None:
    assert set(inside(without(box, FILTER), OPEN_TO_ALL).values()) == {"open"}


# The calls of the table do not arrive in the kernel: it is never asked whether it has a bug there.


MACHINE = table.MACHINES.index(platform.machine())
BAD = 1  # an address that nobody has
# All that are promised. They are written out here: a call that somebody takes out of the table is missed then.
ARGUMENTS: dict[str, tuple[int, ...]] = {
    "add_key": (BAD, BAD, BAD, 1, 0),
    "request_key": (BAD, BAD, 0, 0),
    "keyctl": (0, -1 & 0xFFFFFFFF, 0),  # the number of this thread's keyring
    "io_uring_setup": (0, 0),
    "io_uring_enter": (-1, 0, 0, 0, 0, 0),
    "io_uring_register": (-1, 0, 0, 0),
    "userfaultfd": (0xFFFF,),
    "bpf": (-1, 0, 0),
    "perf_event_open": (0, 0, -1, -1, 0),
    "lookup_dcookie": (0,),
    "syslog": (99, 0, 0),
    "kexec_load": (0, 99, 0, 0xFFFF0000),
    "kexec_file_load": (-1, -1, 0, 0, 0xFFFF),
    "init_module": (0,),
    "finit_module": (-1, 0, 0xFFFF),
    "delete_module": (0,),
    "reboot": (0,),
    "swapon": (0, -1),
    "swapoff": (0,),
    "acct": (BAD,),  # not 0, which would switch it off
    "quotactl": (-1, 0, 0, 0),
    "quotactl_fd": (-1, 0, 0, 0),
    "nfsservctl": (0,),
    "vhangup": (0,),
    "settimeofday": (BAD, 0),
    "clock_settime": (-1, 0),
    "iopl": (99,),
    "ioperm": (-1, -1, 0),
    "modify_ldt": (99, 0, 0),
    "open_by_handle_at": (-1, BAD, 0),
    "openat2": (-1, BAD, BAD, 24),
    "mount": (BAD, BAD, BAD, 0, 0),
    "umount2": (BAD, 0),
    "pivot_root": (BAD, BAD),
    "chroot": (BAD,),
    "open_tree": (-1, BAD, 0),
    "move_mount": (-1, BAD, -1, BAD, 0),
    "fsopen": (BAD, 0),
    "fsconfig": (-1, 0, 0, 0, 0),
    "fsmount": (-1, 0, 0),
    "fspick": (-1, BAD, 0),
    "mount_setattr": (-1, BAD, 0, BAD, 32),
    "open_tree_attr": (-1, BAD, 0, BAD, 32),
    "sethostname": (BAD, -1),
    "setdomainname": (BAD, -1),
    "setns": (-1, 0),
    "clone3": (BAD, 0),
}
CALL_EACH = """
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
found = {}
for name, (number, arguments) in json.loads(sys.argv[1]).items():
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(argument) for argument in arguments))
    found[name] = ctypes.get_errno() if result == -1 else 0
print(json.dumps(found))
"""


def calls() -> dict[str, tuple[int, tuple[int, ...]]]:
    return {
        name: (numbers[MACHINE], ARGUMENTS[name])
        for refused in table.REFUSED
        for name, numbers in refused.calls.items()
        if numbers[MACHINE] != table.ABSENT
    }


def by_name(errors: dict[str, int]) -> dict[str, str]:
    return {name: errno.errorcode.get(error, str(error)) for name, error in errors.items()}


def wanted() -> dict[str, int]:
    return {name: refused.error for refused in table.REFUSED for name in refused.calls if name in calls()}


def test_table_has_all_of_them() -> None:
    assert {name for refused in table.REFUSED for name in refused.calls} == ARGUMENTS.keys()


def test_none_arrives_from_the_box(box: Box) -> None:
    done = box.inside("python3", "-c", CALL_EACH, json.dumps(calls()))
    assert by_name(json.loads(done.stdout)) == by_name(wanted())


@pytest.mark.root  # nobody else gets as far as to its arguments
def test_all_arrive_without_the_filter() -> None:
    """With root's capabilities; in namespaces of its own, in case one of them means more than it should."""
    for root in make_account("root"):
        found = json.loads(in_namespaces(root, "python3", "-c", CALL_EACH, json.dumps(calls())))
    kernel_lacks = {name for name, error in found.items() if error == errno.ENOSYS and wanted()[name] == errno.ENOSYS}
    assert kernel_lacks <= {"io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd"}
    assert {name for name, error in found.items() if error == wanted()[name]} <= kernel_lacks


def in_namespaces(root: Account, *command: str) -> str:
    done = root.run("unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", *command)
    assert done.returncode == 0, done.stderr
    return done.stdout


UNKNOWN = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(470), ctypes.get_errno(), libc.syscall(100000), ctypes.get_errno())
"""


def test_calls_that_nobody_knows_yet_do_not_exist(box: Box) -> None:
    assert box.inside("python3", "-c", UNKNOWN).stdout.split() == ["-1", str(errno.ENOSYS)] * 2


LINE_DISCIPLINE = """
import fcntl, os, struct, termios
terminal, _ = os.openpty()
try:
    fcntl.ioctl(terminal, termios.TIOCSETD, struct.pack("i", 0))
    print("loaded")
except OSError as error:
    print(error.strerror)
"""


def test_line_discipline_of_a_terminal_stays(box: Box) -> None:
    outside = box.account.run("python3", "-c", LINE_DISCIPLINE)
    inside = box.inside("python3", "-c", LINE_DISCIPLINE)
    assert (outside.stdout, inside.stdout) == ("loaded\n", "Operation not permitted\n")


LEASE = """
import fcntl, os
file = os.open("left.txt", os.O_RDONLY | os.O_CREAT)
for command in (fcntl.F_SETLEASE, fcntl.F_GETLEASE):
    try:
        fcntl.fcntl(file, command, fcntl.F_WRLCK)
        print("taken")
    except OSError as error:
        print(error.strerror)
"""


def test_no_file_of_the_project_can_be_leased(box: Box) -> None:
    """With a lease, whoever opens the file on the host waits for 45 seconds, or is told that it cannot be read."""
    assert box.inside("python3", "-c", LEASE).stdout == "Operation not permitted\n" * 2
    assert without(box, FILTER).inside("python3", "-c", LEASE).stdout == "taken\n" * 2
