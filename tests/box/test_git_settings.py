"""What comes along of the user's own git, and what is done about signatures."""

from __future__ import annotations

import pytest

from conftest import Box, git, make_repository

CANARY = "canary-77d2e9"
CONFIG = f"""
[user]
	name = Ada
	email = ada@example.org
[init]
	defaultBranch = trunk
[pull]
	rebase = merges
	ff = only
[merge]
	conflictStyle = zdiff3
[core]
	autocrlf = input
	pager = {CANARY}-pager
	sshCommand = {CANARY}
	editor = {CANARY}
[diff]
	algorithm = {CANARY}
[alias]
	co = checkout
	lg = log --graph --pretty=format:'%h %s'
	shell = !echo {CANARY}
	with-token = fetch -c http.extraHeader=Bearer-{CANARY}
	other-token = -c http.extraHeader={CANARY} fetch
	address = push https://u:{CANARY}@example.org/
[url "https://u:{CANARY}@example.org/"]
	insteadOf = https://example.org/
"""


@pytest.fixture
def shop(shop: Box) -> Box:
    make_repository(shop.account, shop.project)
    return shop


@pytest.mark.req("WORK-01", "GIT-01", "SEC-03")
def test_settings_that_are_safe_come_along_and_no_others(shop: Box) -> None:
    shop.account.write(shop.account.home / ".gitconfig", CONFIG)
    script = """
    git init -q sub && git -C sub symbolic-ref --short HEAD && rm -r sub
    git config pull.rebase; git config pull.ff; git config merge.conflictStyle; git config core.autocrlf
    git lg; echo; git co -qb other; git branch --show-current
    git config --get-regexp '^(alias|diff)[.]' | sort
    """
    seen = shop.inside("sh", "-c", script)
    assert seen.returncode == 0, seen.stderr
    told = ["trunk", "merges", "only", "zdiff3", "input"]
    lines = seen.stdout.splitlines()
    assert lines[:5] == told
    assert lines[5].startswith("* ")
    assert lines[6:] == ["other", "alias.co checkout", "alias.lg log --graph --pretty=format:'%h %s'"]
    assert "5 of your settings and 2 of your aliases" in " ".join(seen.stderr.split())
    assert CANARY not in shop.sh("git config --list; cat ~/.gitconfig")


@pytest.mark.req("WORK-01")
@pytest.mark.parametrize("place", [".config/git/ignore", "lists/mine"])
def test_users_ignore_list_comes_along(shop: Box, place: str) -> None:
    account = shop.account
    if not place.startswith(".config"):
        account.write(account.home / ".gitconfig", f"[core]\n\texcludesFile = ~/{place}\n")
    account.write(account.home / place, ".idea/\n!.env")
    account.write(shop.project / ".env", "PASSWORD=hunter2-hunter2\n")
    assert shop.sh("mkdir .idea && touch .idea/x new && git add -A && git status --short") == "A  new\n"


@pytest.mark.req("WORK-01", "SAND-09")
def test_ignore_list_that_an_agent_can_turn_stays_outside(shop: Box) -> None:
    """A symlink in a project of dotfiles may lead to a key."""
    account = shop.account
    dotfiles = account.home / "dotfiles"
    account.write(dotfiles / "README.md")
    Box(account, dotfiles).sh("true")
    account.write(account.home / "key", f"{CANARY}\n")
    (dotfiles / "ignore").symlink_to(account.home / "key")
    account.write(account.home / ".gitconfig", "[core]\n\texcludesFile = ~/dotfiles/ignore\n")
    seen = shop.inside("sh", "-c", "cat /etc/claudebox/*; git config core.excludesFile")
    assert CANARY not in seen.stdout
    assert "your ignore list stays outside" in " ".join(seen.stderr.split())
    account.write(account.home / ".gitconfig", "[core]\n\texcludesFile = ~/.ssh/id_ed25519\n")
    account.write(account.home / ".ssh/id_ed25519", f"{CANARY}\n")
    assert CANARY not in shop.inside("sh", "-c", "cat /etc/claudebox/*").stdout


@pytest.mark.req("GIT-01")
def test_identity_of_the_repository_is_one(shop: Box) -> None:
    git(shop.account, shop.project, "config", "user.name", "Own")
    git(shop.account, shop.project, "config", "user.email", "own@example.org")
    seen = shop.inside("sh", "-c", "git commit -q --allow-empty -m x; git log -1 --format='%an <%ae>'")
    assert seen.stdout == "Own <own@example.org>\n"
    assert "no identity" not in seen.stderr


@pytest.mark.req("WORK-01")
@pytest.mark.parametrize("place", ["repository", "user"])
def test_commits_are_made_unsigned_and_it_is_said(shop: Box, place: str) -> None:
    account, project = shop.account, shop.project
    account.write(account.home / ".gitconfig", "[commit]\n\tgpgSign = true\n" if place == "user" else "")
    if place == "repository":
        for key in ("commit.gpgSign", "tag.gpgSign"):
            git(account, project, "config", key, "true")
        git(account, project, "config", "gpg.format", "ssh")
    before = git(account, project, "rev-parse", "HEAD").strip()
    script = "git commit -q --allow-empty -m x && git tag -a -m x v1 && git log -1 --format=%G?"
    done = shop.inside("sh", "-c", script)
    assert (done.returncode, done.stdout) == (0, "N\n"), done.stderr
    assert "are not signed, since your keys stay outside" in " ".join(done.stderr.split())
    command = f"git rebase --force-rebase --rebase-merges --gpg-sign {before[:12]}\n"
    assert done.stderr.endswith(command)
    # What the user then does signs each of them: here with a program that stands in for theirs.
    signs = "#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho '-----BEGIN PGP SIGNATURE-----'\n"
    program = account.write(account.home / "sign", signs, 0o755)
    git(account, project, "config", "gpg.program", str(program))
    git(account, project, "config", "gpg.format", "openpgp")
    account.environ |= {"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org"}
    done = account.run("sh", "-c", command, cwd=project)
    assert done.returncode == 0, done.stderr
    assert "gpgsig -----BEGIN" in git(account, project, "cat-file", "commit", "HEAD")
    # A box in which nothing was committed says nothing of it afterwards.
    assert "--gpg-sign" not in shop.inside("true").stderr
