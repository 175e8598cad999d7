"""The release script, on a copy of the project."""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from claudebox import __version__
from conftest import AS_SOMEBODY, CHECKOUT

pytestmark = [pytest.mark.slow("copies the checkout, builds packages"), pytest.mark.git]

LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "dist", "build")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    made = tmp_path / "checkout"
    shutil.copytree(CHECKOUT, made, ignore=LEFT_OUT)
    git(made, "init", "-q")
    commit(made)
    return made


def git(where: Path, *words: str) -> None:
    subprocess.run(["git", *AS_SOMEBODY, "-C", str(where), *words], check=True, capture_output=True)


def commit(where: Path) -> None:
    git(where, "add", "--all")
    git(where, "commit", "-qm", "all")


def release(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(where / "tools/release.py"), *words]
    environ = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def refusal(where: Path, *words: str) -> str:
    done = release(where, *words)
    assert (done.returncode, done.stdout) == (125, "")
    return done.stderr.partition("\n")[0]


def test_release_from_the_new_version_to_the_checksums(copy: Path) -> None:
    changelog = copy / "CHANGELOG.md"
    if "## Unreleased\n\n## " in changelog.read_text():
        changelog.write_text(changelog.read_text().replace("## Unreleased\n", "## Unreleased\n\n- News.\n", 1))
        commit(copy)
    assert refusal(copy, "build").startswith("error: CHANGELOG.md has ")  # nothing for this version, or more
    assert release(copy, "bump", "9.9.9").returncode == 0
    # Every screen that shows the version has the new one.
    old = re.compile(rf"claudebox {re.escape(__version__)}: a box|\"claudebox\": \"{re.escape(__version__)}\"")
    files = [*(copy / "docs").rglob("*.md"), *(copy / "tests").rglob("golden/**/*.*")]
    assert [file for file in files if old.search(file.read_text())] == []
    assert refusal(copy, "build") == "error: the tree is not clean:"
    commit(copy)
    done = release(copy, "build")
    assert done.returncode == 0, done.stderr
    place = copy / "dist/9.9.9"
    assert {file.name for file in place.iterdir()} == {
        "SHA256SUMS",
        "claudebox-9.9.9-shared.tar.gz",
        "claudebox-9.9.9.pyz",
        "claudebox_9.9.9_all.deb",
        "claudebox_cli-9.9.9-py3-none-any.whl",
        "claudebox_cli-9.9.9.tar.gz",
    }
    sums = {line.split("  ")[1]: line.split("  ")[0] for line in (place / "SHA256SUMS").read_text().splitlines()}
    assert sums == {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in place.iterdir()
        if file.name != "SHA256SUMS"
    }
    assert refusal(copy, "build").endswith("is there already")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["bump", "0.2"], "error: `0.2` is not a version"),
        (["bump", "0.0.1"], f"error: 0.0.1 is not later than {__version__}"),
        ([], "Prepare and build a release. docs/releasing.md says what comes before and after."),
    ],
)
def test_mistake_is_refused(words: list[str], complaint: str) -> None:
    assert refusal(CHECKOUT, *words) == complaint


def test_version_without_news_is_refused(copy: Path) -> None:
    changelog = copy / "CHANGELOG.md"
    head, _, rest = changelog.read_text().partition("## Unreleased\n")
    changelog.write_text(f"{head}## Unreleased\n\n## {rest.partition(chr(10) + '## ')[2]}")
    assert refusal(copy, "bump", "9.9.9") == "error: CHANGELOG.md has nothing below `## Unreleased`"
