"""Files that make whoever starts them somebody else: useless in the box, wherever they come from."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from conftest import Account, Box

pytestmark = [
    pytest.mark.root_differs("a program of root makes root nobody else"),
    pytest.mark.req("SEC-02"),
    pytest.mark.root,  # nobody else can make such files
]

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
def test_setuid_file_changes_nobody(box: Box, account: Account, other: int, mode: int, option: str) -> None:
    program = str(copied("id", box.project, other, mode))
    outside, inside = account.run(program, option).stdout, box.sh(f"{program} {option}")
    own = 1000 if account.is_root else account.uid if option == "-u" else account.gid
    assert (outside, inside) == (f"{other}\n", f"{own}\n")


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
