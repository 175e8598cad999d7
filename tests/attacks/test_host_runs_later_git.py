"""The agent plants something that a git command on the host would run: the `git status` of a prompt is enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import AS_SOMEBODY, Account, Box, git

pytestmark = pytest.mark.req("INST-02")


@pytest.fixture
def repository(account: Account, project: Path) -> Path:
    """With a worktree outside, a submodule, hooks in the project, and an included file."""
    library = account.home / "src/library"
    for where in (library, project):
        account.write(where / "file", "content\n")
        git(account, where, "init", "-q")
        git(account, where, "add", "-A")
        git(account, where, "commit", "-qm", "first")
    git(account, project, "submodule", "--quiet", "add", str(library), "deps/library")
    account.write(project / "team.gitconfig", "[pull]\n\trebase = true\n")
    account.write(project / "tools/hooks/pre-commit", "#!/bin/sh\n", mode=0o755)
    account.write(project / "tools/filter", "#!/bin/sh\ncat\n", mode=0o755)
    git(account, project, "config", "include.path", "../team.gitconfig")
    git(account, project, "config", "filter.ours.clean", "sh ./tools/filter")
    git(account, project, "config", "core.hooksPath", "tools/hooks")
    account.write(project / ".gitattributes", "*.csv filter=ours\n")
    git(account, project, "add", "-A")
    git(account, project, "commit", "-qm", "second")
    git(account, project, "worktree", "add", "-q", "-b", "side", str(account.home / "trees/side"))
    account.write(project / "evil", f"#!/bin/sh\necho ran > {account.home}/ran\n", mode=0o755)
    return project


# What the agent does, and where a git command of the user's then runs it.
EVIL = "git config --file planted/config core.fsmonitor $PWD/evil"
PLANT = f"mkdir -p planted; git init -q --bare planted; {EVIL}; git config --file planted/config core.bare false"
ATTACKS = {
    "configuration": "git config core.fsmonitor $PWD/evil",
    "configuration-by-hand": "printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/evil >> .git/config",
    "renamed-git-directory": f"{PLANT}; cp .git/HEAD .git/index planted/; mv .git old; mv planted .git",
    "included-file": "git config --file team.gitconfig core.fsmonitor $PWD/evil",
    "renamed-included-file": "cp evil x; git config --file x.cfg core.fsmonitor $PWD/evil; mv x.cfg team.gitconfig",
    "configuration-of-a-submodule": "git config --file .git/modules/deps/library/config core.fsmonitor $PWD/evil",
    "git-file-of-a-submodule": f"{PLANT}; echo gitdir: ../../planted > deps/library/.git",
    "renamed-submodule": f"{PLANT}; mv deps old; mkdir -p deps/library; echo gitdir: ../../planted > deps/library/.git",
    "renamed-modules": f"{PLANT}; mv .git/modules .git/old; mkdir -p .git/modules/deps; "
    "cp -r planted .git/modules/deps/library",
    "common-directory-of-a-worktree": f"{PLANT}; echo ../../../planted > .git/worktrees/side/commondir",
    "renamed-worktree": f"{PLANT}; mv .git/worktrees/side .git/old; cp -r .git/old .git/worktrees/side; "
    "echo ../../../planted > .git/worktrees/side/commondir",
    "hook-of-the-project": "cp evil tools/hooks/pre-commit",
    "renamed-hooks-of-the-project": "mv tools old; mkdir -p tools/hooks; cp evil tools/hooks/pre-commit",
    "new-hook-of-the-project": "cp evil tools/hooks/post-commit",
    "program-of-a-filter": "cp evil tools/filter; touch x.csv; git add -N x.csv; echo more > x.csv",
}


def host_uses_git(account: Account, repository: Path) -> bool:
    """Whether something that the agent planted was run."""
    for where in (repository, account.home / "trees/side"):
        account.run("git", "status", cwd=where)
        account.run("git", *AS_SOMEBODY, "diff", "--stat", cwd=where)
    account.run("git", *AS_SOMEBODY, "commit", "-q", "--allow-empty", "-m", "x", cwd=repository)
    return (account.home / "ran").exists()


def attack(box: Box, script: str, *options: str) -> None:
    # What git in the box would run itself is not the point.
    done = box.inside("sh", "-c", f"{script}; rm -f {box.account.home}/ran", options=options)
    assert "error: " not in done.stderr.splitlines()[0], done.stderr


@pytest.mark.parametrize("name", ATTACKS)
def test_git_on_the_host_runs_nothing_planted(box: Box, account: Account, repository: Path, name: str) -> None:
    attack(box, ATTACKS[name])
    assert not host_uses_git(account, repository)


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.root_repeats("shows that the attack is real, which one account does")
def test_git_on_the_host_would_run_it_without_the_guard(
    box: Box, account: Account, repository: Path, name: str
) -> None:
    attack(box, ATTACKS[name], "--writable", ".")
    assert host_uses_git(account, repository)


@pytest.mark.parametrize("name", ["configuration-by-hand", "common-directory-of-a-worktree", "hook-of-the-project"])
def test_worktree_as_the_project_is_guarded(box: Box, account: Account, repository: Path, name: str) -> None:
    """Its `.git` is a file, and the directory of git is outside of the project."""
    worktree = account.home / "trees/side"
    account.write(worktree / "evil", f"#!/bin/sh\necho ran > {account.home}/ran\n", mode=0o755)
    common = repository / ".git"
    script = {
        "configuration-by-hand": ATTACKS[name].replace(".git/", f"{common}/") + f"; mv {common} {common}x",
        "common-directory-of-a-worktree": f"{PLANT}; echo $PWD/planted > {common}/worktrees/side/commondir; "
        f"rm -f .git; echo gitdir: $PWD/planted > .git",
        "hook-of-the-project": "cp evil tools/hooks/pre-commit; mv tools x",
    }[name]
    box.inside("sh", "-c", script, cwd=worktree)
    account.run("git", *AS_SOMEBODY, "commit", "-q", "--allow-empty", "-m", "x", cwd=worktree)
    assert not host_uses_git(account, repository)


@pytest.mark.parametrize("options", [(), ("--writable", ".")], ids=["guarded", "not-guarded"])
def test_hooks_path_that_begins_with_two_slashes_is_guarded(
    box: Box, account: Account, repository: Path, options: tuple[str, ...]
) -> None:
    git(account, repository, "config", "core.hooksPath", f"/{repository}/tools/hooks")
    attack(box, ATTACKS["hook-of-the-project"], *options)
    assert host_uses_git(account, repository) == bool(options)


def test_hooks_path_of_the_users_own_configuration_is_guarded(box: Box, account: Account, project: Path) -> None:
    account.write(account.home / ".gitconfig", "[core]\n\thooksPath = .githooks\n")
    account.write(project / ".githooks/pre-commit", "#!/bin/sh\n", mode=0o755)
    git(account, project, "init", "-q")
    box.inside("sh", "-c", f"printf 'echo ran > {account.home}/ran' >> .githooks/pre-commit; mv .githooks x")
    git(account, project, "commit", "-q", "--allow-empty", "-m", "x")
    assert not (account.home / "ran").exists()


EVERYDAY = """
set -e
echo one >> file; git commit -qam one
git branch other; git checkout -q -b feature; echo two > two; git add two; git commit -qm two
git checkout -q -b tracking origin/main
git checkout -q main; git merge -q feature --no-edit
git checkout -q -b topic HEAD~1; echo three > three; git add three; git commit -qm three; git rebase -q main
git checkout -q main; echo dirty >> file; git stash -q; git stash pop -q; git checkout -q file
git fetch -q; git pull -q origin main; git push -q origin main; git tag v1; git gc -q
git worktree add -q ../shop-inner -b inner 2>/dev/null || git worktree add -q inner -b inner
git cherry-pick feature >/dev/null 2>&1 || git cherry-pick --skip
git branch -D other 2>/dev/null; git notes add -m note; git bisect start; git bisect reset; git status --short
git -C deps/library checkout -q -b work; cd deps/library; echo x >> file; git commit -qam sub
"""


@pytest.mark.req("GIT-01", "GIT-03")
@pytest.mark.root_repeats("inside, root is an ordinary user like anybody else; test_identity.py shows it")
def test_everyday_git_works(box: Box, account: Account, repository: Path) -> None:
    origin = account.home / "origin.git"
    git(account, repository, "clone", "-q", "--bare", str(repository), str(origin))
    git(account, repository, "remote", "add", "origin", str(origin))
    git(account, repository, "fetch", "-q", "origin")
    done = box.inside("sh", "-c", EVERYDAY, options=("--mount-rw", str(origin)))
    assert done.returncode == 0, done.stderr
    assert "could not write config" not in done.stderr
    assert "three" in git(account, repository, "log", "--all", "--format=%s")


CHANGES_OF_THE_CONFIGURATION = (
    "git config some.key value",
    "git remote add other ../x",
    "git branch --set-upstream-to=origin/main || git config --get branch.main.merge",
)


@pytest.mark.parametrize("command", CHANGES_OF_THE_CONFIGURATION)
def test_what_would_change_the_configuration_says_so_and_can_be_opened(
    box: Box, account: Account, repository: Path, command: str
) -> None:
    git(account, repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(account, repository, "remote", "add", "origin", "../x")
    closed = box.inside("sh", "-c", command)
    assert "could not write config file" in closed.stderr or "it would write .git/config" in closed.stderr
    opened = box.inside("sh", "-c", command, options=("--writable", ".git/config"))
    assert "could not write config file" not in opened.stderr
    assert opened.returncode == 0


@pytest.mark.root_repeats("inside, root is an ordinary user like anybody else; test_identity.py shows it")
def test_submodule_can_be_updated_by_hand(box: Box, account: Account, repository: Path) -> None:
    library = account.home / "src/library"
    git(account, library, "commit", "-q", "--allow-empty", "-m", "newer")
    new = git(account, library, "rev-parse", "HEAD").strip()
    git(account, repository / "deps/library", "fetch", "-q")
    box.sh(f"git -C deps/library checkout -q {new} && git add deps/library && git commit -qm newer")
    assert git(account, repository / "deps/library", "rev-parse", "HEAD").strip() == new
