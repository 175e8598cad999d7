"""What commits had before the box lands by itself in an ordinary box, and nothing else does."""

from pathlib import Path

import pytest

from attacks.conftest import box_words
from conftest import Box, git, make_repository
from patience import comes_true

pytestmark = [pytest.mark.req("LAND-01", "WORK-01"), pytest.mark.attributes]

CI = ".github/workflows/ci.yml"
QUIET = ("--quiet",)


@pytest.fixture
def repository(shop: Box) -> Path:
    """The branch `other` has another workflow and a program, `without` has none, and `side` has more in the root."""
    account, project = shop.account, shop.project
    account.write(project / CI, "on: push\n")
    make_repository(account, project)
    for branch, words in {"other": "other", "without": "", "side": "push"}.items():
        git(account, project, "checkout", "-qb", branch, "main")
        if words:
            account.write(project / CI, f"on: {words}\n")
            account.write(project / f".github/{branch}/run", "#!/bin/sh\n", 0o755)
        else:
            git(account, project, "rm", "-qr", ".github")
        git(account, project, "add", "-A")
        git(account, project, "commit", "-qm", branch)
    git(account, project, "checkout", "-q", "main")
    return project


def leaves(box: Box, script: str) -> tuple[str, bool]:
    """What git on the host shows as changed when a box has ended, and whether something waits."""
    done = box.inside("sh", "-c", script, options=QUIET)
    assert done.returncode == 0, done.stderr
    return git(box.account, box.project, "status", "--short"), "kept as review" in done.stderr


@pytest.mark.parametrize(
    "script",
    [
        "git checkout -q other",
        "git switch -q without && git switch -q other",
        "git switch -q without",
        "git reset -q --hard other",
        "git merge -q -m merged side",
        "git merge -q -m merged other && git checkout -q main~1",
        "git checkout -q side && git rebase -q other",
        "git checkout -q other && echo x > x && git add x && git commit -qm x",
    ],
)
def test_host_shows_no_change(shop: Box, repository: Path, script: str) -> None:
    assert leaves(shop, script) == ("", False)


def test_linked_worktree_is_whole(shop: Box, repository: Path) -> None:
    linked = shop.account.home / "linked"
    git(shop.account, repository, "worktree", "add", "-q", "-b", "more", str(linked))
    assert leaves(Box(shop.account, linked), "git reset -q --hard other") == ("", False)
    assert (linked / CI).read_text() == "on: other\n"


WAITS = {
    "new content": "git checkout -q other; echo evil > {ci}; git commit -qam evil",
    "the content of another path": "cp README.md {ci}",
    "a file of another branch": "git checkout -q other -- {ci}",
    "another mode": "chmod +x {ci}",
    "a mode for everybody": "git checkout -q other; chmod 666 {ci}",
    "a deletion that is no checkout": "rm {ci}",
    "a commit of the box that is checked out": "git rm -q {ci}; git commit -qm gone",
    "a replaced commit": "git checkout -qb evil; echo evil > {ci}; git commit -qam evil; git checkout -q main; "
    "git replace main evil; cp /dev/null {ci}; git show evil:{ci} > {ci}",
}


@pytest.mark.parametrize("script", WAITS.values(), ids=WAITS)
def test_anything_else_waits(shop: Box, repository: Path, script: str) -> None:
    before = (repository / CI).read_text(), (repository / CI).stat().st_mode
    _, is_kept = leaves(shop, script.format(ci=CI))
    assert is_kept
    assert ((repository / CI).read_text(), (repository / CI).stat().st_mode) == before


REWRITE = """
import hashlib, os, subprocess, zlib
def git(*words): return subprocess.check_output(["git", *words], text=True).strip()
def place(name): return f".git/objects/{name[:2]}/{name[2:]}"
open(".github/workflows/ci.yml", "w").write("evil\\n")
evil = git("hash-object", "-w", ".github/workflows/ci.yml")
tree = git("rev-parse", "other:.github/workflows")
content = b"100644 ci.yml\\0" + bytes.fromhex(evil)
os.chmod(place(tree), 0o644)
open(place(tree), "wb").write(zlib.compress(b"tree %d\\0" % len(content) + content))
git("symbolic-ref", "HEAD", "refs/heads/other")
assert git("rev-parse", "HEAD:.github/workflows/ci.yml") == evil
"""


