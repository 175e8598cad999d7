"""Agents of two projects write both ends of a worktree, so that one gets the other's repository and conversations."""

from dataclasses import replace
from pathlib import Path

import pytest

from conftest import AS_SOMEBODY, Account, Box

pytestmark = pytest.mark.req("INST-01")


@pytest.fixture
def other(box: Box, account: Account) -> Box:
    """A repository, and a box that works on it. This host keeps state, as every one does that has Claude."""
    (account.home / ".claudebox").mkdir(mode=0o700)
    account.own(account.home / ".claudebox")
    shop = account.write(account.home / "src/other/file", "mine\n").parent
    for words in ("init -q", "add -A", "commit -qm first"):
        account.run("git", *AS_SOMEBODY, *words.split(), cwd=shop)
    return replace(box, project=shop)


def plant(box: Box, other: Box, project: Path) -> None:
    """What the two agents write."""
    theirs = f"{other.project}/.git/worktrees/x"
    script = f"mkdir -p {theirs}; cd {theirs}; echo ../.. > commondir; cp ../../HEAD .; echo {project}/.git > gitdir"
    other.inside("sh", "-c", script)
    box.inside("sh", "-c", f"mkdir -p {project}; echo gitdir: {theirs} > {project}/.git")


def has_repository(box: Box, other: Box) -> bool:
    return box.inside("test", "-e", f"{other.project}/.git/HEAD").returncode == 0


def states(account: Account) -> set[str]:
    return {file.read_text() for file in (account.home / ".claudebox/instances").glob("*/project")}


def test_planted_worktree_is_not_believed(box: Box, account: Account, other: Box) -> None:
    plant(box, other, box.project)
    assert not has_repository(box, other)
    assert "an agent may have written that" in " ".join(box.inside("true").stderr.split())


def test_planted_worktree_below_the_project_is_not_believed(box: Box, account: Account, other: Box) -> None:
    plant(box, other, box.project / "below")
    assert not has_repository(replace(box, project=box.project / "below"), other)


def test_history_is_not_shared_by_a_box_that_could_write_both(box: Box, account: Account, other: Box) -> None:
    """Above both, an agent has the repository, but not what was said about it."""
    above = replace(box, project=account.home / "src")
    plant(above, other, box.project)
    assert has_repository(box, other)
    assert f"{box.project}\n" in states(account)


def test_worktree_of_the_user_is_believed(box: Box, account: Account, other: Box) -> None:
    other.inside("true")
    tree = account.home / "src/tree"
    account.run("git", "worktree", "add", "-q", str(tree), "-b", "side", cwd=other.project)
    for _ in range(2):
        assert has_repository(replace(box, project=tree), other)
    assert f"{tree}\n" not in states(account)
