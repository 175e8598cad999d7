"""Landing on a file system that is not that of the state, and on one that is full; a state whose disk is full."""

import contextlib
import os
import subprocess
from collections.abc import Iterator

import pytest

from conftest import Account, Box
from unit.overlay.world import picture

pytestmark = [pytest.mark.req("LAND-01"), pytest.mark.root, pytest.mark.attributes]


@pytest.fixture
def small(account: Account, box: Box) -> Iterator[Box]:
    """A box whose project is on a small file system of its own."""
    project = account.home / "small"
    project.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=755", "small", project], check=True)
    try:
        os.chown(project, account.uid, account.gid)
        account.write(project / "old/file", "old\n")
        account.write(project / "kept", "kept\n")
        yield Box(account, project)
    finally:
        subprocess.run(["umount", "-l", project], check=True)


def test_lands_across_file_systems(small: Box) -> None:
    small.sh("echo new > kept; rm -r old; mkdir -p a/b; echo x > a/b/c", options=("--review", "--land", "all"))
    found = {name: content for name, (_, content) in picture(small.project).items() if content}
    assert found == {"kept": "new\n", "a/b/c": "x\n"}
    assert sorted(os.listdir(small.project)) == ["a", "kept"]


def test_full_disk_lands_nothing(small: Box) -> None:
    before = picture(small.project)
    script = "echo new > kept; rm -r old; head -c 4M /dev/urandom > z-big"
    done = small.inside("sh", "-c", script, options=("--review", "--land", "all"))
    assert "nothing has landed: z-big: No space left on device" in " ".join(done.stderr.split())
    assert picture(small.project) == before
    assert "1 added, 1 changed, 1 deleted" in small.claudebox("--review", "list").stdout


def test_directory_without_permission_lands_nothing(small: Box, account: Account) -> None:
    small.sh("echo new > kept; echo x > old/new", options=("--review",))
    before = picture(small.project)
    if account.is_root:
        subprocess.run(["mount", "-o", "remount,ro", small.project], check=True)
    else:
        os.chmod(small.project, 0o555)
    done = small.claudebox("--review", "land", "--land", "all")
    assert "nothing has landed" in done.stderr or (account.is_root and "Read-only file system" in done.stderr)
    assert picture(small.project) == before
    if account.is_root:
        subprocess.run(["mount", "-o", "remount,rw", small.project], check=True)
    else:
        os.chmod(small.project, 0o755)
    assert small.claudebox("--review", "land", "--land", "all").returncode == 0
    assert (small.project / "old/new").exists()


@pytest.fixture
def cramped(account: Account, box: Box) -> Iterator[Box]:
    """A box whose state is on a small file system of its own."""
    state = account.home / ".claudebox"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "small", state], check=True)
    try:
        os.chown(state, account.uid, account.gid)
        account.write(box.project / "kept", "kept\n")
        account.write(box.project / ".github/workflows/ci.yml", "old\n")
        yield box
    finally:
        subprocess.run(["umount", "-l", state], check=True)


def test_layer_that_fills_the_disk_of_the_state_is_kept(cramped: Box) -> None:
    """The program in the box is told; what it has written before is there, and nothing has reached the project."""
    before = picture(cramped.project)
    script = "echo new > kept; echo x > a; head -c 8M /dev/zero > big"
    done = cramped.inside("sh", "-c", script, options=("--review",))
    assert "No space left on device" in done.stderr
    assert "kept as review 1" in done.stderr
    assert "Traceback" not in done.stderr
    assert picture(cramped.project) == before
    assert "2 added, 1 changed" in cramped.claudebox("--review", "list").stdout


def test_state_whose_disk_is_full_lands_nothing(cramped: Box, account: Account) -> None:
    cramped.sh("echo new > kept; for i in $(seq 300); do echo x > $i; done", options=("--review",))
    before = picture(cramped.project)
    filler = account.home / ".claudebox/filler"
    with filler.open("wb", 0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    done = cramped.claudebox("--review", "land", "--land", "all")
    assert done.returncode == 125
    assert "No space left on device" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert picture(cramped.project) == before
    # Of an ordinary box, too: it does not start without its layers.
    refused = cramped.inside("sh", "-c", "echo x > .github/workflows/ci.yml; echo started")
    assert "Traceback" not in refused.stderr
    assert (cramped.project / ".github/workflows/ci.yml").read_text() == "old\n"
    filler.unlink()
    assert cramped.claudebox("--review", "land", "--land", "all").returncode == 0
    assert (cramped.project / "kept").read_text() == "new\n"
    assert (cramped.project / "300").read_text() == "x\n"


def test_commits_wait_until_the_disk_of_the_state_has_room(cramped: Box, account: Account) -> None:
    as_somebody = ("-c", "user.name=A", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "-A"), (*as_somebody, "commit", "-qm", "1")):
        assert account.run("git", *words, cwd=cramped.project).returncode == 0
    commit = ("git", *as_somebody, "commit", "-q", "--allow-empty", "-m", "two")
    assert cramped.inside(*commit, options=("--review",)).returncode == 0
    filler = account.home / ".claudebox/filler"
    with filler.open("wb", 0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    done = cramped.claudebox("--review", "land", "--land", "all")
    assert "the commits stay in the layer" in done.stderr, done.stderr
    assert "No space left on device" in " ".join(done.stderr.split())
    assert not list(account.home.glob(".claudebox/instances/*/layers/*/o*")), "something was left in the way"
    filler.unlink()
    assert "1 commit further" in cramped.claudebox("--review", "land", "--land", "all").stderr
