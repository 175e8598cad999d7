"""The agent plants something that a git command on the host would run: the `git status` of a prompt is enough."""

from pathlib import Path

import pytest

from attacks.conftest import in_default
from conftest import AS_SOMEBODY, Account, Box, git, make_repository

pytestmark = pytest.mark.req("INST-02")


@pytest.fixture
def repository(account: Account, project: Path) -> Path:
    """With a worktree outside, a submodule, hooks in the project, and an included file."""
    library = account.home / "src/library"
    for where in (library, project):
        make_repository(account, account.write(where / "file", "content\n").parent)
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


def test_git_on_the_host_runs_nothing_planted(box: Box, account: Account, repository: Path) -> None:
    """Each with a program of its own, so that it is known which one ran."""
    scripts = []
    for number, script in enumerate(ATTACKS.values()):
        account.write(repository / f"evil{number}", f"#!/bin/sh\necho {number} >> {account.home}/ran\n", mode=0o755)
        own = script.replace("evil", f"evil{number}").replace("planted", f"planted{number}")
        scripts.append(f"({own})")
    attack(box, "; ".join(scripts))
    assert not host_uses_git(account, repository), (account.home / "ran").read_text()


# What is new in git's own directory and not git's is taken away when the box has ended, whoever opened it.
TAKEN_AWAY = ("common-directory-of-a-worktree", "renamed-worktree")
REAL = [name for name in ATTACKS if name not in TAKEN_AWAY]


@pytest.mark.parametrize("name", in_default(REAL, "configuration", "included-file", "program-of-a-filter"))
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


@pytest.mark.parametrize("name", ["", "objects/x"])
@pytest.mark.parametrize("options", [(), ("--writable", ".")], ids=["guarded", "not-guarded"])
def test_planted_head_hides_no_submodule(
    box: Box, account: Account, repository: Path, name: str, options: tuple[str, ...]
) -> None:
    """A repository is HEAD and objects, and even one that is planted does not end the search for others."""
    git(account, repository, "submodule", "--quiet", "deinit", "-f", "deps/library")
    for planted in filter(None, ("HEAD", name)):
        account.write(repository / ".git/modules/deps" / planted, "ref: refs/heads/main\n")
    attack(box, "cp evil .git/modules/deps/library/hooks/post-checkout", *options)
    git(account, repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
    assert (account.home / "ran").exists() == bool(options)


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


CHANGES_OF_THE_CONFIGURATION = """
git config some.key value
git remote add other ../x
git branch --set-upstream-to=origin/main
"""


@pytest.mark.root_repeats("inside, root is an ordinary user like anybody else; test_identity.py shows it")
def test_configuration_can_be_opened(box: Box, account: Account, repository: Path) -> None:
    git(account, repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(account, repository, "remote", "add", "origin", "../x")
    assert box.inside("sh", "-ec", CHANGES_OF_THE_CONFIGURATION).returncode != 0
    box.sh(f"set -e\n{CHANGES_OF_THE_CONFIGURATION}", options=("--writable", ".git/config"))


# The agent leaves something for git commands that people seldom use: it runs when they do.


EVIL_FILE = "printf '#!/bin/sh\\ntouch ~/ran\\n' > evil; chmod +x evil"
UP = "../" * 12
NESTED = "git init -q n; cd n; echo x > file; git add file; echo y > file"
# What the agent does, what is said about it, and what the user types later.
SELDOM = {
    "difftool": (
        f"{EVIL_FILE}; {NESTED}; git config diff.tool {UP}$OLDPWD/evil",
        "new n/.git (a repository: git obeys it) diff.tool = ",
        "git -C n difftool -y",
    ),
    "guitool-for-merges": (
        f"{EVIL_FILE}; {NESTED}; git config merge.guitool {UP}$OLDPWD/evil",
        "new n/.git (a repository: git obeys it) merge.guitool = ",
        "git -C n difftool -y --gui",
    ),
}


@pytest.fixture
def plain_repository(account: Account, project: Path) -> Path:
    return make_repository(account, project)


@pytest.mark.parametrize("name", SELDOM)
def test_attack_is_real_and_named(box: Box, account: Account, plain_repository: Path, name: str) -> None:
    script, expected, typed = SELDOM[name]
    assert expected in " ".join(box.inside("sh", "-c", script).stderr.split())
    account.run("sh", "-c", f"{typed} < /dev/null", cwd=plain_repository)
    assert (account.home / "ran").exists()


def test_repository_that_has_git_write_elsewhere_is_named(box: Box, plain_repository: Path) -> None:
    settings = ("http.saveCookies true", "http.https://x/.saveCookies 1", "format.outputDirectory /x")
    done = box.inside(
        "sh", "-c", "; ".join(f"git init -q n{i}; git -C n{i} config {one}" for i, one in enumerate(settings))
    )
    assert all(f"n{number}/.git" in done.stderr for number in range(len(settings)))
