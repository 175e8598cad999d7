"""An agent turns a directory of its project into a symlink. The user's file names that directory for claude."""

from pathlib import Path

import pytest

from conftest import Account, Box

CANARY = "canary-7f31"
REFUSED = 125
FAKE = "#!/bin/sh\ncat ~/src/other/data/*\necho overwritten > ~/src/other/data/diary\n"


@pytest.fixture
def path_with_claude(account: Account) -> dict[str, str]:
    """An environment in which a stand-in for claude is found, which uses what it is given."""
    fake = account.write(account.home / "opt" / "claude", FAKE, mode=0o755)
    return {"PATH": f"{fake.parent}:{account.environ['PATH']}"}


@pytest.fixture
def diary(account: Account) -> Path:
    return account.write(account.home / "private" / "diary", CANARY)


@pytest.mark.req("EXT-01", "SEC-01")
def test_directory_for_claude_cannot_be_turned_into_another(
    box: Box, account: Account, path_with_claude: dict[str, str], diary: Path
) -> None:
    data = account.write(account.home / "src/other/data/x", "data").parent
    account.write(account.home / ".claudebox/config.toml", f'claude_args = ["--add-dir", "{data}"]')
    assert box.claudebox("--yes", env=path_with_claude).stdout == "data"
    # The agent of the other project.
    turn = f"mv data old && ln -s {diary.parent} data"
    assert box.inside("sh", "-c", turn, cwd=data.parent, env=path_with_claude).returncode == 0
    result = box.claudebox("--yes", env=path_with_claude)
    assert CANARY not in result.stdout
    assert diary.read_text() == CANARY
    assert result.returncode == REFUSED, result.stderr
    assert "a symlink that an agent can change" in " ".join(result.stderr.split())
