"""The one table and the one judgement: what is held, what is named, and what is nobody's business."""

from pathlib import Path

import pytest

from claudebox.host.walk import walk_project
from claudebox.overlay.table import HARMLESS, IN_ROOTS, ROWS, WANTED, Reason, why
from hosts.machine import plant
from unit.features.guard.test_decide import P, held

pytestmark = pytest.mark.req("GUARD-01")

WORDS = [(group, word) for group, _, *lines in ROWS for line in lines for word in line.split()]
ANYWHERE = [word.replace("*", "x") for group, word in WORDS if group not in IN_ROOTS]
WALLED = [".claude/settings.json", ".claude/hooks/x", ".cursor/mcp.json", ".github/workflows/ci.yml", ".gitlab/duo/x"]
HELD = [word.replace("*", "x") for _, word in WORDS] + WALLED


def test_every_row_says_why_in_one_line_and_is_there_once() -> None:
    assert len(set(WORDS)) == len(WORDS)
    assert all(0 < len(row[1]) < 60 for row in ROWS)


def test_every_row_is_found_held_and_grave_and_the_walk_finds_it(tmp_path: Path) -> None:
    found = set(held(plant(tmp_path, "\n".join(f"~/shop/{name}" for name in HELD))))
    tops = {name.partition("/")[0] for name in HELD}
    assert {name for name in HELD if not found & {name, name.rpartition("/")[0]}} == set()
    entries = walk_project(plant(tmp_path / "tops", "\n".join(f"~/shop/{name}" for name in tops)), P, WANTED)
    assert {entry.name for entry in entries} == tops
    assert [name for name in HELD if (reason := why(name)) is None or not reason.is_grave] == []
    assert [name for name in HELD if (reason := why(f"deep/down/{name}")) is None or not reason.is_grave] == []


def test_hooks_and_ci_are_held_in_the_root_of_a_repository(tmp_path: Path) -> None:
    tree = plant(tmp_path, "\n".join(f"~/shop/a/b/{name}" for name in HELD))
    assert {f"a/b/{name}" for name in ANYWHERE} <= set(held(tree))
    assert "a/b/lefthook.x" not in held(tree)


@pytest.mark.parametrize(
    "path",
    """.foo .foo/config.toml deep/.foo/x .npmrc .eslintrc.json .prettierrc .config/x.toml .env .claude/rules/.foo/x.md
    .cursorrules flake.nix .foo/node_modules/x .bloop/root.json""".split(),
)
def test_what_an_unknown_tool_may_obey_is_named_and_not_held(tmp_path: Path, path: str) -> None:
    reason = why(path)
    assert reason is not None
    assert not reason.is_grave
    assert held(plant(tmp_path, f"~/shop/{path}")) == []


@pytest.mark.parametrize(
    "path",
    """.gitignore .gitkeep .editorconfig .nvmrc .python-version .eslintcache .coverage .coverage.host.1 .DS_Store
    .env.example .prettierignore .pytest_cache/x .venv/bin/x .next/.x/y .mailmap node_modules/.bin/x target/.rustc.json
    node_modules/x/.vscode/tasks.json .hg/store/x .jj/repo/store/x src/main.py Makefile package.json AGENTS.md docs
    .claude/rules/X.MD .claude/CLAUDE.md .cursor/rules/a/x.mdc .github/README.md .github/ISSUE_TEMPLATE/bug.md
    .github/logo.svg .claude/worktrees/side/src/main.py .claude/worktrees .hypothesis/.x/y""".split(),
)
def test_what_is_nobodys_business(path: str) -> None:
    assert why(path) is None


@pytest.mark.parametrize(
    "path",
    """.claude .claude/skills/x/SKILL.md .claude/commands/x.md .claude/agents/x.md .claude/hooks/x.md .claude/rules/x.sh
    .github/extensions/x.md .gitlab/duo/x.md .github/copilot/settings.json .github/prompts/x.md .codex/rules/x.rules
    .claude/rules .claude/unheard-of.json .opencode/plugin/x.md .github/ISSUE_TEMPLATE/x.sh .claude/worktrees/a/.envrc
    .claude/worktrees/side/.claude/skills/x/SKILL.md .GitHub/workflows/x.yml""".split(),
)
def test_of_a_tools_directory_only_prose_is_nobodys_business(path: str) -> None:
    reason = why(path)
    assert reason is not None
    assert reason.is_grave


@pytest.mark.parametrize(
    "path", [".git", "a/.git/config", "node_modules/x/.git/hooks/y", ".venv/.git", ".cache/a/.git/x"]
)
def test_no_directory_covers_a_repository(path: str) -> None:
    assert why(path) == Reason("git obeys it", is_grave=True)


def test_harmless_names_are_in_lower_case_and_held_by_no_row() -> None:
    assert {name.lower() for name in HARMLESS} == HARMLESS
    assert [name for name in HARMLESS if (reason := why(f"{name}/x")) is not None and reason.is_grave] == []
