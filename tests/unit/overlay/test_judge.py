"""What this host would run is set apart, whatever the agent calls it."""

import pytest

from claudebox.model import Guarded
from claudebox.overlay.changes import ADDED, CHANGED, DELETED, DIRECTORY, FILE, LINK, Change
from claudebox.overlay.comparison import judge

pytestmark = pytest.mark.req("LAND-01")


def reasons(*changes: Change, on_host: tuple[str, ...] = ()) -> dict[str, str]:
    items = judge(changes, "/home/alice/shop", lambda path: path in on_host, ())
    return {item.path: item.reason for item in items if item.reason}


@pytest.mark.parametrize(
    "path",
    [
        *(".envrc", "deep/down/.envrc", ".envrc.local", ".vscode/tasks.json", ".github/workflows/ci.yml", ".mcp.json"),
        *(".claude/settings.local.json", ".claude/hooks/x", ".husky/pre-commit", "Jenkinsfile", "x.code-workspace"),
        *(".config/mise/config.toml", ".claudebox.toml"),
        # An agent on this host takes these up by itself, and their heads have hooks and permissions.
        *(".claude/skills/x/SKILL.md", ".claude/agents/x.md", ".claude/commands/x.md", ".github/agents/x.agent.md"),
        *(".claude/worktrees/side/.claude/skills/x/SKILL.md", "deep/.kiro/agents/x.md"),
        # Nobody knows all files that an agent obeys.
        *(".claude/scheduled_tasks.json", ".claude/launch.json", ".cursor/worktrees.json", ".gemini/x/y.toml"),
        *(".claude/md", ".github/.claude/x.sh", ".codex/environments/setup", ".claude/worktrees/x/.cursor/y.json"),
        *(".github/extensions/x.md", ".gitlab/duo/x.md", ".unheard-of/x", ".npmrc"),
    ],
)
def test_file_that_the_host_runs_is_set_apart(path: str) -> None:
    assert path in reasons(Change(path, ADDED, FILE))
    assert path in reasons(Change(path, DELETED, FILE))


@pytest.mark.parametrize(
    "path",
    [
        *("src/main.py", "Makefile", ".claude/rules/X.MD", ".cursor/rules/x.mdc", "HEAD", ".gitignore"),
        *(".github/README.md", ".github/ISSUE_TEMPLATE/bug.md", ".claude/worktrees/side/src/main.py"),
        *(".claude/worktrees/side/.claude/worktrees/inner/main.py", "node_modules/.bin/x"),
    ],
)
def test_work_of_the_agent_is_not(path: str) -> None:
    assert reasons(Change(path, CHANGED, FILE)) == {}


def test_new_directory_is_judged_like_a_text_in_it() -> None:
    rooms = [Change(name, ADDED, DIRECTORY) for name in (".claude", ".claude/rules", ".claude/skills", ".vscode", "a")]
    assert reasons(*rooms).keys() == {".claude/skills", ".vscode"}
    assert reasons(Change(".claude", DELETED, DIRECTORY), Change(".x", DELETED, DIRECTORY)).keys() == {".claude", ".x"}


def test_place_that_something_leads_to_is_set_apart() -> None:
    """A script that a hook runs, or that a unit of the user starts, has no telling name."""
    held = [Guarded("/home/alice/shop/scripts/deploy", "git", "git's configuration runs it")]
    changes = [
        Change("scripts/deploy", CHANGED, FILE),
        Change("scripts/other", CHANGED, FILE),
        Change("scripts", DELETED, DIRECTORY, gone=2),
    ]
    items = judge(changes, "/home/alice/shop", lambda _: False, held)
    assert [item.path for item in items if item.reason] == ["scripts/deploy", "scripts"]


def test_repository_of_any_name_is_set_apart() -> None:
    bare = [Change("b", ADDED, DIRECTORY), Change("b/HEAD", ADDED, FILE), Change("b/objects", ADDED, DIRECTORY)]
    assert set(reasons(*bare, Change("b/hooks/x", ADDED, FILE))) == {"b/HEAD", "b/objects", "b/hooks/x"}
    # What makes it one may come last, when the rest has landed.
    assert reasons(Change("b/objects", ADDED, DIRECTORY), on_host=("b/HEAD", "b/config"))
    assert reasons(Change("b/config", CHANGED, FILE), on_host=("b/HEAD", "b/objects"))
    assert reasons(Change("b/config", CHANGED, FILE)) == {}


def test_repository_whose_rest_is_elsewhere_is_set_apart() -> None:
    """Git takes a directory with these two for one, and obeys the configuration of whatever the second one names."""
    apart = reasons(
        Change("new", ADDED, DIRECTORY),
        Change("new/HEAD", ADDED, FILE),
        Change("new/commondir", ADDED, FILE),
        Change("other/config", ADDED, FILE),
        Change("other/objects", ADDED, DIRECTORY),
    )
    assert set(apart) == {"new/HEAD", "new/commondir"}
    assert reasons(Change("new/HEAD", ADDED, FILE), on_host=("new/commondir",))


@pytest.mark.parametrize(
    ("path", "target", "leaves"),
    [
        ("a/link", "../b", False),
        ("a/link", "../../b", True),
        ("link", "/etc/passwd", True),
        ("link", "/usr/bin/env", False),
        ("link", "/home/alice/shop/x", False),
        ("link", "/home/alice/shopping", True),
        ("a/link", ".//../b", False),
        # If `a/up` is a symlink to `..`, these lead beside the project.
        ("link", "a/up/../secrets", True),
        ("a/link", "../a/up/../secrets", True),
        ("link", "/home/alice/shop/a/up/../secrets", True),
    ],
)
def test_symlink_that_leaves_is_set_apart(path: str, target: str, leaves: bool) -> None:
    assert bool(reasons(Change(path, ADDED, LINK, target=target))) is leaves


def test_directory_with_a_repository_is_not_deleted_unseen() -> None:
    assert reasons(Change("vendor", DELETED, DIRECTORY, gone=3, holds_git=True))
