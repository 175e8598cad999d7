"""What the agent leaves where nobody looks at a start: below node_modules, .venv, target and their like."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conftest import Account, Box
from patience import comes_true

pytestmark = pytest.mark.req("INST-02")

TITLE = "left in the project, and this host may run it"
EVIL = "config core.fsmonitor $PWD/evil"


@pytest.fixture
def project_with_program(account: Account, project: Path) -> Path:
    account.write(project / "evil", f"#!/bin/sh\necho ran > {account.home}/ran\n", mode=0o755)
    return project


def said(done: subprocess.CompletedProcess[str]) -> str:
    _, found, after = done.stderr.partition("claudebox: ")
    return " ".join((found + after).split())


PLACES = [".venv", "target", "node_modules/x", ".venv/src/package", "a/node_modules/b/_build", ".jj/x"]


@pytest.mark.parametrize("place", PLACES)
def test_repository_that_runs_something_is_named(
    box: Box, account: Account, project_with_program: Path, place: str
) -> None:
    heard = said(box.inside("sh", "-c", f"mkdir -p {place}; git init -q {place}; git -C {place} {EVIL}"))
    assert TITLE in heard
    assert f"new {place}/.git (a repository: git obeys it) core.fsmonitor = " in heard
    account.run("git", "status", cwd=project_with_program / place)
    assert (account.home / "ran").exists(), "the attack is real"
    assert comes_true(lambda: said(box.inside("true")) == ""), "once is enough"


def test_repository_that_is_prepared_elsewhere_is_named(box: Box, project_with_program: Path) -> None:
    prepare = f"mkdir -p target/x; git init -q target/x; git -C target/x {EVIL}; mv target/x/.git target/x/later"
    done = box.inside("sh", "-c", f"{prepare}; rm target/x/later/HEAD")
    assert said(done) == "", "git obeys none of it"
    heard = said(box.inside("sh", "-c", "cd target/x; echo ref: refs/heads/x > later/HEAD; mv later .git"))
    assert "new target/x/.git (a repository: git obeys it) core.fsmonitor = " in heard


def test_changed_repository_is_named_again(box: Box, account: Account, project_with_program: Path) -> None:
    account.run("git", "init", "-q", "node_modules/x", cwd=project_with_program)
    assert said(box.inside("true")) == ""
    heard = said(box.inside("sh", "-c", f"git -C node_modules/x {EVIL}"))
    assert "new node_modules/x/.git" in heard


@pytest.mark.parametrize(
    "script",
    [
        "mkdir -p .mypy_cache; ln -s ~/.bashrc .mypy_cache/x.json",
        "mkdir -p node_modules/x; ln -s /etc/shadow node_modules/x/y",
        "mkdir -p .venv/bin; ln -s ~/.bashrc .venv/bin/python; touch .venv/pyvenv.cfg",
    ],
)
def test_symlink_that_leaves_the_project_is_named(box: Box, project: Path, script: str) -> None:
    assert "(a symlink that leaves the project)" in said(box.inside("sh", "-c", script))


QUIET = (
    "mkdir -p .venv/src; git init -q .venv/src/package; git init -q --bare node_modules/.cache",
    "mkdir -p node_modules/.bin node_modules/x; ln -s ../x node_modules/.bin/x; ln -s ../../a node_modules/x/a",
    "python3 -m venv --without-pip .venv",
    "mkdir -p .venv/bin; touch .venv/pyvenv.cfg; ln -s $PWD/tools/python3.11 .venv/bin/python",
)


@pytest.mark.parametrize("script", QUIET)
def test_ordinary_installation_says_nothing(box: Box, account: Account, project: Path, script: str) -> None:
    account.write(project / "tools/python3.11", "#!/bin/sh\n", 0o755)
    done = box.inside("sh", "-ec", script)
    assert done.returncode == 0, done.stderr
    assert said(done) == ""


def test_program_for_the_group_is_named(box: Box, project: Path) -> None:
    """Where a group shares the project, the bit cannot be refused."""
    project.chmod(0o2775)
    heard = said(box.inside("sh", "-c", "mkdir -p x target; cp /bin/true x; cp /bin/true target; chmod g+s */true"))
    assert "x/true (makes whoever starts it you, or one of your group)" in heard
    assert "target/true (makes whoever starts it you, or one of your group)" in heard
