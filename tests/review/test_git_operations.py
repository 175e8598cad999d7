"""Git does in a box with a layer what it does in a direct one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conftest import Box
from review.test_box import DATES, files_of, git, repository

__all__ = ["repository"]
pytestmark = [pytest.mark.req("LAND-01"), pytest.mark.attributes]

# Each is tried in turn, in the same repository; what it prints and how it ends are compared.
OPERATIONS = """
git status --short
echo 1 >> README.md
git diff --stat
git add -p </dev/null
git commit -qam one
git checkout -q -b topic
git mv run.sh start.sh
git rm -q util.py
git commit -qm two
echo 'on: pull_request' > .github/workflows/ci.yml
git stash -q
git stash pop -q
git commit -qam three
git checkout -q main
cat .github/workflows/ci.yml
git merge -q --no-ff -m merged topic
git log --format=%s
git revert --no-edit HEAD~1 -m 1
git tag v1
git reset -q --hard v1
git cherry-pick topic
git cherry-pick --abort
git rebase -q topic
git branch -m topic renamed
git config user.nickname x
git remote add other ../elsewhere
git checkout -q --orphan empty
git rm -rfq --cached old
git checkout -qf main
git clean -fdq
git bisect start HEAD HEAD~1
git bisect reset
git gc -q
git fsck --strict
git worktree add -q ../side renamed
git sparse-checkout set old
git sparse-checkout disable
git status --short
git log --all --format='%s %T'
""".strip().splitlines()
# In an ordinary box, the repository's configuration and what CI runs are read-only: a part of these fails there.
OPENED = ("--writable", ".git/config", "--writable", ".git/hooks", "--writable", ".github/workflows")


def script() -> str:
    return "\n".join(f'({line}) 2>/dev/null; echo "$? : {line.split(" ")[1]}"' for line in OPERATIONS)


@pytest.mark.root_repeats("inside, root is an ordinary user like anybody else; test_identity.py shows it")
def test_same_operations_give_the_same(box: Box, repository: Path) -> None:
    other = repository.parent / "direct"
    shutil.copytree(repository, other, symlinks=True)
    box.account.own(other)
    expected = Box(box.account, other).sh(script(), options=(*DATES, *OPENED))
    found = box.sh(script(), options=(*DATES, "--review", "--land", "all"))
    assert found.splitlines() == expected.splitlines()
    assert files_of(repository) == files_of(other)
    theirs = git(box.account, other, "for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads")
    ours = git(box.account, repository, "for-each-ref", "--format=%(objectname) %(refname:lstrip=3)", "refs/claudebox")
    assert set(ours.splitlines()) == set(theirs.splitlines())
