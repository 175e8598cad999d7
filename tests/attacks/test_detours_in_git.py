"""A symlink among git's own files makes the next git command on the host write the agent's text where it leads."""

import os
from pathlib import Path

import pytest

from attacks.conftest import TITLE
from conftest import AS_SOMEBODY, CLAUDEBOX, Account, Box, git, make_repository
from patience import comes_true

pytestmark = pytest.mark.req("INST-02")

# A reflog has the message of a commit, which the agent can prepare.
EVIL = "touch ~/ran"


@pytest.fixture
def repository(account: Account, project: Path) -> Path:
    make_repository(account, project)
    git(account, project, "branch", "side")
    account.write(account.home / ".bashrc", "mine\n")
    return project


def use_git(account: Account, repository: Path) -> None:
    account.write(repository / "new", "new\n")
    for words in (
        "status",
        "add -A",
        f"commit -q -m ;{EVIL}",
        "checkout -q side",
        "fetch -q . main",
        "reset -q main",
        "gc -q",
    ):
        account.run("git", *AS_SOMEBODY, *words.split(" ", 3), cwd=repository)


DETOURS = {
    "message": "ln -sf ~/.bashrc .git/COMMIT_EDITMSG",
    "fetched": "ln -sf ~/.bashrc .git/FETCH_HEAD",
    "log": "ln -sf ~/.bashrc .git/logs/HEAD",
    "log-of-a-branch": "ln -sf ~/.bashrc .git/logs/refs/heads/main",
    "directory": "rm -r .git/logs; mkdir d; ln -s ~/.bashrc d/HEAD; ln -s ../d .git/logs",
    "directory-of-the-same-name": "mv .git/logs .; ln -sf ~/.bashrc logs/HEAD; ln -s ../logs .git/logs",
    "inside-of-the-project": "rm .git/logs/HEAD; ln -s ../hooks/pre-commit .git/logs/HEAD",
}


@pytest.mark.parametrize("name", DETOURS)
def test_detour_is_taken_away(box: Box, account: Account, repository: Path, name: str) -> None:
    victim = account.home / ".bashrc"
    if name == "inside-of-the-project":
        victim = account.write(repository / ".git/hooks/pre-commit", "#!/bin/sh\nmine\n", 0o755)
    before = victim.read_text()
    done = box.inside("sh", "-c", DETOURS[name])
    assert "taken out of git's directory" in done.stderr
    assert "git would write where it leads" in " ".join(done.stderr.split())
    use_git(account, repository)
    assert victim.read_text() == before
    assert box.inside("true").returncode == 0, "nothing is left that keeps a box from starting"


@pytest.mark.parametrize("name", DETOURS)
def test_attack_is_real_and_nothing_starts_meanwhile(box: Box, account: Account, repository: Path, name: str) -> None:
    """As if claudebox had been killed before it could look."""
    victim = account.home / ".bashrc"
    if name == "inside-of-the-project":
        victim = account.write(repository / ".git/hooks/pre-commit", "#!/bin/sh\nmine\n", 0o755)
    before = victim.read_bytes()
    account.run("sh", "-c", DETOURS[name], cwd=repository)
    refused = box.inside("true")
    assert refused.returncode == 125
    assert "on this host it would write where that leads" in " ".join(refused.stderr.split())
    use_git(account, repository)
    assert victim.read_bytes() != before


def test_hint_mends_it(box: Box, account: Account, repository: Path) -> None:
    account.run("sh", "-c", DETOURS["log"], cwd=repository)
    hint = box.inside("true").stderr.partition("hint: ")[2].splitlines()[0]
    account.run("sh", "-c", hint, cwd=repository)
    assert box.inside("true").returncode == 0


