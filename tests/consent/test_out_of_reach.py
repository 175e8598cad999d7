"""What was agreed to cannot be read or written from inside: the agent could say yes to itself."""

from pathlib import Path

import pytest

from conftest import Account, Box
from terminal.pseudoterminal import PLAIN, claudebox_terminal

pytestmark = pytest.mark.req("UX-02", "SAND-08")
FAKE = '#!/bin/sh\nexec sh -c "$2"\n'


@pytest.fixture
def with_claude(account: Account) -> dict[str, str]:
    """A stand-in for claude, which runs its first argument: with it, the box has the project's state."""
    fake = account.write(account.home / "opt" / "claude", FAKE, mode=0o755)
    return {**PLAIN, "PATH": f"{fake.parent}:{account.environ['PATH']}"}


@pytest.fixture
def agreed(box: Box, with_claude: dict[str, str]) -> Path:
    with claudebox_terminal(box, "true", env=with_claude) as opened:
        opened.read_until(r"^Start\? \[Y/n\] ")
        opened.type("\n")
        assert opened.wait() == 0
    (file,) = box.account.home.glob(".claudebox/instances/*/agreed")
    return file


def attack(box: Box, script: str, env: dict[str, str]) -> str:
    result = box.claudebox(script, env=env)
    assert result.stderr.startswith("claudebox: as agreed: "), result.stderr
    return result.stdout


def test_file_is_nowhere_in_the_box(box: Box, agreed: Path, with_claude: dict[str, str]) -> None:
    script = f"cat {agreed}; find / -name agreed -not -path '/proc/*' 2> /dev/null; ls -A ~/.claude/.. ~/.claudebox; :"
    shown = attack(box, script, with_claude)
    assert "What you agreed to" not in shown
    assert "agreed" not in shown


def test_file_written_from_inside_does_not_count(box: Box, agreed: Path, with_claude: dict[str, str]) -> None:
    content = agreed.read_text()
    forged = content.replace("\n\nend", "\nvariable A from --env\n\nend")
    box.account.write(box.project / "forged", forged)
    attack(
        box,
        f"mkdir -p {agreed.parent}; cp forged {agreed}; cp forged ~/.claude/agreed; cp forged ~/.claude/../agreed; "
        "ln -s ../agreed ~/.claude/link; cp forged ~/.claude/link; :",
        with_claude,
    )
    assert agreed.read_text() == content
    refused = box.claudebox("--env", "A=1", "true", env=with_claude)
    assert refused.returncode == 125
    assert "A=1" in refused.stderr.partition("New since you agreed")[2]


@pytest.mark.req("SAND-09")
@pytest.mark.parametrize("option", ["--mount-rw", "--mount-ro"])
@pytest.mark.root_differs("root may read and mount everything")
def test_file_cannot_be_mounted(box: Box, agreed: Path, with_claude: dict[str, str], option: str) -> None:
    for path in (agreed, agreed.parent, agreed.parent.parent.parent):
        refused = box.claudebox("--yes", option, str(path), "true", env=with_claude)
        assert refused.returncode == 125
        assert "is secret (state of all boxes)" in " ".join(refused.stderr.split())


def test_box_of_another_project_does_not_see_it(box: Box, agreed: Path, with_claude: dict[str, str]) -> None:
    other = Box(box.account, box.account.home / "src" / "other")
    box.account.write(other.project / "x")
    result = other.claudebox("--yes", f"cat {agreed}; echo forged > {agreed}", env=with_claude)
    assert "What you agreed to" not in result.stdout
    assert "forged" not in agreed.read_text()
