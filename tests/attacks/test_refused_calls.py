"""The calls of the table do not arrive in the kernel: it is never asked whether it has a bug there.

All are made with arguments that the kernel refuses, so that they do no harm where they do arrive.
"""

from __future__ import annotations

import errno
import json
import platform

import pytest

from claudebox.features.kernel import seccomp as table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from conftest import Account, Box

pytestmark = pytest.mark.req("SEC-02")

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
TRY = """
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


def shown(errors: dict[str, int]) -> dict[str, str]:
    return {name: errno.errorcode.get(error, str(error)) for name, error in errors.items()}


def wanted() -> dict[str, int]:
    return {name: refused.error for refused in table.REFUSED for name in refused.calls if name in calls()}


def test_table_has_all_of_them() -> None:
    assert {name for refused in table.REFUSED for name in refused.calls} == ARGUMENTS.keys()


def test_none_arrives_from_the_box(box: Box) -> None:
    done = box.inside("python3", "-c", TRY, json.dumps(calls()))
    assert shown(json.loads(done.stdout)) == shown(wanted())


@pytest.mark.root  # nobody else gets as far as to its arguments
def test_all_arrive_without_the_filter() -> None:
    """With root's capabilities; in namespaces of its own, in case one of them means more than it should."""
    from conftest import make_account

    for root in make_account("root"):
        found = json.loads(in_namespaces(root, "python3", "-c", TRY, json.dumps(calls())))
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
