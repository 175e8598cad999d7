"""Layers, landing and what is guarded on the file systems that people have: each on a disk of its own."""

import fcntl
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Account, Box
from unit.overlay.world import picture

pytestmark = [
    pytest.mark.req("LAND-01"),
    pytest.mark.root,
    pytest.mark.disks,
    pytest.mark.exhaustive("the same on the file systems of other machines"),
]
LOOP_CONTROL, FREE_LOOP = "/dev/loop-control", 0x4C82
SIZE = 512 << 20  # xfs is never smaller than 300 MB; the file is sparse
MAKERS = {"ext4": ("mkfs.ext4", "-q"), "btrfs": ("mkfs.btrfs", "-q"), "xfs": ("mkfs.xfs", "-q")}
TRIES = 20  # another program may take the loop device first


def loop_device() -> str:
    """A block device that shows a file, which the tests' own /dev does not have by itself."""
    if not os.path.exists(LOOP_CONTROL):
        os.mknod(LOOP_CONTROL, stat.S_IFCHR | 0o600, os.makedev(10, 237))
    control = os.open(LOOP_CONTROL, os.O_RDWR)
    try:
        number = fcntl.ioctl(control, FREE_LOOP)
    finally:
        os.close(control)
    device = f"/dev/loop{number}"
    if not os.path.exists(device):
        os.mknod(device, stat.S_IFBLK | 0o600, os.makedev(7, number))
    return device


def is_known(kind: str) -> bool:
    """Whether the kernel has this file system, now that somebody has asked for it."""
    with open("/proc/filesystems") as file:
        return any(line.split()[-1] == kind for line in file)


def mount_disk(image: Path, kind: str, target: Path) -> bool:
    """Mount it. False if this kernel has no such file system, which is nothing to complain about."""
    for _ in range(TRIES):
        options = f"loop={loop_device()}"
        done = subprocess.run(["mount", "-t", kind, "-o", options, image, target], capture_output=True, check=False)
        if done.returncode == 0:
            return True
        if not is_known(kind):
            return False
    raise AssertionError(done.stderr)


@pytest.fixture
def disk(request: pytest.FixtureRequest, account: Account, tmp_path: Path) -> Iterator[Box | None]:
    """A box of somebody whose home is on such a disk; None if the kernel cannot have it."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(SIZE)
    subprocess.run([*MAKERS[request.param], image], check=True, capture_output=True)
    if not mount_disk(image, request.param, account.home):
        print(f"this kernel has no {request.param}")
        yield None
        return
    try:
        os.chown(account.home, account.uid, account.gid)
        project = account.home / "project"
        for name in ("kept", "old/file", "sub/deep/file", ".github/workflows/ci.yml"):
            account.write(project / name, "old\n")
        yield Box(account, project)
    finally:
        subprocess.run(["umount", "-l", account.home], check=True)


@pytest.mark.parametrize("disk", MAKERS, indirect=True)
def test_review_lands_on_it(disk: Box | None) -> None:
    if disk is None:
        return  # the kernel lacks it
    before = picture(disk.project)
    script = (
        "echo new > kept; rm -r old; mkdir -p a/b; echo x > a/b/c; ln -s kept link; chmod 700 a/b/c; rm -r sub; "
        "mkdir sub; echo other > sub/file; echo x > .github/workflows/ci.yml; truncate -s 1T sparse"
    )
    disk.sh(script, options=("--review",))
    assert picture(disk.project) == before
    assert disk.claudebox("--review", "land", "--land", "safe").returncode == 0
    assert (disk.project / "sparse").stat().st_blocks < 1000
    (disk.project / "sparse").unlink()
    after = {name: content for name, (_, content) in picture(disk.project).items() if content}
    assert after == {
        "kept": "new\n",
        "a/b/c": "x\n",
        "link": "kept",
        "sub/file": "other\n",
        ".github/workflows/ci.yml": "old\n",
    }
    assert stat.S_IMODE((disk.project / "a/b/c").stat().st_mode) == 0o700
    assert disk.claudebox("--review", "land", "--land", "all").returncode == 0
    assert (disk.project / ".github/workflows/ci.yml").read_text() == "x\n"
    assert "Nothing is kept" in disk.claudebox("--review", "list").stdout


@pytest.mark.parametrize("disk", MAKERS, indirect=True)
def test_guarded_directory_is_a_layer_on_it(disk: Box | None) -> None:
    if disk is None:
        return  # the kernel lacks it
    done = disk.inside("sh", "-c", "echo x > .github/workflows/ci.yml; echo y > .github/BUG.md; echo z > kept")
    assert (done.returncode, (disk.project / "kept").read_text()) == (0, "z\n"), done.stderr
    assert (disk.project / ".github/BUG.md").read_text() == "y\n"
    assert (disk.project / ".github/workflows/ci.yml").read_text() == "old\n"
    assert disk.claudebox("--review", "land", "--land", "all").returncode == 0
    assert (disk.project / ".github/workflows/ci.yml").read_text() == "x\n"
