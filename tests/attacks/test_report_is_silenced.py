"""The agent does something that looks ordinary, so that the report at the end says less."""

from __future__ import annotations

from pathlib import Path

import pytest

from attacks.conftest import TITLE, said
from conftest import Account, Box, make_repository
from patience import comes_true

pytestmark = pytest.mark.req("INST-02")

TASKS = "mkdir -p app/.vscode; echo evil > app/.vscode/tasks.json"


@pytest.fixture
def repository(account: Account, project: Path) -> Path:
    account.write(project / "app/main.py", "print()\n")
    account.write(project / "docs/example/.vscode/tasks.json", "evil\n")
    return make_repository(account, project)


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
    assert ".vscode/tasks.json" in heard.partition(TITLE)[2].partition("which a tool may obey")[0]


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


# Each entry of this index has the name of the one before, and a letter more: few megabytes spell a gigabyte.
GROWING = r"""
entry = bytes(24) + b"\0\0\xe0\0" + bytes(12 + 20) + b"\0\1" + b"\0a\0"
open(".git/index", "wb").write(b"DIRC\0\0\0\4" + (40_000).to_bytes(4, "big") + entry * 40_000)
"""


@pytest.mark.parametrize("script", ["", GROWING], ids=["control", "growing"])
def test_index_of_endless_names_hides_nothing(box: Box, repository: Path, script: str) -> None:
    heard = said(box.inside("sh", "-c", f"{TASKS}; python3 -c '{script}'"))
    assert "app/.vscode/tasks.json" in heard
    assert ("changed .git/index (what git status hides could not be read)" in heard) is bool(script)


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


# What the agent leaves where nobody looks at a start: below node_modules, .venv, target and their like.


EVIL = "config core.fsmonitor $PWD/evil"


@pytest.fixture
def project_with_program(account: Account, project: Path) -> Path:
    account.write(project / "evil", f"#!/bin/sh\necho ran > {account.home}/ran\n", mode=0o755)
    return project


PLACES = [".venv", "target", "node_modules/x", ".venv/src/package", "a/node_modules/b/_build", ".jj/x"]


def test_repository_that_runs_something_is_named(box: Box, account: Account, project_with_program: Path) -> None:
    plant = "mkdir -p $place; git init -q $place; git -C $place"
    heard = said(box.inside("sh", "-c", f"for place in {' '.join(PLACES)}; do {plant} {EVIL}; done"))
    assert TITLE in heard
    whole = " ".join(box.claudebox("--report").stdout.split())
    for place in PLACES:
        assert f"new {place}/.git core.fsmonitor = " in whole
        account.run("git", "status", cwd=project_with_program / place)
        assert (account.home / "ran").exists(), "the attack is real"
        (account.home / "ran").unlink()
    assert comes_true(lambda: said(box.inside("true")) == ""), "once is enough"


def test_repository_that_is_prepared_elsewhere_is_named(box: Box, project_with_program: Path) -> None:
    prepare = f"mkdir -p target/x; git init -q target/x; git -C target/x {EVIL}; mv target/x/.git target/x/later"
    done = box.inside("sh", "-c", f"{prepare}; rm target/x/later/HEAD")
    assert said(done) == "", "git obeys none of it"
    heard = said(box.inside("sh", "-c", "cd target/x; echo ref: refs/heads/x > later/HEAD; mv later .git"))
    assert "new target/x/.git (a repository: git obeys it) core.fsmonitor = " in heard


def test_symlink_that_leaves_the_project_is_named(box: Box, project: Path) -> None:
    script = """
    mkdir -p .mypy_cache node_modules/x .venv/bin
    ln -s ~/.bashrc .mypy_cache/x.json; ln -s /etc/shadow node_modules/x/y
    ln -s ~/.bashrc .venv/bin/python; touch .venv/pyvenv.cfg
    """
    heard = said(box.inside("sh", "-c", script))
    assert ".mypy_cache/x.json, .venv/bin/python, node_modules/x/y (a symlink that leaves the project)" in heard


QUIET = """
mkdir -p .venv/src; git init -q .venv/src/package; git init -q --bare node_modules/.cache
mkdir -p node_modules/.bin node_modules/x; ln -s ../x node_modules/.bin/x; ln -s ../../a node_modules/x/a
python3 -m venv --without-pip env/.venv
mkdir -p .venv/bin; touch .venv/pyvenv.cfg; ln -s $PWD/tools/python3.11 .venv/bin/python
"""


def test_ordinary_installation_says_nothing(box: Box, account: Account, project: Path) -> None:
    account.write(project / "tools/python3.11", "#!/bin/sh\n", 0o755)
    done = box.inside("sh", "-ec", QUIET)
    assert done.returncode == 0, done.stderr
    assert said(done) == ""


def test_program_for_the_group_is_named(box: Box, project: Path) -> None:
    """Where a group shares the project, the bit cannot be refused."""
    project.chmod(0o2775)
    heard = said(box.inside("sh", "-c", "mkdir -p x target; cp /bin/true x; cp /bin/true target; chmod g+s */true"))
    assert "target/true, x/true (makes whoever starts it you, or one of your group)" in heard
