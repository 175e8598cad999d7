"""Names and lines of the project with codes that a terminal obeys: nothing that claudebox prints has them."""

from pathlib import Path

import pytest

from conftest import Account, Box

pytestmark = pytest.mark.req("SEC-01")

CODE = "\x1b[2J"
BELL = "\x07"
CONTROL = "\x9b31m"
HOSTILE = (CODE, BELL, CONTROL, "\x1b")


@pytest.fixture
def hostile(account: Account, project: Path) -> Path:
    account.run("git", "init", "-q", cwd=project)
    account.write(project / f".env.{CODE}\n! forged", "API_KEY=hunter2\n")
    account.write(project / f"my{CONTROL}.env", "API_KEY=hunter2\n")
    account.write(project / ".envrc", f"export A='{CODE}{BELL}' TOKEN=hunter2\n")
    config = project / ".git/config"
    account.write(config, f'{config.read_text()}[remote "a"]\n\turl = https://x:hunter2@y.example/{CODE}\n')
    account.write(project / f"locked{CODE}/x")
    return project


def test_nothing_that_is_printed_reaches_the_terminal_as_a_code(box: Box, hostile: Path) -> None:
    for words in (
        *(("--dry-run",), ("--dry-run", "--json"), ("--audit",), ("--audit", "--json"), ("--reveal", ".", "--audit")),
        *(("--explain", ".envrc"), ("--explain", f".env.{CODE}\n! forged"), ("--check",)),
    ):
        result = box.claudebox(*words, "--run", "true")
        shown = result.stdout + result.stderr
        assert not [code for code in HOSTILE if code in shown]
        assert words == ("--dry-run",) or not any(line.startswith("! forged") for line in shown.splitlines())
        assert "hunter2" not in shown


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_pasted_command_still_does_the_same(box: Box, hostile: Path, account: Account, shell: str) -> None:
    script = "cat .env.* my*.env .envrc; git add -A; git ls-files"
    shown = box.claudebox("--dry-run", "--run", "sh", "-c", script)
    pasted = account.run(shell, "-c", shown.stdout, cwd=hostile)
    expected = f"export A='{CODE}{BELL}' TOKEN="
    assert (pasted.stdout.count("API_KEY="), expected in pasted.stdout) == (2, True), pasted.stderr
    assert "hunter2" not in pasted.stdout
    assert ".envrc\n" not in pasted.stdout, "git would add a decoy"
