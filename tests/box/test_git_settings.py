"""What comes along of the user's own git, what is done about signatures, hooks and files of LFS."""

import hashlib
import sys
from pathlib import Path

import pytest

from conftest import Account, Box, git, make_repository

pytestmark = pytest.mark.req("WORK-01")

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


@pytest.mark.req("GIT-01", "SEC-03")
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
    audit = shop.claudebox("--audit", "--run", "true").stdout
    assert "5 of your settings and 2 of your aliases" in " ".join(audit.split())
    assert CANARY not in shop.sh("git config --list; cat ~/.gitconfig")


@pytest.mark.parametrize("place", [".config/git/ignore", "lists/mine"])
def test_users_ignore_list_comes_along(shop: Box, place: str) -> None:
    account = shop.account
    if not place.startswith(".config"):
        account.write(account.home / ".gitconfig", f"[core]\n\texcludesFile = ~/{place}\n")
    account.write(account.home / place, ".idea/\n!.env")
    account.write(shop.project / ".env", "PASSWORD=hunter2-hunter2\n")
    assert shop.sh("mkdir .idea && touch .idea/x new && git add -A && git status --short") == "A  new\n"


@pytest.mark.req("SAND-09")
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
    # So it is on another branch, which began further back, and with the commit made anew.
    start = git(account, project, "rev-parse", "HEAD").strip()
    for script, base in (
        ("git switch -qc other HEAD~1 && git commit -q --allow-empty -m y", f"{before[:12]}\n"),
        ("git commit -q --amend --allow-empty -m z", f"{before[:12]}\n"),
        ("git checkout -q --orphan new && git commit -q --allow-empty -m y", "--root\n"),
    ):
        assert shop.inside("sh", "-c", script).stderr.endswith(f"--gpg-sign {base}"), script
    assert "--gpg-sign" not in shop.inside("git", "checkout", "-q", start).stderr
    # A box in which nothing was committed says nothing of it afterwards.
    assert "--gpg-sign" not in shop.inside("true").stderr


# Hooks whose program is not in the box are noticed.


# As pre-commit 2 to 4 write it.
PRE_COMMIT = """\
#!/usr/bin/env bash
# File generated by pre-commit: https://pre-commit.com
# ID: 138fd403232d2ddd5efb44317e38bf03

# start templated
INSTALL_PYTHON={python}
ARGS=(hook-impl --config=.pre-commit-config.yaml --hook-type=pre-commit)
# end templated

HERE="$(cd "$(dirname "$0")" && pwd)"
ARGS+=(--hook-dir "$HERE" -- "$@")

if [ -x "$INSTALL_PYTHON" ]; then
    exec "$INSTALL_PYTHON" -mpre_commit "${{ARGS[@]}}"
elif command -v pre-commit > /dev/null; then
    exec pre-commit "${{ARGS[@]}}"
else
    echo '`pre-commit` not found.  Did you forget to activate your virtualenv?' 1>&2
    exit 1
fi
"""
COMMIT = "git commit -q --allow-empty -m x"


def environment(account: Account, root: Path, python: str = "/usr/bin/python3") -> Path:
    """A virtual environment with a stand-in for pre-commit, as pipx makes one."""
    version = f"python3.{sys.version_info.minor}"
    account.write(root / "pyvenv.cfg", "home = /usr/bin\n")
    account.write(root / "lib" / version / "site-packages" / "pre_commit" / "__init__.py")
    account.write(root / "lib" / version / "site-packages" / "pre_commit" / "__main__.py", "print('checked')\n")
    account.write(root / "bin" / "pre-commit", "#!/bin/sh\n", 0o755)
    (root / "bin" / "python").symlink_to(python)
    return root


def hook(box: Box, text: str, name: str = "pre-commit") -> None:
    box.account.write(box.project / ".git" / "hooks" / name, text, 0o755)


def test_pre_commit_of_pipx_runs(shop: Box) -> None:
    """The directory of PATH that leads to it shows its environment."""
    account = shop.account
    root = environment(account, account.home / ".local/share/pipx/venvs/pre-commit")
    (account.home / ".local/bin").mkdir(parents=True, exist_ok=True)
    (account.home / ".local/bin/pre-commit").symlink_to(root / "bin/pre-commit")
    account.environ["PATH"] = f"{account.home}/.local/bin:{account.environ['PATH']}"
    hook(shop, PRE_COMMIT.format(python=root / "bin/python"))
    done = shop.inside("sh", "-c", COMMIT)
    assert "checked" in done.stdout + done.stderr
    assert len(git(account, shop.project, "log", "--format=%s").splitlines()) == 2


