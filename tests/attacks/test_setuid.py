"""Files that make whoever starts them somebody else: useless in the box, wherever they come from."""

import os
import shutil
import stat
import struct
from pathlib import Path

import pytest

from attacks.unprotected import FILTER, without
from conftest import Account, Box

pytestmark = [pytest.mark.req("SEC-02"), pytest.mark.root_differs("the file would be root's")]

NOBODY = 65534
READ_EVERYTHING = 1 << 2  # CAP_DAC_READ_SEARCH
EFFECTIVE_AT_ONCE = 0x02000001


def copied(program: str, directory: Path, owner: int, mode: int) -> Path:
    """Somewhere that the box shows, too."""
    path = directory / program
    shutil.copy(os.path.realpath(shutil.which(program) or program), path)
    os.chown(path, owner, owner)
    path.chmod(mode)
    return path


@pytest.fixture
def other(account: Account) -> int:
    """Somebody whom the account is not."""
    return NOBODY if account.is_root else 0


@pytest.mark.parametrize(("mode", "option"), [(0o4755, "-u"), (0o2755, "-g")])
@pytest.mark.root  # nobody else can make such files
def test_setuid_file_changes_nobody(box: Box, account: Account, other: int, mode: int, option: str) -> None:
    program = str(copied("id", box.project, other, mode))
    outside, inside = account.run(program, option).stdout, box.sh(f"{program} {option}")
    own = 1000 if account.is_root else account.uid if option == "-u" else account.gid
    assert (outside, inside) == (f"{other}\n", f"{own}\n")


@pytest.mark.root  # nobody else can make such files
def test_capabilities_of_a_file_are_not_gained(box: Box, account: Account) -> None:
    program = str(copied("grep", box.project, 0, 0o755))
    capabilities = struct.pack("<5I", EFFECTIVE_AT_ONCE, READ_EVERYTHING, 0, 0, 0)
    os.setxattr(program, "security.capability", capabilities)
    look = (program, "^CapEff", "/proc/self/status")
    outside = int(account.run(*look).stdout.split()[1], 16)
    inside = box.inside(*look).stdout
    assert outside & READ_EVERYTHING
    assert inside in ("", f"CapEff:\t{0:016x}\n")  # not even started, or started with nothing


def test_programs_of_the_system_that_are_setuid_do_nothing(box: Box, account: Account) -> None:
    found = account.run("find", "/usr/bin", "-perm", "-4000", "-name", "su").stdout.split()
    assert found == ["/usr/bin/su"]
    script = "su -c 'id -u' 2>/dev/null; grep -h ^NoNewPrivs /proc/self/status"
    assert box.sh(script, input="\n").split() == ["NoNewPrivs:", "1"]


# The agent leaves a program in the project that makes whoever starts it the user: any other account of the host.


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
    return {path.name for path in project.rglob("*") if path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)}


def test_no_way_makes_one(box: Box) -> None:
    for mode in ("4755", "2755", "6755"):
        box.account.write(box.project / mode / "ways.py", WAYS)
    box.sh("for mode in 4755 2755 6755; do (cd $mode; python3 ways.py $mode); done")
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
