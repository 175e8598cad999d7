"""With --review, nothing of what a box does reaches the host before somebody says so; then all of it does."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Account, Box
from patience import comes_true
from unit.overlay.world import Picture, picture

pytestmark = [pytest.mark.req("LAND-01"), pytest.mark.attributes]

REVIEW = ("--review",)
LAND_ALL = ("--review", "--land", "all")
WHEN = "2026-01-01T00:00:00Z"
DATES = ("--env", f"GIT_AUTHOR_DATE={WHEN}", "--env", f"GIT_COMMITTER_DATE={WHEN}")
AS_SOMEBODY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
# A whole task: edit, test, move, delete, commit, and go on in another branch.
TASK = """
set -e
sed -i 's/a - b/a + b/' calc.py
python3 -c 'from calc import add; assert add(2, 3) == 5'
rm -r __pycache__ old
mkdir -p src/pkg && mv util.py src/pkg/util.py && echo '# moved' >> src/pkg/util.py
chmod 755 run.sh
ln -s src/pkg/util.py util
printf 'a\\nb\\n' > 'a name with spaces'
git add -A && git commit -qm 'fix add'
git checkout -qb feature
echo more >> README.md
git commit -qam 'more'
git checkout -q main && git merge -q feature && git branch -d -q feature && git checkout -qb next
echo loose > loose.txt
git status --short
"""


def git(account: Account, where: Path, *arguments: str) -> str:
    done = account.run("git", *AS_SOMEBODY, *arguments, cwd=where)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def repository(account: Account, project: Path) -> Path:
    files = {
        "calc.py": "def add(a, b):\n    return a - b\n",
        "util.py": "x = 1\n",
        "run.sh": "#!/bin/sh\n",
        "old/one": "1\n",
        "old/deep/two": "2\n",
        ".github/workflows/ci.yml": "on: push\n",
    }
    for name, text in files.items():
        account.write(project / name, text)
    git(account, project, "init", "-q")
    git(account, project, "add", "-A")
    account.run("git", *AS_SOMEBODY, "commit", "-qm", "first", cwd=project, env={"GIT_COMMITTER_DATE": WHEN})
    return project


def files_of(project: Path) -> Picture:
    """The project without git's own, which differs from one clone to the next."""
    return {name: what for name, what in picture(project).items() if name.split("/")[0] != ".git"}


def layers_of(account: Account) -> list[Path]:
    return sorted(path for path in account.home.glob(".claudebox/instances/*/layers/*") if path.name.isdigit())


def test_nothing_lands_by_itself(box: Box, repository: Path) -> None:
    before = picture(repository)
    done = box.inside("sh", "-c", TASK, options=REVIEW)
    assert done.returncode == 0, done.stderr
    assert picture(repository) == before
    assert "deleted     old/ (2 files), util.py" in done.stderr
    assert "claudebox --review land 1" in done.stderr
    listed = box.claudebox("--review", "list")
    assert "4 added, 3 changed, 3 deleted" in listed.stdout


def test_landed_task_is_what_a_direct_box_leaves(box: Box, repository: Path) -> None:
    other = repository.parent / "direct"
    shutil.copytree(repository, other, symlinks=True)
    box.account.own(other)
    direct = Box(box.account, other)
    status = direct.sh(TASK, options=DATES)
    assert box.sh(TASK, options=(*LAND_ALL, *DATES)) == status
    assert files_of(repository) == files_of(other)
    assert layers_of(box.account) == []
    # The commits are here, and no branch has moved.
    assert git(box.account, repository, "branch", "--format=%(refname:short)") == "main\n"
    theirs = git(box.account, other, "rev-parse", "next")
    assert git(box.account, repository, "rev-parse", "refs/claudebox/1/next") == theirs
    git(box.account, repository, "fsck", "--strict")


def test_layer_is_gone_on_with(box: Box, repository: Path) -> None:
    box.sh("echo one >> README.md", options=REVIEW)
    done = box.inside("sh", "-c", "cat README.md; echo two >> README.md", options=REVIEW)
    assert done.stdout == "a shop\none\n"
    assert "goes on with what was kept as review 1" in done.stderr
    assert box.claudebox("--review", "land", "--land", "safe").returncode == 0
    assert (repository / "README.md").read_text() == "a shop\none\ntwo\n"
    assert layers_of(box.account) == []


