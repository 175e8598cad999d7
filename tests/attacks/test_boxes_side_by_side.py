"""Of two boxes at the same time, one leaves what the other found: by its own picture, neither has changed it."""

import subprocess
from pathlib import Path

import pytest

from attacks.conftest import box_words, said
from conftest import Account, Box, git, make_repository
from patience import comes_true

pytestmark = pytest.mark.req("INST-02")

COMMIT = "git -c user.name=x -c user.email=x commit -q"


@pytest.fixture
def repository(account: Account, project: Path) -> Path:
    account.write(account.home / ".claudebox/config.toml")  # without any state, nothing is kept
    account.write(project / ".github/workflows/ci.yml", "on: push\n")
    return make_repository(account, project)


def side_by_side(box: Box, plant: str, unplant: str, again: str) -> str:
    """What the second box says: the first one plants something, which is there when the second one starts."""
    account, project = box.account, box.project
    wait = "until test -e {}; do sleep 0.02; done"
    first = f"{plant}; touch planted; {wait.format('started')}; {unplant}; rm -f planted started"
    second = f"touch started; {wait.format('ended')}; {again}"
    with account.running(*box_words(box, "sh", "-c", first), cwd=project) as one:
        assert comes_true((project / "planted").exists)
        words = box_words(box, "sh", "-c", second)
        with account.running(*words, cwd=project, stderr=subprocess.PIPE) as other:
            one.wait(60)
            account.write(project / "ended")
            _, heard = other.communicate(timeout=60)
    return " ".join(heard.split())


def test_what_the_first_box_made_is_new(box: Box, repository: Path) -> None:
    plant = "echo evil > .envrc"
    assert "new .envrc" in side_by_side(box, plant, "rm .envrc", plant)


def test_what_was_there_before_both_is_not(box: Box, account: Account, repository: Path) -> None:
    account.write(repository / ".envrc", "mine\n")
    assert ".envrc" not in side_by_side(box, "true", "true", "true")


def test_commit_of_the_first_box_does_not_land_in_a_third(box: Box, account: Account, repository: Path) -> None:
    plant = "git checkout -q -b evil; echo 'on: evil' > .github/workflows/ci.yml; git add -A; "
    plant += f"{COMMIT} -m evil; git checkout -q main"
    unplant = "cp .git/refs/heads/evil keep; git branch -q -D evil; rm -f .git/ORIG_HEAD"
    heard = side_by_side(box, plant, unplant, "mv keep .git/refs/heads/evil; rm -rf .git/logs")
    assert "branch evil changes .github/workflows/ci.yml" in heard
    box.inside("git", "checkout", "-q", "evil")
    assert (repository / ".github/workflows/ci.yml").read_text() == "on: push\n"
    assert "evil" in git(account, repository, "branch")


def test_box_that_was_killed_is_looked_at_wherever_it_could_write(box: Box, account: Account, repository: Path) -> None:
    other = account.write(account.home / "other/x").parent
    words = (*box_words(box)[:-1], "--mount-rw", str(other), "--run")
    script = f"echo x > {other}/.envrc; touch started; exec sleep 60"
    with account.running(*words, "sh", "-c", script, cwd=repository) as process:
        assert comes_true((repository / "started").exists)
        process.kill()
        process.wait(30)
    assert "other/.envrc" in said(box.inside("true"))