@pytest.mark.parametrize("is_there", [True, False])
def test_program_elsewhere_is_named(shop: Box, is_there: bool) -> None:
    """A hook is a claim of the repository: nothing is shown because of it."""
    account = shop.account
    root = account.home / "tools" / "env"
    if is_there:
        environment(account, root)
    hook(shop, PRE_COMMIT.format(python=root / "bin/python"))
    done = shop.inside("sh", "-c", f"ls {root}; {COMMIT}")
    assert done.returncode != 0
    assert "No such file" in done.stderr
    told = " ".join(done.stderr.split())
    assert f"the hook pre-commit needs {root}/bin/python, which is not in the box: commits fail there" in told
    assert f"--mount-ro {root}" in told


def test_husky_without_node_is_named_and_the_agent_is_told(shop: Box) -> None:
    account, project = shop.account, shop.project
    account.write(project / ".husky/_/pre-commit", '#!/usr/bin/env sh\n. "$(dirname "$0")/h"\n', 0o755)
    account.write(project / ".husky/pre-commit", "pnpm lint-staged\n")
    git(account, project, "config", "core.hooksPath", ".husky/_")
    done = shop.claudebox("--audit", "--run", "true")
    assert "the hook pre-commit needs pnpm, which is not in the box" in " ".join(done.stdout.split())
    # With the program, nothing is to be said.
    account.write(project / "bin/pnpm", "#!/bin/sh\n", 0o755)
    done = shop.claudebox("--audit", "--path", str(project / "bin"), "--run", "true")
    assert "needs pnpm" not in " ".join(done.stdout.split())


def test_hook_that_works_is_not_mentioned(shop: Box) -> None:
    hook(shop, "#!/bin/sh\nexit 0\n")
    hook(shop, "#!/usr/bin/env bash\nexit 0\n", "commit-msg")
    hook(shop, "#!/nowhere/python\n", "post-merge.sample")
    done = shop.inside("sh", "-c", COMMIT)
    assert done.returncode == 0
    assert "the hook" not in done.stderr


# Files of Git LFS in a box, without git-lfs: git never stops half-way, and commits what git-lfs would.


OLD, NEW = b"old \0 content\n", b"new \0 content\n"
INSTALLED = """\
[user]
	name = Ada
	email = ada@example.org
[filter "lfs"]
	clean = git-lfs clean -- %f
	smudge = git-lfs smudge -- %f
	process = git-lfs filter-process
	required = true
"""


def pointer(content: bytes) -> str:
    """What git-lfs has git keep instead of the content."""
    name = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{name}\nsize {len(content)}\n"


def place(content: bytes) -> str:
    name = hashlib.sha256(content).hexdigest()
    return f".git/lfs/objects/{name[:2]}/{name[2:4]}/{name}"


@pytest.fixture
def clone(shop: Box) -> Box:
    """A clone in which git-lfs has checked out a file, and a branch whose content only the server has."""
    user, project = shop.account, shop.project
    user.write(project / ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    user.write(project / "x.bin", pointer(OLD))
    make_repository(user, project)
    git(user, project, "checkout", "-qb", "far")
    user.write(project / "x.bin", pointer(b"elsewhere"))
    git(user, project, "commit", "-qam", "far")
    git(user, project, "checkout", "-q", "main")
    user.write(project / place(OLD), OLD.decode())
    user.write(user.home / ".gitconfig", INSTALLED)
    return shop


def test_content_is_committed_as_a_pointer_and_kept(clone: Box) -> None:
    script = (
        "rm x.bin && git checkout -q x.bin && cat x.bin && printf 'new \\0 content\\n' > x.bin && git commit -qam two"
    )
    assert clone.sh(f"{script} && git status --short") == OLD.decode()
    assert git(clone.account, clone.project, "cat-file", "blob", "main:x.bin") == pointer(NEW)
    assert (clone.project / place(NEW)).read_bytes() == NEW


def test_content_that_is_not_here_stays_a_pointer(clone: Box) -> None:
    script = "git checkout -q far && cat x.bin && git status --short && git checkout -q main && git status --short"
    done = clone.inside("sh", "-c", script)
    assert (done.returncode, done.stdout) == (0, pointer(b"elsewhere")), done.stderr