@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_directory_that_was_made_anew_does_not_go_on_with_the_old_review(box: Box, repository: Path, how: str) -> None:
    """ext4 gives the number of a deleted directory to the next one."""
    box.sh("echo one >> README.md", options=REVIEW)
    shutil.rmtree(repository) if how == "deleted" else repository.rename(repository.with_name("before"))
    box.account.write(repository / "README.md", "another shop\n")
    done = box.inside("sh", "-c", "cat README.md; echo two >> README.md", options=REVIEW)
    assert done.stdout == "another shop\n", done.stderr
    assert "review 1 is of another directory that was here before, and stays as it is" in done.stderr
    assert [path.name for path in layers_of(box.account)] == ["1", "2"]
    assert "goes on with what was kept as review 2" in box.inside("true", options=REVIEW).stderr


def test_session_that_changes_nothing_says_nothing(box: Box, repository: Path) -> None:
    done = box.inside("sh", "-c", "git status; touch README.md; ls -R >/dev/null", options=REVIEW)
    assert "claudebox: review" not in done.stderr
    assert "the box has left this" not in done.stderr
    assert layers_of(box.account) == []


def test_host_run_files_need_a_choice(box: Box, repository: Path) -> None:
    script = """
    echo 'run: evil' >> .github/workflows/ci.yml; mkdir .vscode; echo '{}' > .vscode/tasks.json; echo evil > .envrc
    echo fine > fine; ln -s /etc/passwd leaving
    """
    done = box.inside("sh", "-c", script, options=("--review", "--land", "safe"))
    assert "host runs" in done.stderr
    assert (repository / "fine").exists()
    assert files_of(repository)[".github/workflows/ci.yml"][1] == "on: push\n"
    assert not any(os.path.lexists(repository / name) for name in (".vscode", ".envrc", "leaving"))
    assert box.claudebox("--review", "land", "--land", "all").returncode == 0
    assert (repository / ".envrc").read_text() == "evil\n"


def test_nothing_of_git_but_commits_arrives(box: Box, repository: Path) -> None:
    script = """
    printf '#!/bin/sh\\ntouch /tmp/ran\\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit
    git config core.fsmonitor "$PWD/evil"; echo ../planted > .git/commondir; rm .git/commondir
    git init -q sub; git -C sub commit -q --allow-empty -m x; git add sub; git commit -qm gitlink; echo x > sub/file
    """
    before = picture(repository / ".git")
    done = box.inside("sh", "-c", script, options=LAND_ALL)
    assert done.returncode == 0, done.stderr
    after = picture(repository / ".git")
    news = {name for name in after if after[name] != before.get(name)}
    assert all(name.startswith(("objects", "refs/claudebox", "logs")) for name in news), news
    assert (repository / "sub/file").exists()
    assert not (repository / "sub/.git").exists()


@pytest.mark.root
def test_file_of_another_group_is_named_since_the_box_cannot_change_it(box: Box, repository: Path) -> None:
    os.chown(repository / "util.py", -1, 4711)
    done = box.inside("sh", "-c", "echo x >> util.py; echo x >> calc.py", options=REVIEW)
    assert "util.py: belongs to another group" in " ".join(done.stderr.split())
    assert "Value too large" in done.stderr  # if a kernel can do it one day, the note can go
    assert "1 changed" in done.stderr


