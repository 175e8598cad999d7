"""The agent plants a `.claudebox.toml`: it may make the next box narrower, and never its guards weaker."""

from pathlib import Path

import pytest

from conftest import Account, Box

pytestmark = pytest.mark.req("INST-02", "EXT-01")

# A directory with a guarded file is moved, and another one takes its place.
REPLACE = "mv a old && mkdir -p a/b && echo evil > a/b/.envrc"


@pytest.fixture
def guarded(account: Account, project: Path) -> Path:
    return account.write(project / "a/b/.envrc", "mine\n")


@pytest.mark.parametrize("hide", ["a/b", "a/b/.envrc", "a"])
def test_hide_unpins_nothing(box: Box, account: Account, guarded: Path, hide: str) -> None:
    planted = box.inside("sh", "-c", f"echo 'hide = [\"{hide}\"]' > .claudebox.toml")
    assert "new .claudebox.toml (claudebox obeys it in the next box)" in " ".join(planted.stderr.split())
    done = box.inside("sh", "-c", REPLACE)
    assert "Device or resource busy" in done.stderr
    assert guarded.read_text() == "mine\n"


def test_it_is_not_pinned_where_nothing_is_guarded(box: Box, account: Account, project: Path) -> None:
    account.write(project / "a/b/plain", "mine\n")
    account.write(project / ".claudebox.toml", 'hide = ["a/b"]\n')
    assert box.inside("sh", "-c", REPLACE).returncode == 0


def test_directory_of_that_name_is_named(box: Box, account: Account, project: Path) -> None:
    """No box starts while it is there, and it is empty: there is no file in it that could be news."""
    planted = box.inside("mkdir", ".claudebox.toml")
    assert "new .claudebox.toml (a directory: the next box will not start)" in " ".join(planted.stderr.split())
    refused = box.inside("true")
    assert refused.returncode == 125
    account.run("sh", "-c", refused.stderr.rpartition("\n      ")[2], cwd=project)
    assert box.inside("true").returncode == 0