def test_old_commit_with_a_rewritten_directory_does_not_count(shop: Box, repository: Path) -> None:
    done = shop.inside("python3", "-c", REWRITE, options=QUIET)
    assert "kept as review" in done.stderr
    assert (repository / CI).read_text() == "on: push\n"


def test_commit_of_an_earlier_box_of_the_layer_does_not_count(shop: Box, repository: Path) -> None:
    """Or two boxes could do what one cannot."""
    leaves(shop, f"echo evil > {CI}; git commit -qam evil")
    assert leaves(shop, f"git checkout -q main; git show HEAD:{CI}")[0] == f" M {CI}\n"
    assert (repository / CI).read_text() == "on: push\n"


EVIL = "git checkout -qb evil; echo evil > {ci}; git commit -qam evil; git checkout -q main"
LATER = {
    "ended": "{evil}",
    "ended, and the user has it in a commit": "{evil}; git checkout -q --detach evil; echo x > x; git add x; "
    "git commit -qm x; git branch -f evil; git checkout -q main",
    "ended, with an object hidden": "{evil}; mkdir x; for one in {objects}; do mv $one x; done",
}


@pytest.mark.parametrize("script", LATER.values(), ids=LATER)
def test_commit_of_an_earlier_box_does_not_count(shop: Box, repository: Path, script: str) -> None:
    """Of whatever layer it was: the user may have discarded or landed that."""
    commit = "git rev-parse evil | sed 's,..,.git/objects/&/,'"
    leaves(shop, script.format(evil=EVIL.format(ci=CI), objects=f"$({commit})"))
    shop.claudebox("--review", "discard", "1", input="y\n")
    assert leaves(shop, f"[ ! -d x ] || mv x/* $({commit}); git checkout -q evil")[1]
    assert (repository / CI).read_text() == "on: push\n"


MADE = f"""
git init -qb main inner; cd inner; mkdir -p .github/workflows; echo > .github/x.md; git add .; git commit -qm x
git checkout -qb evil; echo evil > {CI}; git add .; git commit -qm evil; git checkout -q main
"""


def test_commit_in_a_repository_that_a_box_made_does_not_count(shop: Box, repository: Path) -> None:
    shop.inside("sh", "-ec", MADE)
    assert leaves(Box(shop.account, repository / "inner"), "git checkout -q evil")[1]
    assert not (repository / "inner" / CI).exists()


@pytest.mark.parametrize("is_killed", [False, True])
def test_commit_of_a_box_that_runs_does_not_count(shop: Box, repository: Path, is_killed: bool) -> None:
    shop.account.write(repository / "agent.sh", f"{EVIL.format(ci=CI)}; touch started; exec sleep 60\n")
    with shop.account.running(*box_words(shop, "sh", "agent.sh"), cwd=repository) as process:
        assert comes_true((repository / "started").exists)
        if is_killed:
            process.kill()
            process.wait(30)
            assert "commit 1 of branch evil changes" in shop.inside("true", options=QUIET).stderr
        assert leaves(shop, "git checkout -q evil")[1]
    assert (repository / CI).read_text() == "on: push\n"


def test_nothing_is_lost(shop: Box, repository: Path) -> None:
    """What nobody has committed, and what the host has changed meanwhile, does not go by itself."""
    shop.account.write(repository / ".github/workflows/own.yml", "mine\n")
    leaves(shop, "git checkout -q without; rm -rf .github/workflows")
    assert (repository / ".github/workflows/own.yml").read_text() == "mine\n"
    git(shop.account, repository, "checkout", "-qf", "main")
    shop.claudebox("--review", "discard", "1", input="y\n")
    shop.account.write(repository / CI, "mine\n")
    leaves(shop, "git checkout -qf other")
    assert (repository / CI).read_text() == "mine\n"
