"""The agent leaves something for git commands that people seldom use: it runs when they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Account, Box

pytestmark = pytest.mark.req("INST-02")

AS_SOMEBODY = ("-c", "user.name=Old", "-c", "user.email=old@host", "-c", "init.defaultBranch=main")
EVIL = "printf '#!/bin/sh\\ntouch ~/ran\\n' > evil; chmod +x evil"
UP = "../" * 12
NESTED = "git init -q n; cd n; echo x > file; git add file; echo y > file"
# What the agent does, what is said about it, and what the user types later.
ATTACKS = {
    "server-of-instaweb": (
        f"{EVIL}; mkdir .git/gitweb; cp evil .git/gitweb/our-lighttpd",
        "new .git/gitweb/our-lighttpd (git instaweb runs it)",
        "git instaweb --start --httpd=our-lighttpd",
    ),
    "difftool": (
        f"{EVIL}; {NESTED}; git config diff.tool {UP}$OLDPWD/evil",
        "new n/.git (a repository: git obeys it) diff.tool = ",
        "git -C n difftool -y",
    ),
    "guitool-for-merges": (
        f"{EVIL}; {NESTED}; git config merge.guitool {UP}$OLDPWD/evil",
        "new n/.git (a repository: git obeys it) merge.guitool = ",
        "git -C n difftool -y --gui",
    ),
}


@pytest.fixture
def repository(account: Account, project: Path) -> Path:
    for words in ("init -q", "commit -qm first --allow-empty"):
        account.run("git", *AS_SOMEBODY, *words.split(), cwd=project)
    return project


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_is_real_and_named(box: Box, account: Account, repository: Path, name: str) -> None:
    script, expected, typed = ATTACKS[name]
    assert expected in " ".join(box.inside("sh", "-c", script).stderr.split())
    account.run("sh", "-c", f"{typed} < /dev/null", cwd=repository)
    assert (account.home / "ran").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [("http.saveCookies", "true"), ("http.https://x/.saveCookies", "1"), ("format.outputDirectory", "/x")],
)
def test_repository_that_has_git_write_elsewhere_is_named(box: Box, repository: Path, key: str, value: str) -> None:
    done = box.inside("sh", "-c", f"git init -q n; git -C n config {key} {value}")
    assert "new n/.git (a repository: git obeys it)" in " ".join(done.stderr.split())


def test_server_of_the_users_is_held(box: Box, account: Account, repository: Path) -> None:
    server = account.write(repository / ".git/gitweb/server", "mine\n", 0o755)
    assert box.inside("sh", "-c", "echo evil > .git/gitweb/server").returncode != 0
    assert server.read_text() == "mine\n"