# What people and tools have, which git never writes through, or which leads to what git writes anyway.
HONEST = """
mkdir tools; echo > tools/pre-commit; ln -s ../../tools/pre-commit .git/hooks/pre-commit
echo x > ignored; rm -f .git/info/exclude; ln -s ../../ignored .git/info/exclude
mv .git/config shared; ln -s ../shared .git/config
git init -q --bare other.git; rm -rf .git/rr-cache; mkdir other.git/rr-cache; ln -s ../other.git/rr-cache .git/rr-cache
git worktree add -q tree; mkdir .git/annex; ln -s ../../annex .git/worktrees/tree/annex
git symbolic-ref HEAD; rm .git/HEAD; ln -s refs/heads/main .git/HEAD
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(".git/fsmonitor--daemon.ipc")'
"""


# Merges that a box leaves to the user, with what it had not committed.
UNDER_WAY = """
git checkout -qb other; echo other > file; git add file; git commit -qm other; git checkout -q -
echo ours > file; git add file; git commit -qm ours; git notes --ref=other add -m other; git notes add -m ours
echo precious >> README.md; ! git merge -q --autostash other; ! git notes merge -q refs/notes/other
"""


def test_merge_under_way_stays(box: Box, account: Account, repository: Path) -> None:
    done = box.inside("sh", "-ec", UNDER_WAY)
    assert (done.returncode, "taken out" in done.stderr) == (0, False), done.stderr
    assert {"MERGE_AUTOSTASH", "NOTES_MERGE_REF"} <= {path.name for path in (repository / ".git").iterdir()}
    for words in ("checkout -q --ours file", "commit -qam merged", "notes merge --commit -q"):
        git(account, repository, *words.split())
    assert "precious" in (repository / "README.md").read_text()


def test_honest_ones_stop_nobody(box: Box, account: Account, repository: Path) -> None:
    made = account.run("sh", "-ec", HONEST, cwd=repository)
    assert made.returncode == 0, made.stderr
    done = box.inside("true")
    assert done.returncode == 0, done.stderr
    assert "taken out" not in done.stderr


def test_one_that_the_user_made_may_stay_but_not_turn(box: Box, account: Account, repository: Path) -> None:
    account.write(account.home / "logs/HEAD")
    account.run("sh", "-c", f"rm -rf .git/logs; ln -s {account.home}/logs .git/logs", cwd=repository)
    assert box.inside("true").returncode == 125
    opened = ("--writable", ".git/logs")
    done = box.inside("true", options=opened)
    assert (done.returncode, "taken out" in done.stderr) == (0, False)
    done = box.inside("sh", "-c", "rm .git/logs; ln -s /elsewhere .git/logs", options=opened)
    assert "taken out" in done.stderr


# Each makes a directory of git, and says where it is.
ELSEWHERE = {
    "inner/.git": "git init -q inner",
    "bare.git": "git init -q --bare bare.git",
    ".git/modules/x": "git init -q --bare .git/modules/x",
    ".git/modules/a/b/modules/c": "git init -q --bare .git/modules/a/b; git init -q --bare .git/modules/a/b/modules/c",
    ".git/worktrees/tree": "git worktree add -q tree",
    "hidden": "git init -q --bare hidden; mkdir x; ln -s ../hidden x/.git",
    "node_modules/g": "git init -q --bare node_modules/g; mkdir y; echo gitdir: ../node_modules/g > y/.git",
    "node_modules/y/.git": "git init -q node_modules/y",
    "common": "git init -q --bare common; git init -q z; echo ../../common > z/.git/commondir",
    ".git/objects/ab": "git init -q --bare .git/objects/ab; mkdir w; echo gitdir: ../.git/objects/ab > w/.git",
    ".git/objects/info": "true",
    ".git/refs/heads/objects/x": "mkdir -p .git/refs/heads/objects/x",
    ".git/lfs/tmp": "mkdir -p .git/lfs/tmp",
}


