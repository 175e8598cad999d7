"""The agent makes a file unreadable that decides what is held, so that the next box starts without the protection."""

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Account, Box, make_repository

pytestmark = pytest.mark.req("GUARD-01")

LEASE = """
import fcntl, os, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
time.sleep(100)
"""
# What is done to the repository, what it is about, and the command that mends it.
SCENES = {
    "mode": ("chmod 000 .git/config", ".git/config", "chmod u+rwX"),
    "loop": ("rm .git/config; ln -s config .git/config", ".git/config", "rm "),
    "fifo": ("rm .git/config; mkfifo .git/config", ".git/config", "mv "),
    "directory": ("rm .git/config; mkdir .git/config", ".git/config", "mv "),
    "not searched": ("mkdir -p .git/modules/a; chmod 444 .git/modules", ".git/modules", "chmod u+rwX"),
    "pointer": ("mkdir sub; echo gitdir: ../.git > sub/.git; chmod 000 sub/.git", "sub/.git", "chmod u+rwX"),
    "place": ("mkdir sub; touch sub/.envrc; chmod 444 sub", "sub/.envrc", "chmod u+rwX"),
}


@pytest.fixture
def repository(account: Account, project: Path) -> Path:
    return make_repository(account, project)


@pytest.mark.parametrize("scene", SCENES)
def test_box_does_not_start(box: Box, account: Account, repository: Path, scene: str) -> None:
    script, path, mends = SCENES[scene]
    account.run("sh", "-c", script, cwd=repository)
    done = box.inside("touch", "started")
    message = " ".join(done.stderr.split())
    if account.is_root and "chmod" in script:
        assert done.returncode == 0  # root reads everything
        return
    assert done.returncode == 125
    assert f"{repository}/{path}" in message
    assert f"hint: {mends}" in message
    assert not (repository / "started").exists()


def test_box_does_not_start_beside_a_lease(box: Box, account: Account, repository: Path) -> None:
    """The open does not wait: an agent could have the start take 45 seconds, or give up and see nothing."""
    words = account.becoming(sys.executable, "-c", LEASE, str(repository / ".git/config"))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        done = box.inside("touch", "started")
        holder.kill()
    assert done.returncode == 125
    assert "has a lease on it" in " ".join(done.stderr.split())
    assert not (repository / "started").exists()
