"""A masked file is read-only in the box: no way to write, replace, move or delete it changes the user's file.

Where the files are revealed, every one of these ways does: they could do it here.
"""

import ctypes
import json
import os
import signal
import stat
import time
from pathlib import Path

import pytest

from conftest import Account, Box, git, keepers_of
from live import running

pytestmark = [pytest.mark.req("MASK-01"), pytest.mark.attributes]

CANARY = "cAnArY7x9"
ENV = f"# of the shop\nPORT=3000\nDB_PASSWORD={CANARY}\n"
# Each way has a directory with a masked file of its own, and a file beside it that is not masked.
ATTEMPTS = """
import ctypes, json, mmap, os, subprocess, sys

base, canary = sys.argv[1], "cAnArY" + "7x9"
libc = ctypes.CDLL(None, use_errno=True)

def write(path, how="w"):
    with open(path, how) as file: file.write("x=1\\n")
def by_name_only(path): write(f"/proc/self/fd/{os.open(path, os.O_PATH)}")
def by_reader(path): write(f"/proc/self/fd/{os.open(path, os.O_RDONLY)}")
def mapped(path):
    with open(path, "r+b") as file: mmap.mmap(file.fileno(), 0)[:2] = b"xx"
def exchanged(path):
    write(f"{path}.new")
    names = -100, f"{path}.new".encode(), -100, path.encode(), 2
    if libc.renameat2(*names): raise OSError(ctypes.get_errno(), "exchange")
def replaced(path):
    write(f"{path}.new")
    os.replace(f"{path}.new", path)
def hard_link(path):
    os.link(path, f"{path}.link")
    write(f"{path}.link")
def symlink(path):
    os.symlink(".env", f"{path}.soft")
    write(f"{path}.soft")
def program(words): return lambda path: subprocess.run(
    words.format(path=path, place=os.path.dirname(path)), shell=True, check=True, capture_output=True, timeout=60)

WAYS = {
    "write": write,
    "append": lambda path: write(path, "a"),
    "truncate": lambda path: os.truncate(path, 0),
    "by name only": by_name_only,
    "by reader": by_reader,
    "mapped": mapped,
    "by root": lambda path: write(f"/proc/self/root{os.path.abspath(path)}"),
    "replaced": replaced,
    "exchanged": exchanged,
    "renamed": lambda path: os.rename(path, f"{path}.away"),
    "unlink": os.unlink,
    "hard link": hard_link,
    "symlink": symlink,
    "mode": lambda path: os.chmod(path, 0o666),
    "times": lambda path: os.utime(path, (1, 1)),
    "sed": program("sed -i s/3000/4000/ '{path}'"),
    "cp": program("echo x >'{path}.x' && cp --remove-destination '{path}.x' '{path}'"),
    "install": program("echo x >'{path}.x' && install '{path}.x' '{path}'"),
    "dd": program("dd if=/dev/zero of='{path}' bs=1 count=4 conv=notrunc"),
    "git": program("git -C '{place}' init -q && git -C '{place}' clean -ffdxq && test ! -e '{path}'"),
    "unmount": program("umount -l '{path}'; unshare -Urm umount -l '{path}'; echo x >'{path}'"),
    "tree": program("rm -r '{place}'"),
    "parent": program("mv '{place}' '{place}.moved' && mkdir '{place}' && echo x >'{path}'"),
}
found = {}
for way, attempt in WAYS.items():
    path = f"{base}/{way}/.env"
    shown = open(path).read()
    try:
        attempt(path)
        found[way] = "done"
    except (OSError, subprocess.CalledProcessError):
        found[way] = "refused"
    for place in (path, f"{base}/{way}.moved/.env", f"{path}.away", f"{path}.link"):
        if os.path.exists(place) and canary in open(place).read(): found[way] += ", and seen"
    if os.path.exists(f"{base}/{way}.moved/.env"): path = f"{base}/{way}.moved/.env"
    if not os.path.exists(path) or open(path).read() != shown: found[way] += ", and changed"
print(json.dumps(found))
"""
WAYS = [line.split('"')[1] for line in ATTEMPTS.split("WAYS = {")[1].split("\n}")[0].splitlines() if '"' in line]


