"""`--uninstall`: what claudebox keeps is gone afterwards, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from claudebox.boxes import uses
from claudebox.state import State
from conftest import CLAUDEBOX, Account
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


def test_what_is_kept_is_listed_and_removed(user: Account, state: Path) -> None:
    done = user.run(CLAUDEBOX, "--uninstall", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.sub(r" +\d+[BK]\+? ", " … ", done.stdout).splitlines()[:4] == [
        f"claudebox keeps, in {state}:",
        " …  your own: config.toml, profiles",
        " …  1 project: conversations, caches, logins, what was agreed",
        "To remove the program itself: rm -r " + CLAUDEBOX.removesuffix("/claudebox"),
    ]
    assert (state.exists(), survives(user)) == (False, True)
    again = user.run(CLAUDEBOX, "--uninstall", "--yes")
    assert (again.returncode, again.stdout.partition("\n")[0]) == (0, f"claudebox keeps nothing in {state}.")


@pytest.mark.parametrize(("answer", "is_removed"), [("y", True), ("", False), ("n", False)])
def test_question_comes_first(user: Account, state: Path, answer: str, is_removed: bool) -> None:
    terminal = Terminal(user, (CLAUDEBOX, "--uninstall"), cwd=user.home, env=PLAIN)
    terminal.read_until(r"Remove all of it\? \[y/N\] ")
    terminal.type(f"{answer}\n")
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
def running(user: Account) -> subprocess.Popen[str]:
    """A box with what claude gets in it, which waits for its standard input to end."""
    claude = user.write(user.home / "bin/claude", "#!/bin/sh\ntouch started\nread line\n", mode=0o755)
    project = user.write(user.home / "shop/README.md").parent
    started = subprocess.Popen(
        user.becoming(CLAUDEBOX, "--yes", "--auth", "none", "--claude", str(claude)),
        cwd=project,
        env=user.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert comes_true(lambda: (project / "started").exists() or started.poll() is not None)
    assert started.poll() is None, started.communicate()
    return started


def test_nothing_is_removed_while_a_box_runs(user: Account, running: subprocess.Popen[str]) -> None:
    state = State(str(user.home))
    refused = user.run(CLAUDEBOX, "--uninstall", "--yes")
    assert (refused.returncode, refused.stderr.startswith("error: a box is running (process ")) == (125, True)
    named = [int(number) for number in re.findall(r"\d+", refused.stderr.partition("\n")[0])]
    assert running.pid in named
    # What is in the box is known by its mounts, whatever it is called.
    assert [pid for pid in named if pid != running.pid and uses(pid, (state.directory.encode(),))]
    running.communicate("the end\n")
    assert user.run(CLAUDEBOX, "--uninstall", "--yes").returncode == 0
    assert not Path(state.directory).exists()
