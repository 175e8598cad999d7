"""With --review guarded, the directories that this host runs are layers, and the rest of the project is as ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Box
from review.test_box import git, layers_of, repository
from unit.layers.world import picture

__all__ = ["repository"]
pytestmark = [pytest.mark.req("LAND-01"), pytest.mark.attributes]

GUARDED = ("--review", "guarded")
CHECKOUT = """
git checkout -q -b ci && echo 'on: pull_request' > .github/workflows/ci.yml && git commit -qam ci &&
git checkout -q main && git checkout -q ci && git status --short
"""


def test_git_goes_over_what_is_guarded(box: Box, repository: Path) -> None:
    # As a read-only mount, it stops git half-way.
    assert box.inside("sh", "-c", CHECKOUT).returncode != 0
    git(box.account, repository, "checkout", "-qf", "main")
    git(box.account, repository, "branch", "-qD", "ci")
    before = picture(repository / ".github")
    done = box.inside("sh", "-c", f"{CHECKOUT.strip()} && echo direct > direct", options=GUARDED)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert picture(repository / ".github") == before
    assert (repository / "direct").read_text() == "direct\n"
    assert "host runs   .github/workflows/ci.yml" in done.stderr
    assert git(box.account, repository, "status", "--short") == " M .github/workflows/ci.yml\n?? direct\n"
    assert box.claudebox("--review", "land", "--land", "safe").returncode == 0
    assert picture(repository / ".github") == before
    assert box.claudebox("--review", "land", "--land", "all").returncode == 0
    assert (repository / ".github/workflows/ci.yml").read_text() == "on: pull_request\n"
    assert git(box.account, repository, "status", "--short") == "?? direct\n"
    assert layers_of(box.account) == []


def test_several_directories_are_one_layer(box: Box, repository: Path) -> None:
    box.account.write(repository / "deep/down/.vscode/tasks.json", "{}\n")
    script = "echo x > deep/down/.vscode/new; rm .github/workflows/ci.yml; echo y > deep/down/y"
    box.sh(script, options=GUARDED)
    box.account.write(repository / ".idea/x.xml", "<x/>\n")
    box.sh("echo z > .idea/z; cat deep/down/.vscode/new", options=GUARDED)
    assert [path.name for path in layers_of(box.account)] == ["1"]
    assert "2 added, 1 deleted" in box.claudebox("--review", "list").stdout
    assert not (repository / "deep/down/.vscode/new").exists()
    assert (repository / "deep/down/y").exists()
    box.claudebox("--review", "land", "--land", "all")
    assert (repository / "deep/down/.vscode/new").exists()
    assert (repository / ".idea/z").exists()
    assert not (repository / ".github/workflows/ci.yml").exists()
    assert layers_of(box.account) == []


def test_git_itself_stays_guarded(box: Box, repository: Path) -> None:
    done = box.inside("sh", "-c", "echo evil > .git/hooks/pre-commit || git config a.b c", options=GUARDED)
    assert done.returncode != 0
    assert layers_of(box.account) == []


def test_project_without_such_a_directory_has_no_layer(box: Box) -> None:
    assert box.sh("echo direct > direct; ls", options=GUARDED) == "README.md\ndirect\n"
    assert layers_of(box.account) == []
    assert (box.project / "direct").exists()
