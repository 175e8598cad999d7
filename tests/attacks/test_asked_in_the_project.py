"""A program that claudebox asks something on the host obeys what lies in its working directory."""

from __future__ import annotations

import pytest

from conftest import Account, Box

# Like many programs, it reads settings from the directory that it is started in.
CLAUDE = "#!/bin/sh\n[ -e ./.settings ] && . ./.settings\necho '2.1.197 (Claude Code)'\n"


@pytest.mark.req("INST-02")
@pytest.mark.parametrize("option", ["--version", "--check"])
def test_nothing_of_the_project_is_obeyed(box: Box, account: Account, option: str) -> None:
    claude = account.write(account.home / "bin/claude", CLAUDE, 0o755)
    account.write(box.project / ".settings", f"echo ran > {account.home}/ran\n")
    account.environ["PATH"] = f"{account.home}/bin:{account.environ['PATH']}"
    said = box.claudebox(option).stdout
    assert "2.1.197" in said
    assert not (account.home / "ran").exists()
    account.run(str(claude), "--version", cwd=box.project)
    assert (account.home / "ran").exists(), "the attack is real"
