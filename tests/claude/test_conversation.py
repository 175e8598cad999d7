"""The real Claude Code talks, works and remembers in the box."""

import json
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from claude.api import StandIn
from claude.session import ANSWER, DUMMY_KEY, Session, Talk, load, texts
from conftest import Account, git, make_repository

CANARY = "canary-5f1c7e"
PLANTED = (
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".config/gh/hosts.yml",
    ".netrc",
    ".claude/projects/-other/talk.jsonl",
    ".claude/history.jsonl",
    ".claude.json",
    ".claudebox/instances/0123456789abcdef/claude/projects/-other/talk.jsonl",
    ".bash_history",
    "src/other/.env",
)
# The brackets keep the search from finding itself; the system's own directories hold nothing of the user.
# `command`: the Bash tool of some versions has a function of that name, which does not end on `/`.
GREP = "command grep -rIs --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr --exclude-dir=node_modules"
SEARCH = f"{GREP} 'canary[-]' /; env; cat /proc/*/environ"


def repository(account: Account, project: Path) -> None:
    account.write(account.home / ".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.org\n")
    make_repository(account, project)


@pytest.mark.req("SAND-01", "UX-06", "SAND-14")
@pytest.mark.root_repeats("Claude sees the same home and the same user in the box of either")
def test_answer_is_printed_and_nothing_else(talk: Talk) -> None:
    session = talk()
    assert (session.status, session.stdout) == (0, ANSWER + "\n"), session.stderr


@pytest.mark.req("SAND-04", "SAND-09", "SAND-02")
def test_commands_run_inside_and_find_no_secret(talk: Talk) -> None:
    for name in PLANTED:
        talk.account.write(talk.account.home / name, json.dumps({"token": CANARY}) + "\n", mode=0o600)
    commands = ("hostname > marker; pwd", *(f"cat ~/{name}" for name in PLANTED), SEARCH)
    session = talk(commands=commands, env={"ANTHROPIC_API_KEY": "x" * 30, "GITHUB_TOKEN": CANARY})
    assert len(session.results) == len(commands), session.stderr
    assert (talk.project / "marker").read_text() == "claudebox\n"
    assert session.results[0].strip() == str(talk.project)
    assert CANARY not in session.sent


def test_search_would_find_a_secret_that_is_inside(user_talk: Talk) -> None:
    user_talk.account.write(user_talk.project / "leak", CANARY + "\n")
    assert CANARY in user_talk.inside(SEARCH).stdout


@pytest.mark.req("SAND-05", "GIT-01")
def test_edit_and_commit_arrive_on_the_host(user_talk: Talk) -> None:
    repository(user_talk.account, user_talk.project)
    commands = ("echo 'a better shop' > README.md", "git commit -qam 'improve the shop' && git log -1 --format=%an")
    session = user_talk(commands=commands)
    assert session.results[-1].strip() == "Ada"
    assert (user_talk.project / "README.md").read_text() == "a better shop\n"
    assert (user_talk.project / "README.md").stat().st_uid == user_talk.account.uid
    assert git(user_talk.account, user_talk.project, "log", "--format=%an %s") == "Ada improve the shop\nOld first\n"
    assert git(user_talk.account, user_talk.project, "status", "--porcelain") == ""


@pytest.mark.req("WORK-01")
def test_git_says_beforehand_what_it_cannot_do(user_talk: Talk) -> None:
    """Claude's shell makes a PATH of its own from the one that it was started with."""
    repository(user_talk.account, user_talk.project)
    (said,) = user_talk(commands=("git remote add far https://example.org/x",)).results
    assert "was not started" in said
    assert "Ask the user to run it outside of the box: git remote add far https://example.org/x" in said


@pytest.mark.req("INST-01", "SAND-08")
def test_conversation_is_continued_in_the_next_box(user_talk: Talk) -> None:
    user_talk(prompt="the word is heliotrope")
    session = user_talk("--continue", prompt="which word?")
    assert (session.status, session.stdout) == (0, ANSWER + "\n"), session.stderr
    spoken = [text for message in session.requests[-1]["messages"] for text in texts(message)]
    assert "the word is heliotrope" in spoken
    assert ANSWER in spoken
    assert spoken.index("the word is heliotrope") < spoken.index("which word?")


