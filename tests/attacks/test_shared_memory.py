"""Memory and queues that processes of the host share by number, and the group of processes that they belong to."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from conftest import Account, Box

pytestmark = pytest.mark.req("SEC-02")

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