@contextlib.contextmanager
def running(box: Box) -> Iterator[subprocess.Popen[str]]:
    """A box with a layer, which has written something and waits for a line."""
    command = [CLAUDEBOX, "--yes", "--review", "--run", "sh", "-c", "echo 1 > mine; echo ready; read line"]
    with box.account.running(*command, cwd=box.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


def test_two_boxes_share_no_layer(box: Box, repository: Path) -> None:
    with running(box) as first:
        assert box.sh("ls", options=REVIEW).count("mine") == 0
        assert "in use" in box.claudebox("--review", "discard", "1", "--yes").stderr
        first.communicate("\n")
    assert [path.name for path in layers_of(box.account)] == ["1"]


def test_killed_box_keeps_its_layer(box: Box, repository: Path) -> None:
    before = picture(repository)
    with running(box) as process:
        process.kill()
    assert comes_true(lambda: "1 added" in box.claudebox("--review", "list").stdout)
    assert picture(repository) == before


def test_host_that_changed_the_same_file_keeps_it(box: Box, repository: Path) -> None:
    box.sh("echo agent >> README.md; echo agent >> calc.py; rm util.py", options=REVIEW)
    (repository / "README.md").write_text("the host's\n")
    (repository / "util.py").write_text("the host's\n")
    done = box.claudebox("--review", "land", "--land", "all")
    assert "conflict    README.md, util.py" in done.stderr
    assert (repository / "README.md").read_text() == "the host's\n"
    assert (repository / "util.py").read_text() == "the host's\n"
    assert "agent" in (repository / "calc.py").read_text()
    assert [path.name for path in layers_of(box.account)] == ["1"]


def test_linked_worktree_is_a_layer_with_its_repository(box: Box, repository: Path) -> None:
    linked = repository.parent / "linked"
    git(box.account, repository, "worktree", "add", "-q", str(linked), "-b", "side")
    before = picture(repository)
    other = Box(box.account, linked)
    done = other.inside("sh", "-c", "echo x > x; git add x; git commit -qm x", options=REVIEW)
    assert done.returncode == 0, done.stderr
    assert picture(repository) == before
    assert not (linked / "x").exists()
    done = other.claudebox("--review", "land", "--land", "all")
    assert "side: 1 commit further" in done.stderr, done.stderr
    assert (linked / "x").exists()
    assert git(box.account, repository, "log", "--format=%s", "refs/claudebox/1/side").splitlines()[0] == "x"


def test_commits_that_cannot_be_packed_are_not_lost(box: Box, repository: Path) -> None:
    """A damaged repository in the layer gives no bundle, as one without news does."""
    box.inside("sh", "-c", "git commit -q --allow-empty -m precious; rm .git/HEAD", options=REVIEW)
    done = box.claudebox("--review", "land", "--land", "all")
    assert "the commits stay in the layer" in done.stderr
    assert len(layers_of(box.account)) == 1


def test_commits_arrive_though_the_box_does_not_see_the_hosts(box: Box, repository: Path) -> None:
    """Git packs its objects in the box, and removes the directories in which the host's later ones are."""
    gone = "mkdir -p .git/objects/{0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f}{0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f}"
    git(box.account, repository, "config", "gc.pruneExpire", "now")
    assert box.account.run("bash", "-c", gone, cwd=repository).returncode == 0
    script = "git commit -q --allow-empty -m precious; git gc -q; rmdir .git/objects/?? 2>/dev/null; :"
    box.inside("sh", "-c", script, options=REVIEW)
    git(box.account, repository, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    done = box.claudebox("--review", "land", "--land", "all")
    assert done.returncode == 0, done.stderr
    log = git(box.account, repository, "log", "--format=%s", "refs/claudebox/1/main")
    assert log.splitlines()[0] == "precious", done.stderr


@pytest.mark.parametrize(
    ("script", "left"),
    [
        ("echo precious > a; git add a; git stash -q", ".git/refs/stash"),
        ("git checkout -q --detach; git commit -q --allow-empty -m precious", ".git/HEAD"),
    ],
)
def test_work_that_no_branch_has_is_not_lost(box: Box, repository: Path, script: str, left: str) -> None:
    """No file of the project tells of it, and only branches arrive."""
    done = box.inside("sh", "-c", script, options=("--review", "--land", "all"))
    assert done.returncode == 0, done.stderr
    assert f"never lands {left}" in done.stderr
    assert len(layers_of(box.account)) == 1
    done = box.inside("sh", "-c", "git checkout -q main; git stash drop -q; :", options=("--review", "--land", "all"))
    assert layers_of(box.account) == [], done.stderr
