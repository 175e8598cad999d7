"""The agent does something that looks ordinary, so that the report at the end says less."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conftest import AS_SOMEBODY, Account, Box

pytestmark = pytest.mark.req("INST-02")

TITLE = "left in the project, and this host may run it"
TASKS = "mkdir -p app/.vscode; echo evil > app/.vscode/tasks.json"


@pytest.fixture
def repository(account: Account, project: Path) -> Path:
    account.write(project / "app/main.py", "print()\n")
    account.write(project / "docs/example/.vscode/tasks.json", "evil\n")
    for words in ("init -q", "add -A", "commit -qm first"):
        account.run("git", *AS_SOMEBODY, *words.split(), cwd=project)
    return project


def said(done: subprocess.CompletedProcess[str]) -> str:
    _, found, after = done.stderr.partition("claudebox: ")
    return " ".join((found + after).split())


@pytest.mark.parametrize(
    "script",
    [
        TASKS,
        "mkdir .vscode; cp docs/example/.vscode/tasks.json .vscode",
        f"git init -q app; {TASKS}",
        f"cp -r app b; rm -r app; mv b app; git init -q app; {TASKS}",
        f"mv app b; ln -s b app; git init -q b; {TASKS}",
        f"git worktree add -q app/x; mv app/x/.git app; {TASKS}",
    ],
)
def test_planted_task_is_grave(box: Box, repository: Path, script: str) -> None:
    heard = said(box.inside("sh", "-c", script))
    assert TITLE in heard
    assert ".vscode/tasks.json" in heard.partition(TITLE)[2].partition("run when you ask for it")[0]


VALUES = {
    "zero-byte": "a\\0b",
    "not-utf-8": "a\\377b",
    "long": "'$(head -c 9000 /dev/zero | tr '\\0' x)'",
    "loop": "../loop",
    "dots": "'$(seq -f ../ 5000 | tr -d '\\n')'",
}


KEYS = (("core", "hooksPath"), ("include", "path"), ("core", "fsmonitor"), ("core", "worktree"))
FILES = ("commondir", "gitdir", "objects/info/alternates", "HEAD", "logs/HEAD")


@pytest.mark.parametrize("name", VALUES)
def test_value_that_is_no_path_hides_nothing(box: Box, repository: Path, name: str) -> None:
    value = VALUES[name]
    lines = ["ln -s loop loop", TASKS, f"mkdir p; printf 'gitdir: {value}\\n' > p/.git"]
    for number, (section, key) in enumerate(KEYS):
        lines += [f"git init -q k{number}", f"printf '[{section}]\\n{key} = {value}\\n' >> k{number}/.git/config"]
    for number, file in enumerate(FILES):
        lines += [f"git init -q f{number}; mkdir f{number}/.git/logs; printf '{value}\\n' > f{number}/.git/{file}"]
    heard = said(box.inside("sh", "-c", "\n".join(lines)))
    assert "app/.vscode/tasks.json" in heard
    assert "could not be looked at" not in heard
    assert box.inside("true").returncode == 0, "the next box starts"


# Each entry of this index has the name of the one before, and a letter more: few megabytes spell a gigabyte.
GROWING = r"""
entry = bytes(24) + b"\0\0\xe0\0" + bytes(12 + 20) + b"\0\1" + b"\0a\0"
open(".git/index", "wb").write(b"DIRC\0\0\0\4" + (40_000).to_bytes(4, "big") + entry * 40_000)
"""


@pytest.mark.parametrize("script", ["", GROWING], ids=["control", "growing"])
def test_index_of_endless_names_hides_nothing(box: Box, repository: Path, script: str) -> None:
    heard = said(box.inside("sh", "-c", f"{TASKS}; python3 -c '{script}'"))
    assert "app/.vscode/tasks.json" in heard
    assert ("new .git/index (cannot be listed" in heard) is bool(script)


# A comment is no news, and neither is a new repository. But the room in which configurations are understood has an end.
FILL = "git init -q r$n; (echo '# hook'; head -c 60000 /dev/zero | tr '\\0' '#') >> r$n/.git/config"
HOOKS = "git init -q --bare .git/modules/own; git -C .git/modules/own config core.hooksPath ../../../own-hooks"


@pytest.mark.parametrize(("amount", "is_too_much"), [(2, False), (12, True)])
def test_long_configurations_let_no_hook_be_forgotten(
    box: Box, account: Account, repository: Path, amount: int, is_too_much: bool
) -> None:
    account.run("sh", "-c", f"{HOOKS}; mkdir own-hooks", cwd=repository)
    heard = said(box.inside("sh", "-c", f"for n in $(seq {amount}); do {FILL}; done"))
    assert ("git's configuration is too long here" in heard) is is_too_much
    next_one = box.inside("sh", "-c", "echo evil > own-hooks/pre-commit")
    is_held = not (repository / "own-hooks/pre-commit").exists()
    assert is_held or ".git/modules/own: git's configuration is too long here" in " ".join(next_one.stderr.split())
