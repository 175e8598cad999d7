"""The agent does something that looks ordinary, so that the report at the end says less."""

import subprocess
from pathlib import Path

import pytest

from attacks.conftest import TITLE, box_words, said
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
    assert ("new .git/index (git would write where it leads)" in heard) is bool(script)  # and is taken away


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


# What looks like something else.


BARE = """
cd docs; git init -q --bare /tmp/b; cp -r /tmp/b/HEAD /tmp/b/objects /tmp/b/refs .; mkdir .git; printf %s "$0" > config
"""
OWN_WORK_TREE = '[core]\nrepositoryformatversion=0\nbare=false\nworktree=.\nfsmonitor="touch ~/ran; false"\n'


def test_empty_directory_of_git_hides_no_repository(box: Box, account: Account, repository: Path) -> None:
    heard = said(box.inside("sh", "-c", BARE, OWN_WORK_TREE))
    account.run("git", "status", cwd=repository / "docs")
    assert (account.home / "ran").exists(), "the attack is real"
    assert TITLE in heard
    assert "docs" in heard.partition(TITLE)[2]


@pytest.mark.parametrize("place", ["x", "docs"])
def test_crowd_in_another_repository_hides_nothing(box: Box, account: Account, repository: Path, place: str) -> None:
    script = f"""
    mkdir -p {place}/objects {place}/refs; echo ref: refs/heads/x > {place}/HEAD; touch $(seq -f {place}/f%.0f 2500)
    rm -f .git/COMMIT_EDITMSG; ln -s ~/.bashrc .git/COMMIT_EDITMSG
    """
    heard = said(box.inside("sh", "-c", script))
    assert not (repository / ".git/COMMIT_EDITMSG").is_symlink()
    assert ".git/COMMIT_EDITMSG" in heard


def test_crowd_in_the_same_one_is_named(box: Box, repository: Path) -> None:
    assert "nothing in it was looked at" in said(box.inside("sh", "-c", "touch $(seq -f .git/f%.0f 2500)"))


MODULES = {
    "before-the-standard-library": ("", "echo > argparse.py", "argparse.py"),
    "empty-directory": ("", "mkdir pre_commit", "pre_commit"),
    "compiled": ("", "echo > pre_commit.pyc", "pre_commit.pyc"),
    "extension": ("", "echo > json.cpython-311-x86_64-linux-gnu.so", "json.cpython-311-x86_64-linux-gnu.so"),
    "nested": ("lib", "echo > lib/pre_commit.py", "lib/pre_commit.py"),
}


@pytest.mark.parametrize("name", MODULES)
def test_module_that_a_hook_would_find_first_is_named(box: Box, account: Account, repository: Path, name: str) -> None:
    place, script, named = MODULES[name]
    if place:
        make_repository(account, account.write(repository / place / "file").parent)
    account.write(
        repository / place / ".git/hooks/pre-commit", "#!/bin/sh\nexec python3 -mjson.tool </dev/null\n", 0o755
    )
    assert f"new {named} (a hook or git's configuration runs" in said(box.inside("sh", "-c", script))
    assert said(box.inside("sh", "-c", "mkdir node_modules; echo > x.js; touch my-notes.py")) == ""


def test_copy_of_a_task_beside_another_program_is_named(box: Box, account: Account, repository: Path) -> None:
    account.write(repository / ".vscode/tasks.json", '{"tasks": [{"command": "./build.sh"}]}')
    heard = said(box.inside("sh", "-c", "cp -r .vscode docs; echo evil > docs/build.sh"))
    assert "docs/.vscode/tasks.json" in heard


def test_resolutions_that_git_would_replay_are_taken_away(box: Box, account: Account, repository: Path) -> None:
    """The directory alone switches it on."""
    assert "rr-cache" in said(box.inside("mkdir", ".git/rr-cache"))
    assert not (repository / ".git/rr-cache").exists()
    account.run("mkdir", "-p", ".git/rr-cache/1", cwd=repository)
    assert said(box.inside("sh", "-c", "mkdir .git/rr-cache/2; touch .git/rr-cache/2/preimage")) == "", (
        "it was on before"
    )


def test_directory_of_a_tool_that_nobody_can_list_stops_no_start(box: Box, account: Account, repository: Path) -> None:
    box.inside("sh", "-c", "mkdir .claude .vscode; chmod 0 .claude .vscode")
    done = box.inside("sh", "-c", "chmod 700 .claude; echo {} > .claude/settings.json")
    assert "itself failed" not in done.stderr
    for name in (".claude", ".vscode"):
        (repository / name).chmod(0o755)
    assert not (repository / ".claude/settings.json").exists()