@pytest.mark.req("INST-01")
def test_conversation_is_resumed_by_its_number(user_talk: Talk) -> None:
    user_talk(prompt="the word is heliotrope")
    (kept,) = user_talk.state.glob("projects/*/*.jsonl")
    assert "the word is heliotrope" in user_talk("--resume", kept.stem, prompt="which word?").sent


@pytest.mark.req("INST-01")
def test_conversation_from_before_is_resumed_in_a_box(user_talk: Talk) -> None:
    """Where Claude itself had put it, outside of any box."""
    with StandIn() as api:
        environ = {**DUMMY_KEY, "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{api.port}", "PATH": "/usr/bin:/bin"}
        words = (user_talk.claude, "-p", "the word is heliotrope")
        done = user_talk.account.run(*words, cwd=user_talk.project, env=environ)
    assert done.returncode == 0, done.stderr
    (before,) = user_talk.account.home.glob(".claude/projects/*/*.jsonl")
    assert user_talk.box.claudebox("--import-history").stdout.startswith("1 conversation copied")
    assert "the word is heliotrope" in user_talk("--resume", before.stem, prompt="which word?").sent


@pytest.mark.req("INST-01")
def test_conversation_cannot_be_seen_from_another_project(user_talk: Talk) -> None:
    user_talk(prompt="the word is heliotrope")
    assert "heliotrope" in "".join(path.read_text() for path in user_talk.state.glob("projects/*/*.jsonl"))
    other = user_talk.account.write(user_talk.account.home / "src" / "other" / "README.md").parent
    elsewhere = replace(user_talk, box=replace(user_talk.box, project=other))
    assert "heliotrope" not in elsewhere("--continue", commands=(f"{GREP} 'helio[t]rope' /",)).sent
    assert str(user_talk.instance) not in elsewhere.inside("find / -name '*.jsonl'").stdout


@pytest.mark.req("INST-01")
def test_conversation_is_not_given_to_a_project_that_claims_to_be_a_worktree(user_talk: Talk) -> None:
    """A `.git` file is written by whoever can write the project."""
    repository(user_talk.account, user_talk.project)
    user_talk.inside("echo heliotrope > ~/.claude/kept")
    other = user_talk.account.home / "src" / "other"
    user_talk.account.write(other / ".git", f"gitdir: {user_talk.project}/.git/worktrees/other\n")
    elsewhere = replace(user_talk, box=replace(user_talk.box, project=other))
    assert elsewhere.inside("cat ~/.claude/kept; echo done").stdout == "done\n"
    assert elsewhere.instance.is_dir()


@pytest.mark.req("INST-01")
def test_two_boxes_of_a_project_at_once_both_work(user_talk: Talk) -> None:
    sessions: list[Session] = []
    commands = ("sleep 0.5; echo done >> marker", "sleep 0.5")
    threads = [threading.Thread(target=lambda: sessions.append(user_talk(commands=commands))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(session.status, session.stdout) for session in sessions] == [(0, ANSWER + "\n")] * 2
    assert (user_talk.project / "marker").read_text() == "done\n" * 2
    state = load(user_talk.state / ".claude.json")
    assert state["hasCompletedOnboarding"] is True
    assert state["projects"][str(user_talk.project)]["hasTrustDialogAccepted"] is True
    talks = list(user_talk.state.glob("projects/*/*.jsonl"))
    assert len(talks) == 2
    assert all(json.loads(line) for path in talks for line in path.read_text().splitlines())


@pytest.mark.req("SAND-01", "FAIL-01")
def test_missing_claude_says_how_to_get_it(user_talk: Talk) -> None:
    path = user_talk.account.environ["PATH"]
    assert shutil.which("claude", path=path) is None, "this machine has a claude in a system directory"
    done = user_talk.box.claudebox("--yes", "-p", "x", env={"CLAUDEBOX_CLAUDE": ""})
    assert done.returncode == 127
    assert "@anthropic-ai/claude-code" in done.stderr
