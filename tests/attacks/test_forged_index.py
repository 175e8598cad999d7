"""An index that git did not write: `git restore .` would write wherever its names lead, and commits have its trees."""

import os
from pathlib import Path

import pytest

from attacks.conftest import said
from conftest import Account, Box, git, make_repository

pytestmark = pytest.mark.req("INST-02")

# Adds entries to the index of the repository around it, in the version that is asked for.
FORGE = r"""
import hashlib, struct, subprocess, sys
shape, *names = sys.argv[1:]
version = shape[0]
def git(*words, data=b""):
    return subprocess.run(("git", *words), input=data, stdout=subprocess.PIPE, check=True).stdout.decode()
evil = git("hash-object", "-w", "--stdin", data=b"#!/bin/sh\ntouch ~/ran\n").strip()
rows = [line.replace("\t", " ").split(" ", 3) for line in git("ls-files", "-s").splitlines()]
rows = [(name.encode(), one, int(mode, 8)) for mode, one, _, name in rows]
rows = [(name.encode(), evil, 0o100755) for name in names] + rows
data, last = b"DIRC" + struct.pack(">2I", int(version), len(rows)), b""
for name, one, mode in rows:
    entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0) + bytes.fromhex(one)
    entry += struct.pack(">H", 0xfff if shape == "2, no length" and not last else len(name))
    if version == "4":
        entry += bytes([5 if shape == "4, after nothing" and not last else len(last)]) + name + b"\0"
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


SHAPES = ("2", "4", "2, no length", "4, after nothing")  # git asks less of the first entry than it writes


@pytest.mark.parametrize("version", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_it_is_taken_away(box: Box, account: Account, repository: Path, name: str, version: str) -> None:
    heard = forge(box, version, name)
    assert "taken out of git's directory" in heard
    assert ".git/index" in heard
    assert not (repository / ".git/index").exists()
    account.run("git", "restore", ".", cwd=repository)
    assert (account.home / ".bashrc").read_text() == "mine\n"


@pytest.mark.parametrize("shape", SHAPES)
def test_git_reads_it(account: Account, repository: Path, shape: str) -> None:
    account.run("python3", str(account.home / "forge.py"), shape, NAMES[1], cwd=repository)
    assert NAMES[1] in account.run("git", "ls-files", cwd=repository).stdout


def test_symlink_to_one_is_taken_away(box: Box, account: Account, repository: Path) -> None:
    script = "python3 /forge.py 2 ../../.bashrc; mkdir docs; mv .git/index docs; ln -s ../docs/index .git/index"
    mounted = ("--mount-ro", f"{account.home}/forge.py:/forge.py")
    assert ".git/index" in said(box.inside("sh", "-c", script, options=mounted))
    account.run("git", "restore", ".", cwd=repository)
    assert (account.home / ".bashrc").read_text() == "mine\n"


# Puts other directories into what git keeps to make no tree again of what has not changed.
TREES = r"""
import hashlib, subprocess
def git(*words, data=""):
    return subprocess.run(("git", *words), input=data, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
git("reset", "-q", "--hard")
tree = git("mktree", data="100644 blob " + git("hash-object", "-w", "--stdin", data="on: evil") + "\tci.yml\n")
outer = git("mktree", data=f"040000 tree {tree}\tworkflows\n")
index = open(".git/index", "rb").read()[:-20]
for old, new in ((".github/workflows", tree), (".github", outer)):
    index = index.replace(bytes.fromhex(git("rev-parse", f"HEAD:{old}")), bytes.fromhex(new))
open(".git/index", "wb").write(index + hashlib.sha1(index).digest())
"""


@pytest.mark.parametrize("where", ["box", "host"])
def test_trees_that_nobody_staged_are_not_committed(box: Box, account: Account, repository: Path, where: str) -> None:
    os.utime(account.write(repository / ".github/workflows/ci.yml", "on: push\n"), (1e9, 1e9))  # or git adds it again
    for words in ("add -A", "commit -q -m ci"):
        git(account, repository, *words.split())
    if where == "host":  # as if claudebox had been killed before it could look
        account.run("python3", "-c", TREES, cwd=repository)
        assert box.inside("true").returncode == 125
    else:
        assert ".git/index" in said(box.inside("python3", "-c", TREES))
        assert not (repository / ".git/index").exists()
        git(account, repository, "reset", "-q")
    account.write(repository / "file", "y\n")
    git(account, repository, "commit", "-q", "-a", "-m", "mine")
    carried = account.run("git", "show", "HEAD:.github/workflows/ci.yml", cwd=repository).stdout
    assert carried == ("on: evil" if where == "host" else "on: push\n")


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


# Each leaves an index of another kind, with all that git writes down in it.
HONEST = """
git commit -q -m x; mv .gitignore d; git add -N d
git update-index --untracked-cache --skip-worktree ..x/y; git config index.threads 2; git rm -q a..
git sparse-checkout set --cone --sparse-index a.git
git config index.skipHash true; git update-index --index-version 4; git commit -q --allow-empty -m y
git checkout -q -b side; echo 1 > file; git commit -q -a -m 1; git checkout -q -; echo 2 > file
git commit -q -a -m 2; ! git merge -q side
git checkout -q --ours file; git add file; git commit -q -m 3
rm -rf .git; git init -q --object-format=sha256; git add -A; git commit -q -m z
"""


def test_what_git_writes_is_no_forgery(box: Box, account: Account, repository: Path) -> None:
    account.run("sh", "-c", "mkdir -p a.git ..x; touch a.git/x ..x/y .gitignore a..; git add -A", cwd=repository)
    export = "export " + " ".join(f"GIT_{who}_NAME=x GIT_{who}_EMAIL=x" for who in ("AUTHOR", "COMMITTER"))
    for line in HONEST.strip().splitlines():
        made = account.run("sh", "-ec", f"{export}; {line}", cwd=repository)
        assert made.returncode == 0, (line, made.stderr)
        assert box.inside("true").returncode == 0, line


REPLACE = """
import os, subprocess, sys, zlib
name = subprocess.check_output(("git", "rev-parse", "side:.envrc"), text=True).strip()
path = f".git/objects/{name[:2]}/{name[2:]}"
os.unlink(path)
text = b"echo ran"
open(path, "wb").write(zlib.compress(b"blob %d\\0" % len(text) + text))
"""


def test_object_that_was_replaced_is_taken_away(box: Box, account: Account, repository: Path) -> None:
    """Git on the host would check it out under the name of a commit that the user knows."""
    git(account, repository, "checkout", "-q", "-b", "side")
    account.write(repository / ".envrc", "export A=1\n")
    git(account, repository, "add", ".envrc")
    git(account, repository, "commit", "-q", "-m", "mine")
    git(account, repository, "checkout", "-q", "-")
    heard = said(box.inside("python3", "-c", REPLACE))
    assert "its content is not what its name says" in heard
    account.run("git", "checkout", "-q", "side", cwd=repository)
    assert not (repository / ".envrc").exists()
    script = "seq 99 > new; git add new; git -c user.name=x -c user.email=x commit -q -m x"
    assert "objects" not in said(box.inside("sh", "-c", script))