def plant(account: Account, base: Path) -> dict[str, Path]:
    found = {}
    for way in WAYS:
        found[way] = account.write(base / way / ".env", ENV)
        found[way].chmod(0o640)
        account.write(base / way / "beside", "x\n")
    return found


def state_of(path: Path) -> tuple[str, int, int, int, int]:
    status = path.lstat()
    return path.read_text(), stat.S_IMODE(status.st_mode), status.st_ino, status.st_nlink, status.st_mtime_ns


@pytest.mark.parametrize(
    ("base", "options"),
    [(".", ("--review", "off")), (".", ("--review", "on", "--land", "all")), (".github", ("--review", "guarded"))],
    ids=["direct", "review", "guarded"],
)
def test_no_way_changes_it(box: Box, account: Account, project: Path, base: str, options: tuple[str, ...]) -> None:
    planted = plant(account, project / base)
    before = {way: state_of(path) for way, path in planted.items()}
    done = box.inside("python3", "-c", ATTEMPTS, base, options=options)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == dict.fromkeys(WAYS, "refused")
    assert {way: state_of(path) for way, path in planted.items()} == before
    landed = box.claudebox("--review", "land", "--land", "all", "--yes")
    assert {way: state_of(path) for way, path in planted.items()} == before, landed.stderr
    assert not (project / base / "tree/beside").exists(), "the rest of what the box did is here"


@pytest.mark.parametrize("options", [("--review", "off"), ("--review", "on", "--land", "all")])
def test_every_way_would_change_it(box: Box, account: Account, project: Path, options: tuple[str, ...]) -> None:
    planted = plant(account, project)
    done = box.inside("python3", "-c", ATTEMPTS, ".", options=(*options, "--reveal", "."))
    assert all(outcome.startswith("done") for outcome in json.loads(done.stdout).values()), done.stdout
    assert [way for way, path in planted.items() if path.exists() and path.read_text() == ENV] == ["mode", "times"]


def test_user_is_told_that_it_is_read_only(box: Box, account: Account, project: Path) -> None:
    account.write(project / ".env", ENV)
    assert "(made-up values, read-only; the real ones with --reveal PATH)" in " ".join(
        box.claudebox("--audit", "--shell").stdout.split()
    )


@pytest.mark.parametrize("review", ["off", "on"])
def test_refusal_is_the_one_that_the_agent_was_told(box: Box, account: Account, project: Path, review: str) -> None:
    account.write(project / ".env", ENV)
    script = "echo X=1 >>.env; sed -i s/3000/4000/ .env; mv .env x; rm .env; chmod 600 .env; ln .env x; true"
    said = box.inside("sh", "-c", script, options=("--quiet", "--review", review)).stderr.splitlines()
    read_only, busy = "Read-only file system", "Device or resource busy"
    assert [line.rpartition(": ")[2] for line in said] == [
        read_only,
        busy,
        busy,
        busy,
        read_only,
        "Invalid cross-device link",
    ]


def test_decoy_is_not_committed_in_a_review(box: Box, account: Account, project: Path) -> None:
    account.write(project / ".env", ENV)
    git(account, project, "init", "-q")
    assert box.sh("touch new && git add -A && git ls-files", options=("--review", "on")) == "README.md\nnew\n"


@pytest.mark.parametrize("is_box", [True, False])
def test_exchanged_before_it_is_masked_again(box: Box, account: Account, project: Path, *, is_box: bool) -> None:
    """By a copy of its decoy, so that the user has made-up values. An editor that moves it away first is no box."""
    account.write(project / ".env", ENV)
    fake, real = account.write(project / "fake", ENV.replace(CANARY, "x")), project / ".env"
    with running(box, ".env") as inside:
        if is_box:
            _, hand = keepers_of(inside.process.pid)
            os.kill(hand, signal.SIGSTOP)
            inside.save(".env", f"{ENV}NEW=1\n")
            names = -100, os.fsencode(fake), -100, os.fsencode(real), 2
            assert ctypes.CDLL(None).renameat2(*names) == 0
            os.kill(hand, signal.SIGCONT)
        else:
            real.rename(project / ".env~")
            inside.save(".env", f"{ENV}NEW=1\n")
        time.sleep(0.5)
    said = ".env was replaced by the box, unless you did it: look into it"
    assert (said in inside.errors.read_text()) == is_box
