"""The real Claude Code works a whole task in a box with a layer; it lands when somebody says so."""

from typing import Any

import pytest

from claude.api import StandIn
from claude.session import DUMMY_KEY, Talk, fingerprint
from conftest import git, make_repository

pytestmark = [pytest.mark.req("LAND-01"), pytest.mark.attributes]

TASK = (
    "sed -i 's/a - b/a + b/' calc.py",
    "python3 -c 'from calc import add; assert add(2, 3) == 5'; rm -rf __pycache__",
    "git checkout -q -b fix && git commit -qam 'fix add'",
    "mkdir -p .github/workflows && echo 'on: push' > .github/workflows/ci.yml",
)


@pytest.mark.root_repeats("Claude sees the same home and the same user in the box of either")
def test_claude_works_and_the_work_lands(talk: Talk) -> None:
    account, project = talk.account, talk.project
    account.write(project / "calc.py", "def add(a, b):\n    return a - b\n")
    make_repository(account, project)
    before = fingerprint(project)
    session = talk("--review", commands=TASK)
    assert session.status == 0, session.stderr
    assert fingerprint(project) == before
    assert "Your changes wait for the user" in session.sent
    landed = talk.box.claudebox("--review", "land", "--land", "safe")
    assert "fix: new, 1 commit" in landed.stderr, landed.stderr
    assert (project / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"
    assert not (project / ".github/workflows/ci.yml").exists()
    assert git(account, project, "log", "--format=%s", "refs/claudebox/1/fix") == "fix add\nfirst\n"


# The real Claude Code in a project with guarded directories, in an ordinary box.


def test_session_that_changes_nothing_guarded_says_nothing(talk: Talk) -> None:
    account, project = talk.account, talk.project
    account.write(project / ".claude/settings.json", "{}\n")
    account.write(project / ".github/workflows/ci.yml", "on: push\n")
    git(account, project, "init", "-q")
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
    make_repository(account, project)
    session = talk("--worktree", "side", commands=("echo x > x && git add x && git commit -qm x",))
    assert session.status == 0, session.stderr
    assert (project / ".claude/worktrees/side/x").exists()
    assert "review 1" not in session.stderr


# The real Claude Code cannot edit a masked file with its own tools, is told so, and the user's file stays as it is.


CANARY = "cAnArY7x9"
ENV = f"PORT=3000\nDB_PASSWORD={CANARY}\n"


class Tools(StandIn):
    """An API that has Claude use these tools, one after the other."""

    def __init__(self, *uses: tuple[str, dict[str, str]]) -> None:
        super().__init__(*(name for name, _ in uses))
        self.uses = uses

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        block = super().answer(request)
        if block["type"] != "tool_use":
            return block
        name, words = self.uses[int(block["id"].rpartition("_")[2])]
        return {**block, "name": name, "input": words}


@pytest.mark.req("SEC-01", "MASK-01")
@pytest.mark.parametrize("options", [(), ("--review", "--land", "all")], ids=["direct", "review"])
def test_claude_cannot_edit_a_masked_file(user_talk: Talk, options: tuple[str, ...]) -> None:
    path = user_talk.project / ".env"
    user_talk.account.write(path, ENV)
    edit = {"file_path": str(path), "old_string": "PORT=3000\n", "new_string": "PORT=4000\nNEW_FLAG=on\n"}
    uses = (
        ("Read", {"file_path": str(path)}),
        ("Edit", edit),
        ("Bash", {"command": "sed -i s/3000/4000/ .env"}),
        ("Write", {"file_path": str(path.with_name(".env.example")), "content": "NEW_FLAG=on\n"}),
    )
    with Tools(*uses) as api:
        words = (*options, *user_talk.words(api), "-p", "do it")
        done = user_talk.box.claudebox(*words, env=DUMMY_KEY, cwd=user_talk.project)
    assert done.returncode == 0, done.stderr
    read, edited, replaced, written = api.results
    assert "PORT=3000" in read
    assert "EROFS" in edited or "EBUSY" in edited, edited
    assert "Device or resource busy" in replaced
    assert CANARY not in str(api.requests)
    assert path.read_text() == ENV
    assert path.with_name(".env.example").read_text() == "NEW_FLAG=on\n", written
