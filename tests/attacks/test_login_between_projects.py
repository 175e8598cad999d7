"""Agents of two projects, which shall not know of each other, try to meet where both can write: at Claude's login."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from claudebox.servers.login import SOONER_AT_MOST
from conftest import CLAUDEBOX, Account, Box
from patience import PATIENCE, comes_true

STORE = "$CLAUDE_SECURESTORAGE_CONFIG_DIR"
MESSAGE = "canary-9c1e"


@pytest.fixture
def environ(account: Account) -> dict[str, str]:
    """A host on which somebody is logged in, and where a stand-in for claude is found."""
    fake = account.write(account.home / "opt" / "claude", "#!/bin/sh\n", mode=0o755)
    login = {"accessToken": "a", "refreshToken": "r", "expiresAt": int(time.time() * 1000) + 3_600_000}
    account.write(account.home / ".claude/.credentials.json", json.dumps({"claudeAiOauth": login}), mode=0o600)
    return {"PATH": f"{fake.parent}:{account.environ['PATH']}"}


@pytest.mark.req("AUTH-01", "SEC-01")
@pytest.mark.parametrize(("second", "is_seen"), [("shop", True), ("bakery", False)])
def test_file_at_the_login_is_seen_in_the_same_project_only(
    box: Box, account: Account, environ: dict[str, str], second: str, *, is_seen: bool
) -> None:
    other = account.write(account.home / "src" / second / "README.md").parent
    script = f"mkdir {STORE}/deep; echo {MESSAGE} > {STORE}/deep/note; mkfifo {STORE}/fifo; echo there; cat"
    words = (CLAUDEBOX, "--yes", "--run", "sh", "-c", script)
    with account.running(*words, cwd=box.project, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout
        assert first.stdout.readline() == "there\n"
        look = f"cat {STORE}/deep/note; ls {STORE}; test -s {STORE}/.credentials.json && echo login"
        seen = box.inside("sh", "-c", look, cwd=other, env=environ)
        first.communicate("", timeout=PATIENCE)
    assert "login" in seen.stdout.split()
    assert (MESSAGE in seen.stdout, "fifo" in seen.stdout) == (is_seen, is_seen)


@pytest.mark.req("AUTH-01", "SEC-01")
def test_of_a_login_only_its_own_fields_go_to_another_project(
    box: Box, account: Account, environ: dict[str, str]
) -> None:
    other = account.write(account.home / "src/bakery/README.md").parent
    assert box.inside("true", cwd=other, env=environ).returncode == 0
    moment = int(time.time() * 1000) + 2 * 3_600_000
    login = {
        "accessToken": "new",
        "refreshToken": "new",
        "expiresAt": moment,
        "note": MESSAGE,
        "scopes": [MESSAGE * 99],
    }
    text = json.dumps({"claudeAiOauth": login, "note": MESSAGE})
    script = f"echo '{text}' > {STORE}/new; mv {STORE}/new {STORE}/.credentials.json"
    assert box.inside("sh", "-c", script, env=environ).returncode == 0
    host = Path(account.home / ".claude/.credentials.json")
    assert comes_true(lambda: '"new"' in host.read_text())
    seen = box.inside("sh", "-c", f"cat {STORE}/.credentials.json", cwd=other, env=environ).stdout
    entered = json.loads(seen)["claudeAiOauth"]
    assert 0 <= moment - entered.pop("expiresAt") <= SOONER_AT_MOST
    assert entered == {"accessToken": "new", "refreshToken": "new"}
