"""The agent leaves a program in the project that makes whoever starts it the user: any other account of the host."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from attacks.unprotected import FILTER, without
from conftest import Account, Box

pytestmark = [pytest.mark.req("SEC-02"), pytest.mark.root_differs("the file would be root's")]

# Each makes its file with this mode.
WAYS = """
import ctypes, os, struct, sys
mode = int(sys.argv[1], 8)
libc = ctypes.CDLL(None, use_errno=True)
os.umask(0)

def made(name):
    return os.open(name, os.O_CREAT | os.O_WRONLY, 0o755)

def open_without_a_name():
    descriptor = os.open(".", os.O_TMPFILE | os.O_WRONLY, mode)
    os.link(f"/proc/self/fd/{descriptor}", "tmpfile", follow_symlinks=True)

ways = {
    "chmod": lambda: (made("chmod"), os.chmod("chmod", mode)),
    "fchmod": lambda: os.fchmod(made("fchmod"), mode),
    "fchmodat": lambda: (made("fchmodat"), os.chmod("fchmodat", mode, dir_fd=os.open(".", 0))),
    "fchmodat2": lambda: (made("fchmodat2"), libc.syscall(452, -100, b"fchmodat2", mode, 0)),
    "open": lambda: os.open("open", os.O_CREAT, mode),
    "open-for-a-directory": lambda: os.open("other", os.O_CREAT, mode, dir_fd=os.open(".", 0)),
    "openat2": lambda: libc.syscall(437, -100, b"openat2", struct.pack("QQQ", os.O_CREAT, mode, 0), 24),
    "mknod": lambda: os.mknod("mknod", mode | 0o100000),
    "tmpfile": open_without_a_name,
}
for name, way in ways.items():
    try:
        way()
    except OSError as error:
        print(name, error, file=sys.stderr)
"""


def special(project: Path) -> set[str]:
    return {path.name for path in project.iterdir() if path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)}


@pytest.mark.parametrize("mode", ["4755", "2755", "6755"])
def test_no_way_makes_one(box: Box, mode: str) -> None:
    box.inside("python3", "-c", WAYS, mode)
    assert special(box.project) == set()


def test_ways_are_real(box: Box) -> None:
    without(box, FILTER).inside("python3", "-c", WAYS, "4755")
    found = special(box.project)
    assert found >= {"chmod", "fchmod", "fchmodat", "open", "other", "mknod"}


# What people do all day, and what makes no such file.
ORDINARY = """
git init -q r; cd r; echo x > x; git add x; git -c user.name=a -c user.email=a@b commit -qm x; cd ..; git clone -q r s
chmod 755 r; chmod -R u+rwX,go-w r; install -d -m 755 i; install -m 755 r/x i/x; mkdir -m 1777 t; cp -a r c
tar cf a.tar r; mkdir u; tar xpf a.tar -C u; python3 -m venv --without-pip v; mktemp -d ./tXXXX >/dev/null
"""


@pytest.mark.parametrize("is_shared", [False, True])
def test_ordinary_work_goes_on(box: Box, account: Account, is_shared: bool) -> None:
    """In a directory that a group shares, too: there, chmod of a directory asks for the bit that it has."""
    if is_shared:
        box.project.chmod(0o2775)
    done = box.inside("sh", "-ec", ORDINARY)
    assert done.returncode == 0, done.stderr


def test_repository_that_a_group_shares(box: Box, account: Account) -> None:
    account.run("git", "init", "-q", "--shared", cwd=box.project)
    done = box.inside("sh", "-ec", "echo x > x; git add x; git -c user.name=a -c user.email=a@b commit -qm x")
    assert done.returncode == 0, done.stderr
