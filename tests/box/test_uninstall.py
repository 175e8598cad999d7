"""`--uninstall`: what claudebox keeps is gone afterwards, and nothing else."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudebox.state import State
from conftest import CLAUDEBOX, Account, git, make_repository
from patience import comes_true
from running.needs import needed
from terminal.pseudoterminal import PLAIN, Terminal

VICTIM = "precious"


@pytest.fixture
def state(user: Account) -> Path:
    """What claudebox keeps for somebody, with traps that an agent left in the state of its project."""
    kept = user.home / ".claudebox"
    user.write(kept / "config.toml", 'network = "inet"\n')
    user.write(kept / "profiles/aws.toml", "")
    user.write(kept / "decisions", "")
    claude = kept / "instances/0123456789abcdef/claude"
    user.write(claude / "projects/conversation.jsonl", "x" * 5000)
    user.write(kept / "instances/0123456789abcdef/project", f"{user.home}/shop\n")
    user.write(user.home / "src/file", VICTIM)
    (claude / "directory").symlink_to(user.home / "src")
    (claude / "file").symlink_to(user.home / "src/file")
    (kept / "instances/fedcba9876543210").symlink_to(user.home / "src")
    os.link(user.home / "src/file", claude / "hard-link")
    locked = user.write(claude / "locked/deep/file").parent.parent
    user.own(kept)
    (locked / "deep").chmod(0)
    locked.chmod(0)
    return kept


def survives(user: Account) -> bool:
    return (user.home / "src/file").read_text() == VICTIM


@pytest.mark.req("STATE-01")
def test_what_is_kept_is_listed_and_removed(user: Account, state: Path) -> None:
    done = user.run(CLAUDEBOX, "--uninstall", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.sub(r" +\d+[BK]\+? ", " … ", done.stdout).splitlines()[:6] == [
        f"claudebox keeps, in {state}:",
        "last use    size  project",
        f"today …  {user.home}/shop (gone)",
        " …  your own: config.toml, profiles",
        " …  what claudebox remembers besides: decisions",
        "To remove the program itself: rm -r " + CLAUDEBOX.removesuffix("/claudebox"),
    ]
    assert (state.exists(), survives(user)) == (False, True)
    again = user.run(CLAUDEBOX, "--uninstall", "--yes")
    assert (again.returncode, again.stdout.partition("\n")[0]) == (0, f"claudebox keeps nothing in {state}.")


@pytest.mark.parametrize(("answer", "is_removed"), [("y", True), ("", False), ("n", False)])
def test_question_comes_first(user: Account, state: Path, answer: str, is_removed: bool) -> None:
    terminal = Terminal(user, (CLAUDEBOX, "--uninstall"), cwd=user.home, env=PLAIN)
    terminal.answer(r"Remove all of it\? \[y/N\] ", f"{answer}\n")
    assert (terminal.wait(), state.exists()) == (0 if is_removed else 125, not is_removed)
    terminal.close()


def test_nothing_is_removed_without_a_terminal_and_a_yes(user: Account, state: Path) -> None:
    done = user.run(CLAUDEBOX, "--uninstall")
    assert (done.returncode, state.exists()) == (125, True)


def test_nothing_is_removed_through_a_symlink(user: Account, state: Path) -> None:
    elsewhere = state.rename(user.home / "elsewhere")
    state.symlink_to(elsewhere)
    done = user.run(CLAUDEBOX, "--uninstall", "--yes")
    assert (done.returncode, "is a symlink to" in done.stderr) == (125, True)
    assert (elsewhere / "config.toml").exists()


@pytest.mark.root
def test_what_belongs_to_somebody_else_stays(user: Account, state: Path) -> None:
    os.chown(state, 0, 0)
    state.chmod(0o777)
    done = user.run(CLAUDEBOX, "--uninstall", "--yes")
    assert (done.returncode, "not a directory of yours" in done.stderr) == (125, True)
    assert (state / "config.toml").exists()


@pytest.fixture
@needed("box")
def running(user: Account) -> Iterator[subprocess.Popen[str]]:
    """A box with what claude gets in it, which waits for its standard input to end."""
    claude = user.write(user.home / "bin/claude", "#!/bin/sh\ntouch started\nread line\n", mode=0o755)
    project = user.write(user.home / "shop/README.md").parent
    words = (CLAUDEBOX, "--yes", "--auth", "none")
    environ = {"CLAUDEBOX_CLAUDE": str(claude)}
    with user.running(*words, cwd=project, env=environ, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert comes_true(lambda: (project / "started").exists() or started.poll() is not None)
        assert started.poll() is None, started.communicate()
        yield started


@pytest.mark.git
def test_what_removes_commits_of_reviews_is_said(user: Account, state: Path) -> None:
    """They stay: perhaps nothing else names them."""
    assert "update-ref" not in user.run(CLAUDEBOX, "--uninstall", "--yes").stdout
    user.write(state / "instances/0123456789abcdef/layers/last", "2")
    user.own(state)
    (command,) = (
        line for line in user.run(CLAUDEBOX, "--uninstall", "--yes").stdout.splitlines() if "update-ref" in line
    )
    loose, packed = (
        make_repository(user, user.write(user.home / name / "file").parent) for name in ("loose", "packed")
    )
    git(user, loose, "update-ref", "refs/claudebox/1/main", "HEAD")
    git(user, loose, "symbolic-ref", "refs/claudebox/1/link", "refs/heads/main")
    git(user, packed, "update-ref", "refs/claudebox/2/a/b", "HEAD")
    git(user, packed, "pack-refs", "--all")
    for project in (loose, packed):
        assert user.run("sh", "-c", command, cwd=project).returncode == 0
        assert git(user, project, "for-each-ref", "refs/claudebox") == ""
        assert "refs/heads/main" in git(user, project, "for-each-ref")


@pytest.mark.root
def test_nothing_is_removed_while_a_box_runs(user: Account, running: subprocess.Popen[str]) -> None:
    state = State(str(user.home))
    refused = user.run(CLAUDEBOX, "--uninstall", "--yes")
    assert (refused.returncode, refused.stderr.startswith("error: a box is running in ")) == (125, True)
    running.communicate("the end\n")
    assert user.run(CLAUDEBOX, "--uninstall", "--yes").returncode == 0
    assert not Path(state.directory).exists()
