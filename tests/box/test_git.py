"""Git works in the box, as the user, and knows no password."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Account, Box, git, make_repository
from running.versions import each_bwrap

CANARY = "canary-77d2e9"
WORK = "git status --short && echo change >> README.md && git add -A && git commit -qm inside && git log --format=%s"


def repository(account: Account, where: Path) -> Path:
    account.write(where / "README.md", "a shop\n")
    return make_repository(account, where, "outside")


# Identity


def author_in(box: Box, project: Path) -> str:
    return box.sh("git commit -q --allow-empty -m x && git log -1 --format='%an <%ae> %cn <%ce>'", cwd=project).strip()


@pytest.mark.req("GIT-01")
def test_commits_are_by_the_user_of_the_host(box: Box, account: Account, project: Path) -> None:
    account.write(
        account.home / ".gitconfig", '[user]\n\tname = "Ada \\"L\\" Löve" # comment\n\temail = ada@example.org\n'
    )
    repository(account, project)
    who = 'Ada "L" Löve <ada@example.org>'
    assert author_in(box, project) == f"{who} {who}"


@pytest.mark.req("GIT-01")
def test_identity_may_come_from_included_files(box: Box, account: Account, project: Path) -> None:
    account.write(account.home / ".config/git/config", "[user]\n\tname = From XDG\n\temail = xdg@example.org\n")
    account.write(
        account.home / ".gitconfig",
        '[include]\n\tpath = names.inc\n[includeIf "gitdir:~/src/"]\n\tpath = ~/work.inc\n'
        '[includeIf "gitdir:~/elsewhere/"]\n\tpath = other.inc\n',
    )
    account.write(account.home / "names.inc", "[user]\n\tname = Included\n")
    account.write(account.home / "work.inc", "[user]\n\temail = work@example.org\n")
    account.write(account.home / "other.inc", "[user]\n\temail = other@example.org\n")
    repository(account, project)
    outside = account.run("git", "var", "GIT_AUTHOR_IDENT", cwd=project).stdout.rsplit(" ", 2)[0]
    assert (
        author_in(box, project) == f"{outside} {outside}" == "Included <work@example.org> Included <work@example.org>"
    )


@pytest.mark.req("GIT-01")
def test_identity_is_neutral_if_the_host_has_none(box: Box, account: Account, project: Path) -> None:
    repository(account, project)
    assert author_in(box, project) == "claudebox <claudebox@localhost> claudebox <claudebox@localhost>"


@pytest.mark.req("GIT-01", "SEC-03")
def test_configuration_of_the_host_is_not_visible(box: Box, account: Account, project: Path) -> None:
    account.write(
        account.home / ".gitconfig",
        f"[user]\n\tname = Ada\n\temail = ada@example.org\n[credential]\n\thelper = store\n"
        f'[url "https://u:{CANARY}@host/"]\n\tinsteadOf = https://host/\n'
        f'[http]\n\textraHeader = "Authorization: {CANARY}"\n[alias]\n\tevil = !{CANARY}\n',
    )
    account.write(account.home / ".git-credentials", f"https://u:{CANARY}@host\n", mode=0o600)
    repository(account, project)
    seen = box.sh('git config --list --show-origin; cat ~/.gitconfig; grep -rs canary "$HOME" /etc || true')
    assert CANARY not in seen
    assert "user.name=Ada" in seen


@pytest.mark.req("SEC-03")
def test_no_credential_helper_is_asked(box: Box, account: Account, project: Path) -> None:
    repository(account, project)
    ask = """
    git config --get-all credential.helper
    printf 'protocol=https\\nhost=example.org\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill
    """
    result = box.inside("sh", "-c", ask, env={"GIT_ASKPASS": "/bin/echo", "SSH_ASKPASS": "/bin/echo"})
    assert result.returncode != 0
    assert result.stdout == "\n", "exactly one helper, the empty one"
    assert "password" not in result.stdout


# Repositories


@pytest.mark.req("GIT-01", "GIT-02")
def test_plain_repository_works(box: Box, account: Account, project: Path) -> None:
    repository(account, project)
    assert box.sh(WORK) == "inside\noutside\n"
    assert git(account, project, "log", "--format=%s") == "inside\noutside\n"


@pytest.mark.req("GIT-02")
def test_repository_of_another_owner_is_trusted(box: Box, account: Account, project: Path) -> None:
    if account.is_root:
        repository(account, project)
        account.run("chown", "-R", "12345", str(project))
        assert box.sh("git status --short; git log --format=%s") == "outside\n"
    else:
        # Without root nobody can give files away: git is asked to believe that it happened.
        repository(account, project)
        script = "GIT_TEST_ASSUME_DIFFERENT_OWNER=1 git log --format=%s"
        assert box.sh(script) == "outside\n"


@pytest.mark.req("GIT-03")
@pytest.mark.parametrize("name", ["linked", "with some spaces"])
@each_bwrap
def test_linked_worktree_works(box: Box, account: Account, name: str) -> None:
    main = repository(account, account.home / "src" / "main")
    account.write(main / "untracked-secret", CANARY)
    worktree = account.home / "trees" / name
    git(account, main, "worktree", "add", "-q", "-b", "side", str(worktree))
    assert box.sh(WORK, cwd=worktree) == "inside\noutside\n"
    assert git(account, main, "log", "--format=%s", "side") == "inside\noutside\n"
    seen = box.sh(f"ls -A {main}; cd ~ && find . -maxdepth 2 -not -path './.local*'", cwd=worktree)
    assert seen.split("\n")[0] == ".git"
    assert "README" not in seen
    assert "untracked-secret" not in seen


@pytest.mark.req("GIT-03")
def test_worktree_of_a_bare_repository_works(box: Box, account: Account) -> None:
    main = repository(account, account.home / "src" / "main")
    bare = account.home / "bare.git"
    git(account, account.home, "clone", "-q", "--bare", str(main), str(bare))
    worktree = account.home / "trees" / "linked"
    git(account, bare, "worktree", "add", "-q", "-b", "side", str(worktree))
    assert box.sh(WORK, cwd=worktree) == "inside\noutside\n"


@pytest.mark.req("GIT-03")
def test_project_with_worktrees_keeps_them(box: Box, account: Account, project: Path) -> None:
    """`git gc` in the box sees no other worktree, and must not forget them."""
    repository(account, project)
    worktree = account.home / "trees" / "linked"
    git(account, project, "worktree", "add", "-q", "-b", "side", str(worktree))
    for file in (project / ".git" / "worktrees" / "linked").iterdir():
        os.utime(file, (10**9, 10**9))  # long ago
    box.sh("git gc -q", cwd=project)
    assert git(account, worktree, "log", "--format=%s") == "outside\n"


@pytest.mark.req("GIT-03")
def test_submodule_as_the_project_works(box: Box, account: Account, project: Path) -> None:
    library = repository(account, account.home / "src" / "library")
    repository(account, project)
    git(account, project, "submodule", "--quiet", "add", str(library), "deps/library")
    git(account, project, "commit", "-qm", "with submodule")
    module = project / "deps" / "library"
    assert box.sh(WORK, cwd=module) == "inside\noutside\n"
    seen = box.sh(
        f"cd {project} && find . -path ./deps/library/.git -prune -o -path './.git/modules/*/*/*' -prune -o -print",
        cwd=module,
    )
    outside = {"./README.md", "./.gitmodules", "./.git/config", "./.git/objects", "./.git/HEAD"}
    assert outside.isdisjoint(seen.split())


# What a hostile project may claim


def sees_nothing_of(box: Box, project: Path, other: Path) -> None:
    seen = box.sh(
        f"ls -A {other} 2>/dev/null; cat .git/config .git/HEAD {other}/.git/config 2>/dev/null; git log; true",
        cwd=project,
    )
    assert seen == ""


@pytest.mark.req("GIT-03", "FAIL-01")
@pytest.mark.parametrize(
    "claim", ["{other}/.git", "../other/.git", "{other}/.git/worktrees/linked", "{other}/.git/modules/x"]
)
def test_pointer_to_a_repository_that_does_not_point_back_is_not_believed(
    box: Box, account: Account, project: Path, claim: str
) -> None:
    other = repository(account, account.home / "src" / "other")
    git(account, other, "worktree", "add", "-q", "-b", "side", str(account.home / "trees" / "linked"))
    account.write(other / ".git" / "modules" / "x" / "config", "[core]\n\tworktree = ../../../x\n")
    account.write(project / ".git", f"gitdir: {claim.format(other=other)}\n")
    sees_nothing_of(box, project, other)


@pytest.mark.req("GIT-03", "FAIL-01")
def test_worktree_pointer_through_a_symlink_in_the_project_is_not_believed(
    box: Box, account: Account, project: Path
) -> None:
    """Everything on the way that the project can write would let it name any directory."""
    other = repository(account, account.home / "src" / "other")
    forged = project / "fake" / "worktrees" / "linked"
    account.write(forged / "commondir", "../..\n")
    account.write(forged / "gitdir", f"{project}/.git\n")
    (project / "fake" / "objects").symlink_to(other / ".git" / "objects")
    account.write(project / ".git", "gitdir: fake/worktrees/linked\n")
    assert box.inside("true").returncode == 125
    sees_nothing_of(replace(box, options=("--writable", "fake/objects")), project, other)


@pytest.mark.req("GIT-03", "FAIL-01")
def test_symlink_to_another_repository_is_not_followed(box: Box, account: Account, project: Path) -> None:
    other = repository(account, account.home / "src" / "other")
    (project / ".git").symlink_to(other / ".git")
    sees_nothing_of(box, project, other)


@pytest.mark.req("GIT-03", "FAIL-01")
def test_borrowed_objects_are_not_mounted(box: Box, account: Account, project: Path) -> None:
    other = repository(account, account.home / "src" / "other")
    repository(account, project)
    account.write(project / ".git" / "objects" / "info" / "alternates", f"{other}/.git/objects\n")
    result = box.inside("ls", str(other))
    assert result.returncode != 0
    assert "borrows objects" in result.stderr


@pytest.mark.req("GIT-03", "SAND-09")
def test_worktree_of_a_repository_over_the_home_is_not_mounted(box: Box, account: Account) -> None:
    """Dotfiles kept in a bare repository in the home: its directory may be a secret place's parent."""
    main = repository(account, account.home / ".config" / "gh")
    worktree = account.home / "trees" / "linked"
    git(account, main, "worktree", "add", "-q", "-b", "side", str(worktree))
    assert box.inside("ls", str(main), cwd=worktree).returncode != 0


@pytest.mark.req("GIT-03")
def test_start_runs_nothing_that_the_repository_names(box: Box, account: Account, project: Path) -> None:
    repository(account, project)
    program = account.write(project / "evil", f"#!/bin/sh\necho ran > {account.home}/ran\n", mode=0o755)
    git(account, project, "config", "core.fsmonitor", str(program))
    git(account, project, "config", "core.sshCommand", str(program))
    box.sh("true")
    assert not (account.home / "ran").exists()
