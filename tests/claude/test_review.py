"""The real Claude Code works a whole task in a box with a layer; it lands when somebody says so."""

from __future__ import annotations

import pytest

from claude.session import Talk, fingerprint

pytestmark = [pytest.mark.req("LAND-01"), pytest.mark.attributes]

AS_SOMEBODY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
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
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        assert account.run("git", *AS_SOMEBODY, *words, cwd=project).returncode == 0
    before = fingerprint(project)
    session = talk("--review", commands=TASK)
    assert session.status == 0, session.stderr
    assert fingerprint(project) == before
    assert "Your changes wait for the user" in session.sent
    landed = talk.box.claudebox("--review", "land", "--land", "safe")
    assert "fix: new, 1 commit" in landed.stderr, landed.stderr
    assert (project / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"
    assert not (project / ".github/workflows/ci.yml").exists()
    log = account.run("git", "log", "--format=%s", "refs/claudebox/1/fix", cwd=project).stdout
    assert log == "fix add\nfirst\n"
