"""Claude Code gets its arguments as they were typed."""

import json
import os
from pathlib import Path

import pytest

from conftest import Account, Box
from running.versions import each_bwrap

FAKE = "#!/usr/bin/python3\nimport json, sys\nprint(json.dumps(sys.argv))\nsys.exit(7 if '--fail' in sys.argv else 0)\n"
SKIP = "--dangerously-skip-permissions"


@pytest.fixture
def path_with_claude(account: Account) -> dict[str, str]:
    """An environment in which a stand-in for claude is found."""
    fake = account.write(account.home / "opt" / "claude", FAKE, mode=0o755)
    return {"PATH": f"{fake.parent}:{account.environ['PATH']}"}


@pytest.mark.req("UX-06", "ARGS-01")
@pytest.mark.parametrize(
    ("typed", "received"),
    [
        ([], []),
        (["--continue", "--model", "opus"], ["--continue", "--model", "opus"]),
        (["mcp", "add", "x", "-e", "K=v", "--", "a", "-y"], ["mcp", "add", "x", "-e", "K=v", "--", "a", "-y"]),
        (["--", "mcp", "add", "--env", "KEY=value", "--yes", "x"], ["mcp", "add", "--env", "KEY=value", "--yes", "x"]),
        (["--", "--help", "--yes", "--dry-run"], ["--help", "--yes", "--dry-run"]),
        (["--", "a", "--", "b"], ["a", "--", "b"]),
        (
            ["", "two words", "quo'te\"", "$HOME", "*", "new\nline", "é\u202e"],
            ["", "two words", "quo'te\"", "$HOME", "*", "new\nline", "é\u202e"],
        ),
        (["the first", "-y", "last"], ["the first", "last"]),
        (["--append-system-prompt=--shell"], ["--append-system-prompt=--shell"]),
    ],
)
def test_arguments_arrive_unchanged_and_in_order(
    box: Box, account: Account, path_with_claude: dict[str, str], typed: list[str], received: list[str]
) -> None:
    result = box.claudebox("--yes", *typed, env=path_with_claude)
    assert result.returncode == 0, result.stderr
    program, *arguments = json.loads(result.stdout)
    assert os.path.basename(program) == "claude"
    assert arguments == [SKIP, *received]


@pytest.mark.req("SAND-01")
def test_only_the_program_of_its_directory_is_visible_and_cannot_be_changed(
    box: Box, account: Account, path_with_claude: dict[str, str]
) -> None:
    account.write(account.home / "opt" / "private", "private")
    attacks = "echo evil > ~/opt/claude; rm -f ~/opt/claude; mv ~/opt ~/moved; echo evil > ~/.local/bin/claude"
    done = box.inside("sh", "-c", f"ls -A ~/opt; command -v claude; {attacks}", env=path_with_claude)
    assert done.stdout.split() == ["claude", f"{account.home}/.local/bin/claude"]
    assert (account.home / "opt" / "claude").read_text() == FAKE


@pytest.mark.req("SAND-01")
@pytest.mark.parametrize(
    "where", ["~/.local/share/claude/versions/9.9.9", "~/node/lib/node_modules/@anthropic-ai/claude-code/cli.js"]
)
@each_bwrap
def test_claude_behind_a_symlink_is_found(box: Box, account: Account, where: str) -> None:
    program = account.write(Path(where.replace("~", str(account.home))), FAKE, mode=0o755)
    link = account.home / ".local" / "bin" / "claude"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(program)
    result = box.claudebox("--yes", "-p", "x", env={"PATH": f"{link.parent}:{account.environ['PATH']}"})
    assert json.loads(result.stdout)[1:] == [SKIP, "-p", "x"]


@pytest.mark.req("SAND-01")
def test_interpreter_outside_of_the_system_comes_along(box: Box, account: Account) -> None:
    """node from a version manager in the home."""
    interpreter = account.write(account.home / "nvm" / "v1" / "bin" / "node9", mode=0o755)
    interpreter.write_bytes(Path("/bin/sh").read_bytes())
    program = account.write(account.home / "opt" / "claude", '#!/usr/bin/env node9\necho "$@"\n', mode=0o755)
    path = f"{program.parent}:{interpreter.parent}:{account.environ['PATH']}"
    assert box.claudebox("--yes", "hello", env={"PATH": path}).stdout == f"{SKIP} hello\n"


@pytest.mark.req("SAND-01")
def test_real_claude_tells_its_version(box: Box, claude: str) -> None:
    result = box.claudebox("--yes", "--", "--version", env={"CLAUDEBOX_CLAUDE": claude})
    assert result.returncode == 0, result.stderr
    assert "(Claude Code)" in result.stdout