def test_every_directory_of_git_is_looked_at(box: Box, account: Account, repository: Path) -> None:
    done = box.inside(
        "sh", "-ec", "\n".join(f"{made}; ln -s /x {where}/COMMIT_EDITMSG" for where, made in ELSEWHERE.items())
    )
    assert done.returncode == 0, done.stderr
    assert "taken out of git's directory" in done.stderr
    assert [where for where in ELSEWHERE if not (repository / where).is_dir()] == []
    assert [where for where in ELSEWHERE if (repository / where / "COMMIT_EDITMSG").is_symlink()] == []


def test_fifo_is_taken_away(box: Box, repository: Path) -> None:
    """Git would wait for somebody who reads it, and tell them."""
    assert "taken out" in box.inside("sh", "-c", "cd .git; rm COMMIT_EDITMSG; mkfifo COMMIT_EDITMSG").stderr
    assert not (repository / ".git/COMMIT_EDITMSG").exists()


@pytest.mark.parametrize("mode", ["0300", "0100", "0555"])
def test_locked_directory_keeps_nothing(box: Box, account: Account, repository: Path, mode: str) -> None:
    """Git writes a file whose name it knows in a directory that cannot be listed, and one that cannot be written."""
    if account.is_root:
        return  # root can do both
    script = f"rm .git/logs/HEAD; ln -s ~/.bashrc .git/logs/HEAD; chmod {mode} .git/logs"
    assert "taken out" in box.inside("sh", "-c", f"{script}; [ {mode} = 0555 ] || chmod {mode} .git").stderr
    use_git(account, repository)
    assert (account.home / ".bashrc").read_text() == "mine\n"
    assert (repository / ".git/logs/refs").is_dir(), "nothing else was moved"


@pytest.mark.root_repeats("how much is looked at does not depend on who looks")
def test_many_are_taken_away(box: Box, account: Account, repository: Path) -> None:
    done = box.inside("sh", "-c", "for i in $(seq 500); do ln -s x .git/refs/heads/x$i; done; ln -sf x .git/logs/HEAD")
    assert "and 498 more below .git/" in " ".join(done.stderr.split())
    assert not (repository / ".git/logs/HEAD").is_symlink()
    assert box.inside("true").returncode == 0


def test_name_that_cannot_be_shown(box: Box, account: Account, repository: Path) -> None:
    box.inside("python3", "-c", r"import os; os.symlink('x', b'.git/a\xff\x1b[2J\n')")
    assert [name for name in os.listdir(os.fsencode(repository / ".git")) if name.startswith(b"a")] == []
    os.symlink("x", os.fsencode(repository) + b"/.git/a\xff\x1b[2J\n")
    refused = box.inside("true")
    assert (refused.returncode, "\x1b[2J" in refused.stderr) == (125, False)


def test_full_disk_keeps_nothing(box: Box, account: Account, repository: Path) -> None:
    """Where there is no quarantine, it is removed."""
    (account.home / ".claudebox").mkdir(mode=0o700)
    account.own(account.home / ".claudebox")
    box.inside("true")
    (state,) = (account.home / ".claudebox/instances").iterdir()
    account.write(state / "quarantine")
    assert "taken out" in box.inside("sh", "-c", DETOURS["log"]).stderr
    assert not (repository / ".git/logs/HEAD").is_symlink()


def test_nobody_listens(box: Box, account: Account, repository: Path) -> None:
    """The report goes to a pipe whose reader the agent made end."""
    script = f"{DETOURS['log']}; yes | head -c 1000000 >&2"
    words = f"{CLAUDEBOX} --yes --run sh -c '{script}' 2>&1 | head -c 1"
    account.run("sh", "-c", words, cwd=repository)
    assert comes_true(lambda: not (repository / ".git/logs/HEAD").is_symlink())


def test_what_was_taken_away_is_not_said_to_be_there(box: Box, account: Account, repository: Path) -> None:
    done = box.inside("sh", "-c", "git worktree add -q t; ln -s ~/.bashrc .git/worktrees/t/config.worktree")
    assert "taken out of git's directory" in done.stderr
    assert TITLE not in done.stderr