# 65,536 bytes each, which take no room on the disk.
LARGE_REFS = """
import os
os.makedirs(".git/refs/heads/x")
for number in range(60000):
    file = os.open(f".git/refs/heads/x/{number}", os.O_CREAT | os.O_WRONLY); os.ftruncate(file, 1 << 16); os.close(file)
"""
LESS_MEMORY = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)); os.execv(sys.argv[1], sys.argv[1:])
"""


def test_large_refs_take_no_memory(box: Box, account: Account, repository: Path) -> None:
    words = box_words(box, "python3", "-c", f"{LARGE_REFS}\nopen('.envrc', 'w').write('x')")
    done = account.run("python3", "-c", LESS_MEMORY, *words, cwd=repository)
    assert "new .envrc" in said(done)
    assert "not all branches" in said(done)
    done = account.run("python3", "-c", LESS_MEMORY, *box_words(box, "true"), cwd=repository)
    assert done.returncode == 0, done.stderr


def test_report_that_could_not_be_kept_is_made_again(box: Box, account: Account, repository: Path) -> None:
    """A full disk, and nobody at the terminal any more."""
    account.write(account.home / ".claudebox/config.toml")
    script = "touch started; until test -e full; do sleep 0.02; done; echo x > .mcp.json"
    words = box_words(box, "sh", "-c", script)
    with account.running("sh", "-c", 'exec "$@" 2>/dev/null', "-", *words, cwd=repository) as process:
        assert comes_true((repository / "started").exists)
        account.run("prlimit", "--pid", str(process.pid), "--fsize=0")
        account.write(repository / "full")
        process.wait(60)
    assert "new .mcp.json" in said(box.inside("true"))


@pytest.mark.parametrize("key", ["init.defaultBranch", "user.name"])
def test_word_that_is_no_program_holds_nothing(box: Box, account: Account, repository: Path, key: str) -> None:
    account.run("git", "config", key, "main", cwd=repository)
    account.write(repository / "main", "x\n", 0o755)
    done = box.inside("sh", "-c", "rm main; echo new > main")
    assert (done.returncode, said(done)) == (0, ""), done.stderr


# Where nobody looks, because a name or a setting says so.


def whole_report(box: Box) -> str:
    return " ".join(box.claudebox("--report").stdout.split())


def change_meanwhile(box: Box, script: str, *changes: tuple[str, ...], options: tuple[str, ...] = ()) -> str:
    """What is said of a box beside which the user runs some commands; the script waits for them."""
    account, project = box.account, box.project
    words = box_words(box, "sh", "-c", f"touch started; until test -e done; do sleep 0.02; done; {script}")
    words = (words[0], *options, *words[1:])
    with account.running("sh", "-c", 'exec "$@" 2>said', "-", *words, cwd=project) as process:
        assert comes_true((project / "started").exists)
        for change in changes:
            account.run(*change, cwd=project)
        account.write(project / "done")
        process.wait(60)
    return " ".join((project / "said").read_text().split())


# Made elsewhere: what holds secrets by its name is covered as soon as it is made in a hidden place.
FILL_PRIVATE = """
mkdir -p $0.new/.vscode; echo {} > $0.new/.vscode/tasks.json; echo evil > $0.new/.envrc
git init -q $0.new/r; git -C $0.new/r config core.fsmonitor evil
mv $0.new $0
"""


@pytest.mark.parametrize("way", ["absent", "moved", "symlink"])
def test_place_that_is_not_hidden_after_all_is_looked_at(
    box: Box, account: Account, repository: Path, way: str
) -> None:
    private = "private" if way != "moved" else "area/private"
    if way == "moved":
        account.write(repository / private / "mine", "x\n")
    if way == "symlink":
        account.run("ln", "-s", "app", private, cwd=repository)
    script = {"absent": "", "moved": "mv area away; ", "symlink": f"rm {private}; "}[way] + FILL_PRIVATE
    box.inside("sh", "-c", script, private, options=("--hide", private))
    report = whole_report(box)
    for name in (".vscode/tasks.json", ".envrc", "r/.git core.fsmonitor = evil"):
        assert f"new {private}/{name}" in report


def test_what_the_user_does_in_a_hidden_place_is_no_news(box: Box, account: Account, repository: Path) -> None:
    account.write(repository / "private/.envrc", "x\n")
    account.write(repository / "private/node_modules/x/.vscode/tasks.json", "{}\n")
    script = "echo y > private/.envrc; mkdir private/.vscode private/mine; echo {} > private/.vscode/tasks.json"
    changes = ("sh", "-c", f"{script}; chmod 0 private/mine")
    assert change_meanwhile(box, "true", changes, options=("--hide", "private")) == ""
    assert (repository / "private/mine").stat().st_mode & 0o777 == 0
    (repository / "private/mine").chmod(0o755)


WITH_KEY = '{"mcpServers": {"a": {"command": "srv", "env": {"API_KEY": "sk-proj-Zq81LkPw02mXv7TtBn45RsYc93Hd"}}}}\n'
EVIL_SERVER = """echo '{"mcpServers": {"a": {"command": "./evil"}}}' > .mcp.json"""


def test_masked_file_that_the_user_removes_is_looked_at(box: Box, account: Account, repository: Path) -> None:
    account.write(repository / ".mcp.json", WITH_KEY)
    assert "changed .mcp.json" in change_meanwhile(box, EVIL_SERVER, ("rm", ".mcp.json"))


def test_masked_file_that_the_user_edits_is_no_news(box: Box, account: Account, repository: Path) -> None:
    account.write(repository / ".mcp.json", WITH_KEY)
    assert change_meanwhile(box, f"({EVIL_SERVER}) 2>/dev/null", ("sed", "s/srv/own/w .mcp.json", ".mcp.json")) == ""


UNDER_OTHER_NAMES = (
    ".claude/skills/target/SKILL.md",
    ".claude/agents/.cache/a.md",
    ".claude/commands/node_modules/venv/c.md",
    ".claude/skills/evil.sample/SKILL.md",
    ".devcontainer/venv/devcontainer.json",
    ".devcontainer/x.sample/devcontainer.json",
    ".mise/tasks/_build/x",
    ".vscode/target/tasks.json",
    ".vscode/tasks.sample",
)


@pytest.mark.parametrize("existed", [False, True])
def test_no_name_hides_something_in_a_guarded_place(
    box: Box, account: Account, repository: Path, existed: bool
) -> None:
    for name in UNDER_OTHER_NAMES if existed else ():
        account.write(repository / name.split("/")[0] / "x", "x\n")
    script = 'for file; do mkdir -p "${file%/*}"; echo evil > "$file"; done'
    box.inside(
        "sh", "-c", script, "-", *UNDER_OTHER_NAMES, options=("--review", "off", "--writable", ".")[: 4 * existed]
    )
    report = whole_report(box)
    for name in UNDER_OTHER_NAMES:
        assert f"new {name}" in report


def test_no_name_hides_a_worktree(box: Box, repository: Path) -> None:
    names = (".envrc", ".mcp.json", ".vscode/tasks.json")
    script = """
    git worktree add -q .claude/worktrees/target; cd .claude/worktrees/target
    mkdir .vscode; for file; do echo evil > $file; done
    """
    heard = said(box.inside("sh", "-ec", script, "-", *names))
    assert TITLE in heard
    report = whole_report(box)
    for name in names:
        assert f"new .claude/worktrees/target/{name}" in report


@pytest.mark.parametrize("mode", ["0", "444", "100"])
@pytest.mark.parametrize("place", [".", "app", "app/.vscode"])
def test_locked_directory_is_looked_at(box: Box, repository: Path, place: str, mode: str) -> None:
    script = "mkdir app/.vscode; for one in app app/.vscode; do echo evil > $one/.envrc; done"
    heard = said(box.inside("sh", "-c", f"{script}; chmod {mode} app/.vscode; chmod {mode} {place}"))
    assert "is broken" not in heard
    assert "app/.envrc" in heard
    assert "app/.vscode/.envrc" in heard


def test_directory_that_the_user_has_locked_stays_so(box: Box, account: Account, repository: Path) -> None:
    account.write(repository / "mine/x", "x\n")
    (repository / "mine").chmod(0)
    assert said(box.inside("sh", "-c", "touch app/x")) == ""
    assert (repository / "mine").stat().st_mode & 0o777 == 0
    (repository / "mine").chmod(0o755)


def test_lock_of_a_flake_is_named(box: Box, account: Account, repository: Path) -> None:
    account.write(repository / "flake.lock", "{}\n")
    assert "changed flake.lock" in said(box.inside("sh", "-c", "echo '{1}' > flake.lock"))


def test_repository_of_jujutsu_that_is_elsewhere_is_named(box: Box, account: Account, repository: Path) -> None:
    account.write(repository / ".jj/repo/config.toml", "\n")
    script = "mkdir -p app/.jj; echo ../../evil > app/.jj/repo"
    assert "new app/.jj/repo (another version control system obeys it)" in said(box.inside("sh", "-c", script))


LOCK_DEEP = """
p=.; for i in $(seq 24); do p=$p/d; mkdir $p; done
mkdir $p/.vscode; echo {} > $p/.vscode/tasks.json
while [ $p != . ]; do chmod 0 $p; p=${p%/*}; done
"""


def test_what_is_locked_in_many_directories_is_looked_at_by_the_next_start(box: Box, repository: Path) -> None:
    """The end of the box gives up after some, and the next start took them for the user's own."""
    first, then = said(box.inside("sh", "-c", LOCK_DEEP)), said(box.inside("true"))
    assert "an editor runs it" in first + then, "root can look at once"
    subprocess.run(["chmod", "-R", "u+rwX", str(repository / "d")], check=True)
