"""An index with names that git never makes: `git restore .` on the host would write wherever they lead."""

from pathlib import Path

import pytest

from attacks.conftest import said
from conftest import Account, Box, git, make_repository

pytestmark = pytest.mark.req("INST-02")

# Adds entries to the index of the repository around it, in the version that is asked for.
FORGE = r"""
import hashlib, struct, subprocess, sys
version, *names = sys.argv[1:]
def git(*words, data=b""):
    return subprocess.run(("git", *words), input=data, stdout=subprocess.PIPE, check=True).stdout.decode()
evil = git("hash-object", "-w", "--stdin", data=b"#!/bin/sh\ntouch ~/ran\n").strip()
rows = [line.replace("\t", " ").split(" ", 3) for line in git("ls-files", "-s").splitlines()]
rows = [(name.encode(), one, int(mode, 8)) for mode, one, _, name in rows]
rows = sorted(rows + [(name.encode(), evil, 0o100755) for name in names])
data, last = b"DIRC" + struct.pack(">2I", int(version), len(rows)), b""
for name, one, mode in rows:
    entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0) + bytes.fromhex(one) + struct.pack(">H", len(name))
    if version == "4":
        entry += bytes([len(last)]) + name + b"\0"
    else:
        entry += name
        entry += b"\0" * (8 - len(entry) % 8)
    data, last = data + entry, name
open(git("rev-parse", "--git-path", "index").strip(), "wb").write(data + hashlib.sha1(data).digest())
"""
NAMES = (".git/hooks/post-checkout", "../../.bashrc", "a/.GIT/hooks/x", "a/../../x", "./x", "git~1/hooks/x", "a//x")


@pytest.fixture
def repository(account: Account, project: Path) -> Path:
    account.write(account.home / ".bashrc", "mine\n")
    account.write(account.home / "forge.py", FORGE)
    account.write(project / "file", "x\n")
    return make_repository(account, project)


def forge(box: Box, *words: str, where: str = ".") -> str:
    script = f'cd {where} && python3 /forge.py "$@"'
    mounted = ("--mount-ro", f"{box.account.home}/forge.py:/forge.py")
    return said(box.inside("sh", "-c", script, "-", *words, options=mounted))


def test_git_would_obey_it(account: Account, repository: Path) -> None:
    account.run("python3", str(account.home / "forge.py"), "2", NAMES[0], NAMES[1], cwd=repository)
    account.run("git", "restore", ".", cwd=repository)
    assert (repository / ".git/hooks/post-checkout").exists() or (account.home / ".bashrc").read_text() != "mine\n"


@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize("name", NAMES)
def test_it_is_taken_away(box: Box, account: Account, repository: Path, name: str, version: str) -> None:
    heard = forge(box, version, name)
    assert "taken out of git's directory" in heard
    assert ".git/index" in heard
    assert not (repository / ".git/index").exists()
    account.run("git", "restore", ".", cwd=repository)
    assert (account.home / ".bashrc").read_text() == "mine\n"


@pytest.mark.parametrize("make", ["git init -q new", "git worktree add -q new"])
def test_index_that_is_new_is_looked_at(box: Box, repository: Path, make: str) -> None:
    box.sh(f"{make}; cd new; git -c user.name=x -c user.email=x commit -q --allow-empty -m x")
    assert "index" in forge(box, "2", NAMES[0], where="new")


def test_no_box_starts_with_it(box: Box, account: Account, repository: Path) -> None:
    account.run("python3", str(account.home / "forge.py"), "2", NAMES[0], cwd=repository)
    done = box.inside("true")
    assert done.returncode == 125
    assert "index" in done.stderr


def test_ordinary_names_are_no_forgery(box: Box, account: Account, repository: Path) -> None:
    script = "mkdir -p a.git ..x .gitx; touch a.git/x ..x/y .gitx/z .gitignore a..; git add -A"
    assert "index" not in said(box.inside("sh", "-c", script))
    git(account, repository, "update-index", "--index-version", "4")
    assert said(box.inside("true")) == ""
