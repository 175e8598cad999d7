"""The real Claude Code in a project with guarded directories, in an ordinary box."""

from __future__ import annotations

import pytest

from claude.session import Talk

pytestmark = [pytest.mark.req("LAND-01"), pytest.mark.attributes]


def test_session_that_changes_nothing_guarded_says_nothing(talk: Talk) -> None:
    account, project = talk.account, talk.project
    account.write(project / ".claude/settings.json", "{}\n")
    account.write(project / ".github/workflows/ci.yml", "on: push\n")
    assert account.run("git", "init", "-q", cwd=project).returncode == 0
    session = talk(commands=("echo x > x",))
    assert session.status == 0, session.stderr
    assert "Changes that wait for the user" in session.sent
    assert "review" not in session.stderr
    assert (project / "x").exists()
    assert sorted(path.name for path in (project / ".claude").iterdir()) == ["settings.json"]
    assert list(account.home.glob(".claudebox/instances/*/layers/*")) == []


def test_worktree_of_claude_is_on_this_host(talk: Talk) -> None:
    account, project = talk.account, talk.project
    account.write(project / ".claude/settings.json", "{}\n")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "first")):
        somebody = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        assert account.run("git", *somebody, *words, cwd=project).returncode == 0
    session = talk("--worktree", "side", commands=("echo x > x && git add x && git commit -qm x",))
    assert session.status == 0, session.stderr
    assert (project / ".claude/worktrees/side/x").exists()
    assert "review 1" not in session.stderr
