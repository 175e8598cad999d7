"""What no mount can keep an agent from leaving is named when the box has ended, and moved away on request."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks.conftest import TITLE, in_default, said
from conftest import AS_SOMEBODY, Account, Box, git, make_repository
from patience import comes_true
from terminal.pseudoterminal import CTRL_C, CTRL_D, PLAIN, Terminal, claudebox_terminal

pytestmark = pytest.mark.req("INST-02")

ORDINARY = "changed, and run when you ask for it"


@pytest.fixture
def repository(account: Account, project: Path) -> Path:
    account.write(project / ".envrc", "export A=1\n")
    account.write(project / "package.json", '{"scripts": {"test": "jest"}, "dependencies": {}}\n')
    account.write(project / "src/main.py", "print()\n")
    make_repository(account, project)
    account.write(project / ".git/info/exclude", "evil\n")
    account.write(project / "evil", f"#!/bin/sh\necho ran > {account.home}/ran\n", mode=0o755)
    return project


def ran(account: Account, project: Path) -> bool:
    for command in ("status", "diff --stat", "commit -q --allow-empty -m x", "rebase --continue"):
        account.run("git", *AS_SOMEBODY, *command.split(), cwd=project)
    return (account.home / "ran").exists()


PLANT = "git init -q --bare planted; git config --file planted/config core.bare false"
EVIL = "core.fsmonitor $PWD/evil"
LINK = "git init -q sub; git -C sub commit -q --allow-empty -m x"
REBASE = """
mkdir .git/rebase-merge; cd .git/rebase-merge; git rev-parse HEAD | tee onto > orig-head; echo 1 | tee msgnum > end
echo refs/heads/main > head-name; : > interactive; echo exec $OLDPWD/evil > git-rebase-todo
"""
# What the agent does, and what is said about it. Each of these runs code on the host, and no mount can stop it.
ATTACKS = {
    "common-directory": (
        f"{PLANT}; git config --file planted/config {EVIL}; echo ../planted > .git/commondir",
        ("new .git/commondir", "../planted"),
    ),
    "gitlink": (
        f"{LINK}; git add sub; git config --file sub/.git/config {EVIL}",
        ("new sub/.git", "core.fsmonitor = "),
    ),
    "gitlink-where-nobody-looks": (
        f"{LINK}; mkdir target; mv sub target; git add -f target/sub; git config --file target/sub/.git/config {EVIL}",
        ("new target/sub/.git", "core.fsmonitor = "),
    ),
    "gitlink-in-a-split-index": (
        (
            f"{LINK}; mkdir target; mv sub target; git add -f target/sub; git update-index --split-index; "
            f"git config --file target/sub/.git/config {EVIL}"
        ),
        ("new target/sub/.git", "core.fsmonitor = "),
    ),
    "gitlink-in-an-index-elsewhere": (
        (
            f"{LINK}; mkdir target; mv sub target; git add -f target/sub; mv .git/index moved; "
            "ln -s ../moved .git/index; "
            f"git config --file target/sub/.git/config {EVIL}"
        ),
        ("new target/sub/.git", "core.fsmonitor = "),
    ),
    "gitlink-of-a-gitlink": (
        (
            f"{LINK}; mkdir target; mv sub target; cd target/sub; mkdir target; {LINK}; mv sub target; "
            "git add -f target/sub; git commit -qm x; cd ../..; git add -f target/sub; "
            f"git config --file target/sub/target/sub/.git/config {EVIL}"
        ),
        ("new target/sub/target/sub/.git", "core.fsmonitor = "),
    ),
    "gitlink-among-thousands-of-repositories": (
        (
            "mkdir d; cd d; mkdir -p $(seq -f %.0f/.git 2001); cd ..; "
            f"{LINK}; mkdir -p a/b; mv sub a/b; git add a/b/sub; git config --file a/b/sub/.git/config {EVIL}"
        ),
        ("new a/b/sub/.git (one repository too many: nothing in it was looked at)",),
    ),
    "configuration-that-is-a-symlink": (
        (
            f"{LINK}; git add sub; mv sub/.git/config moved; git config --file moved {EVIL}; "
            "ln -s ../../moved sub/.git/config"
        ),
        ("new sub/.git", "-> ../../moved"),
    ),
    "git-file-with-a-space-at-the-end": (
        (
            f"{LINK}; mv sub/.git '.git/other '; echo 'gitdir: ../.git/other ' > sub/.git; git add sub; "
            f"git config --file '.git/other /config' {EVIL}"
        ),
        ("new .git/other ", "core.fsmonitor = "),
    ),
    "git-file-with-a-zero-byte": (
        (
            f"{LINK}; mv sub/.git .git/other; printf 'gitdir: ../.git/other\\0.' > sub/.git; git add sub; "
            f"git config --file .git/other/config {EVIL}"
        ),
        ("new .git/other ", "core.fsmonitor = "),
    ),
    "rebase": (REBASE, ("new .git/rebase-merge", "exec ")),
    "rebase-tab": (f"{REBASE} printf ' x\\t%s\\n' $OLDPWD/evil > git-rebase-todo", ("new .git/rebase-merge", "x\\t")),
    "rebase-symlink": (
        f"{REBASE} mv git-rebase-todo moved; ln -s moved git-rebase-todo",
        ("new .git/rebase-merge", "-> moved"),
    ),
    "rebase-long": (
        f"{REBASE} head -c 70000 /dev/zero | tr '\\0' '#' >> git-rebase-todo",
        ("new .git/rebase-merge", "too large to be looked at"),
    ),
}


# A symlink among git's own files is always taken away.
MENDED = ("gitlink-in-an-index-elsewhere", "rebase-symlink")


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_is_run_after_the_quarantine(box: Box, account: Account, repository: Path, name: str) -> None:
    script, expected = ATTACKS[name]
    with asked(box, script) as opened:
        shown = " ".join(opened.seen.decode().partition("claudebox: ")[2].split())
        assert [words for words in (TITLE, *expected) if words not in shown] == []
        opened.type("q\n")
        opened.read_until("Moved, under the same names, to")
        assert opened.wait() == 0
    assert not ran(account, repository)


@pytest.mark.parametrize("name", in_default(ATTACKS, "common-directory", "gitlink-of-a-gitlink", "rebase"))
@pytest.mark.root_repeats("shows that the attack is real, which one account does")
def test_without_a_terminal_nothing_is_moved(box: Box, account: Account, repository: Path, name: str) -> None:
    done = box.inside("sh", "-c", ATTACKS[name][0])
    assert TITLE in said(done)
    assert ran(account, repository) == (name not in MENDED), "the attack is real"


@pytest.mark.root_repeats("how much is looked at does not depend on who looks")
def test_file_behind_many_others_is_not_lost(box: Box, repository: Path) -> None:
    """Each of them is nothing to speak of."""
    script = "mkdir -p .vscode/$a; echo '{}' > .vscode/$a/package.json"
    many = f"for a in $(seq 100 450); do {script}; done; echo '{{}}' > .vscode/tasks.json"
    assert "there are more files than were looked at" in said(box.inside("sh", "-c", many))


def test_content_that_was_there_before_is_news_elsewhere(box: Box, repository: Path) -> None:
    """What was cloned is obeyed when somebody opens it; then the agent copies it to where the project obeys it."""
    box.inside("sh", "-c", "git init -q v; mkdir v/.vscode; echo '{}' > v/.vscode/tasks.json")
    assert "new .vscode/tasks.json" in said(box.inside("sh", "-c", "cp -r v/.vscode ."))


# What appears where nothing was, so that there was nothing to mount over.
CONFIG = "printf '[core]\\nbare=false\\nworktree=..\\nfsmonitor=x\\n'"
REPOSITORY, LEAVES = "(a repository: git obeys it)", "(a symlink that leaves the project)"
# Each of a group has a place of its own.
NEW_PLACES: tuple[dict[str, str], ...] = (
    {
        f"mkdir -p e/objects e/refs; ln -s refs/heads/x e/HEAD; {CONFIG} > e/config": f"new e {REPOSITORY}",
        f"mkdir -p f/refs; ln -s /usr f/objects; cp .git/HEAD f; {CONFIG} > f/config": f"new f {REPOSITORY}",
        "mkdir -p g c/objects c/refs; cp .git/HEAD g; echo ../c > g/commondir; "
        f"{CONFIG} > g/config.worktree": "new g/config.worktree (git obeys it)",
        "git init -q n; git -C n config protocol.ext.allow always": f"new n/.git {REPOSITORY}",
        "git init -q o; git -C o config core.worktree $HOME": f"new o/.git {REPOSITORY} core.worktree = ",
        "git init -q p; git -C p config core.worktree $PWD": f"new p/.git {REPOSITORY} core.worktree = ",
        "git worktree add -q t; echo ~/.git > .git/worktrees/t/gitdir": "(git worktree repair writes there)",
        "mkdir -p x/y; git init -q --bare x/y; cp evil x/y/hooks/post-commit": f"new x/y {REPOSITORY}",
    },
    {
        "mkdir .vscode; echo '{}' > .vscode/tasks.json": "new .vscode/tasks.json",
        "mkdir sub; echo true > sub/.envrc": "new sub/.envrc",
        "echo '{}' > .mcp.json": "new .mcp.json",
        "mkdir .claude; echo '{}' > .claude/settings.json": "new .claude/settings.json",
        "mkdir -p .github/workflows; touch .github/workflows/x.yml": "new .github/workflows/x.yml",
        "mkdir -p .claude/skills/x; echo hi > .claude/skills/x/SKILL.md": (
            "new .claude/skills/x/SKILL.md (an agent on this host takes it up, with its hooks)"
        ),
        "touch lefthook.yml": "new lefthook.yml",
    },
    {
        "ln -s ~/.bashrc rc": f"new rc {LEAVES} -> ",
        "mkdir -p a/b; ln -s ../.. a/b/up; ln -s up/../.x a/b/rc": f"new a/b/rc {LEAVES}",
        "mkdir -p d/b; ln -s ../../c d/b/up; ln -s up/../../.x d/b/rc": f"new d/b/rc {LEAVES}",
        "git init -q .git/x/y; mkdir -p src; ln -s ../.git/x/y src/api": "-> ../.git/x/y in git's own directory",
        "git init -q .git; ln -s .git lib": f"new lib {LEAVES} -> .git",
        "mkdir -p src; ln -s ../.git/no/where src/other": "-> ../.git/no/where in git's own directory",
        "ln -s /etc/shadow sub; ln -s sub also": f"new sub {LEAVES} -> /etc/shadow",
    },
    {"mkdir -p objects x/.hg; touch HEAD; echo > x/.hg/hgrc": "new x/.hg/hgrc"},
)


@pytest.mark.parametrize("group", range(len(NEW_PLACES)))
def test_what_appears_is_named(box: Box, repository: Path, group: int) -> None:
    heard = said(box.inside("sh", "-c", "\n".join(f"({script})" for script in NEW_PLACES[group])))
    assert [words for words in NEW_PLACES[group].values() if words not in heard] == []


def test_directory_that_cannot_be_listed_is_named(box: Box, repository: Path, account: Account) -> None:
    heard = said(box.inside("sh", "-c", "mkdir locked; chmod 0 locked"))
    assert account.is_root or "new locked (cannot be listed: nothing in it was looked at)" in heard
    (repository / "locked").chmod(0o755)


def test_worktree_that_the_user_adds_meanwhile_is_no_news(box: Box, account: Account, repository: Path) -> None:
    account.write(repository / "agent.sh", "touch started; until test -e added; do sleep 0.02; done\n")
    with claudebox_terminal(box, "--yes", "--run", "sh", "agent.sh", env=PLAIN) as opened:
        assert comes_true((repository / "started").exists)
        git(account, repository, "worktree", "add", "-q", str(account.home / "tree"))
        account.write(repository / "added")
        opened.wait()
        assert "worktree repair" not in opened.seen.decode()


def test_hooks_where_there_were_none(box: Box, account: Account, repository: Path) -> None:
    for sample in (repository / ".git/hooks").iterdir():
        sample.unlink()
    (repository / ".git/hooks").rmdir()
    assert "new .git/hooks/pre-commit (git runs hooks)" in said(
        box.inside("sh", "-c", "mkdir .git/hooks; cp evil .git/hooks/pre-commit")
    )
    assert ran(account, repository)


def test_file_that_the_configuration_would_include(box: Box, account: Account, repository: Path) -> None:
    git(account, repository, "config", "include.path", "../local.gitconfig")
    done = box.inside("sh", "-c", f"git config --file local.gitconfig {EVIL}")
    assert "new local.gitconfig (git's configuration includes it) core.fsmonitor = " in said(done)


def test_opened_configuration_is_looked_at(box: Box, account: Account, repository: Path) -> None:
    opened = ("--writable", ".git/config")
    assert said(box.inside("git", "remote", "add", "x", "../y", options=opened)) == ""
    done = box.inside("sh", "-c", "git config core.sshCommand ./evil", options=opened)
    assert "changed .git/config (git obeys it) core.sshcommand = ./evil" in said(done)


def test_file_that_the_user_replaces_is_no_longer_held_but_named(box: Box, account: Account, repository: Path) -> None:
    """The kernel takes a mount away when its file is replaced from outside, as by an editor that saves by renaming."""
    wait = "until test -e replaced; do sleep 0.02; done; echo 'export A=evil' > .envrc"
    account.write(repository / "agent.sh", f"touch started; {wait}\n")
    with claudebox_terminal(box, "--yes", "--run", "sh", "agent.sh", env=PLAIN) as opened:
        assert comes_true((repository / "started").exists)
        account.write(repository / "new", "export A=2\n").rename(repository / ".envrc")
        account.write(repository / "replaced")
        opened.wait()
        assert "changed .envrc" in opened.seen.decode()
    assert (repository / ".envrc").read_text() == "export A=evil\n"


# What agents do all day


QUIET = """
echo 'print(1)' >> src/main.py; git commit -qam one; git checkout -q -b two; echo x > new.py; chmod +x new.py
git clone -q . copy; git worktree add -q inner -b inner; git -C inner commit -q --allow-empty -m x
sed -i 's/{}/{"left-pad": "1"}/' package.json; mkdir -p node_modules/.bin; ln -s ../x node_modules/.bin/x
python3 -m venv --without-pip .venv; mkdir docs; ln -s ../src docs/src; ln -s /usr/bin/env docs/env
echo '[project]' > pyproject.toml; mkdir app; echo '{"scripts": {"dev": "vite"}}' > app/package.json
o=.git/annex/objects/a; mkdir -p $o/K; touch $o/K/K; ln -s $o/K/K have; ln -s $o/Z/Z lack
touch -d 2001-01-01 package.json; git stash -q; git stash pop -q; git gc -q; git tag x
mkdir -p target/debug .pytest_cache .next; touch target/debug/x Cargo.lock .pytest_cache/x .next/x.json
touch .eslintcache .coverage .gitignore .env.example .python-version .editorconfig; mkdir sub; touch sub/.tool
"""


def test_ordinary_session_ends_without_a_word(box: Box, repository: Path) -> None:
    done = box.inside("sh", "-ec", QUIET)
    assert done.returncode == 0, done.stderr
    assert said(done) == ""


@pytest.mark.npm
@pytest.mark.root_repeats("inside, root is an ordinary user like anybody else; test_identity.py shows it")
def test_installing_packages_ends_without_a_word(box: Box, account: Account, repository: Path) -> None:
    account.write(repository / "vendor/lib/package.json", '{"name": "lib", "version": "1.0.0", "bin": {"lib": "x.js"}}')
    account.write(repository / "vendor/lib/x.js", "#!/usr/bin/env node\n")
    install = "npm install --offline --no-audit --no-fund --install-links ./vendor/lib"
    done = box.inside("sh", "-c", f"{install} && test -e node_modules/.bin/lib")
    assert done.returncode == 0, done.stderr
    assert said(done) == ""


ONE_LINE = {
    "echo 'all:' > Makefile": "Makefile",
    "sed -i 's/jest/curl/' package.json": "package.json (test)",
    'echo \'{"scripts": {"postinstall": "x"}}\' > other.json; mkdir p; mv other.json p/package.json': "(postinstall)",
    "mkdir -p .claude/rules; echo hi > .claude/rules/x.md": ".claude/rules/x.md",
    "echo > setup.py": "setup.py",
    "git init -q -b main c; mkdir c/.vscode; echo '{}' > c/.vscode/tasks.json": "c/.vscode/tasks.json",
}


def test_what_runs_on_request_is_named_in_one_sentence(box: Box, repository: Path) -> None:
    heard = said(box.inside("sh", "-ec", "\n".join(ONE_LINE)))
    assert heard.startswith(f"claudebox: {ORDINARY}: ")
    assert [words for words in ONE_LINE.values() if words not in heard] == []
    assert TITLE not in heard


# The end of claudebox, and the question


@pytest.mark.req("SAND-14")
def test_exit_status_stays_the_programs(box: Box, repository: Path) -> None:
    done = box.inside("sh", "-c", "mkdir sub; echo x > sub/.envrc; exit 130")
    assert (TITLE in said(done), done.returncode) == (True, 130)
    assert (repository / "sub/.envrc").exists()


@contextlib.contextmanager
def asked(box: Box, script: str, status: int = 0) -> Iterator[Terminal]:
    """A box on a terminal, up to the question after it. The script is a file, so that the audit does not show it."""
    agent = box.account.write(box.account.home / "agent.sh", f"cd {box.project}\n{script}\n")
    words = ("--mount-ro", f"{agent}:/agent.sh", "--run", "sh", "-c", f". /agent.sh; exit {status}")
    with claudebox_terminal(box, *words, env=PLAIN) as opened:
        opened.answer(r"Start\? \[[Yy]/[Nn]\] ", "y\n")
        opened.read_until(r"Show, keep or quarantine\?.*\[s\] ")
        yield opened


PLANTED = "mkdir sub; echo 'echo \x1b[31mred' > sub/.envrc; echo '{}' > .mcp.json"


@pytest.mark.parametrize("answer", ["k\n", "keep\n", "n\n", CTRL_D, CTRL_C])
def test_keep_leaves_all_as_it_is(box: Box, repository: Path, answer: str) -> None:
    with asked(box, PLANTED, status=7) as opened:
        opened.type(answer)
        assert opened.wait() == 7
    assert (repository / ".mcp.json").read_text() == "{}\n"


def test_what_was_typed_while_the_box_ran_is_no_answer(box: Box, account: Account, repository: Path) -> None:
    """An agent could plant something when it sees the user type a line that begins with a k."""
    waiting = f"cd {box.project}; {PLANTED}; echo working; until [ -e typed ]; do sleep 0.05; done\n"
    agent = account.write(account.home / "agent.sh", waiting)
    words = ("--mount-ro", f"{agent}:/agent.sh", "--run", "sh", "/agent.sh")
    with claudebox_terminal(box, *words, env=PLAIN) as opened:
        opened.answer(r"Start\? \[[Yy]/[Nn]\] ", "y\n")
        opened.answer("^working", "k\n")
        account.write(repository / "typed")
        opened.answer(r"Show, keep or quarantine\?.*\[s\] ", "q\n")
        assert opened.wait() == 0
    assert not (repository / ".mcp.json").exists()


def test_bare_enter_shows_and_then_keeps(box: Box, repository: Path) -> None:
    with asked(box, PLANTED) as opened:
        opened.type("\n")
        shown = opened.read_until(r"(?s)1 \.mcp\.json.*Keep or quarantine\?.*\[k\] ").group()
        assert "echo \\x1b[31mred" in shown
        opened.type("\n")
        assert opened.wait() == 0
    assert (repository / ".mcp.json").exists()
    assert (repository / "sub/.envrc").exists()


def test_some_are_moved_and_can_be_had_back(box: Box, account: Account, repository: Path) -> None:
    with asked(box, PLANTED) as opened:
        opened.type("q 2\n")
        opened.read_until(r"mv -T [^\n]*\n")
        opened.wait()
        screen = opened.seen.decode()
    assert (repository / ".mcp.json").exists()
    assert not (repository / "sub/.envrc").exists()
    command = re.search(r"mv -T .*", screen)
    assert command is not None
    account.run("sh", "-c", command.group().strip(), cwd=repository)
    assert (repository / "sub/.envrc").exists()


def test_wrong_answer_is_told_what_can_be_answered(box: Box, repository: Path) -> None:
    """What names none of the things is no answer either: they would stay, against somebody's will."""
    with asked(box, PLANTED) as opened:
        for wrong, told in (("what\n", "word of the question"), ("q 3\n", "1 to 2"), ("q 1 x\n", "1 to 2")):
            opened.type(wrong)
            opened.read_until(rf"Answer with [^\n]*{told}[^\n]*\n[^\n]*\[s\] ")
        opened.type("q 1-2\n")
        opened.wait()
    assert not (repository / ".mcp.json").exists()
    assert not (repository / "sub/.envrc").exists()


def test_changed_file_is_as_before_again(box: Box, account: Account, repository: Path) -> None:
    with claudebox_terminal(
        box, "--writable", ".git", "--run", "git", "config", "core.pager", "./evil", env=PLAIN
    ) as opened:
        opened.answer(r"Start\? \[y/N\] ", "y\n")
        opened.answer(r"\[s\] ", "q\n")
        opened.read_until("Restored as before the box: .git/config")
        opened.wait()
    assert "pager" not in (repository / ".git/config").read_text()
    assert git(account, repository, "log", "--format=%s") == "first\n"


def test_quarantine_is_out_of_the_agents_sight(box: Box, account: Account, repository: Path) -> None:
    with asked(box, PLANTED) as opened:
        opened.type("q\n")
        opened.wait()
    assert [path.name for path in (account.home / ".claudebox").rglob(".mcp.json")] == [".mcp.json"]
    assert box.sh("find / -name .mcp.json 2>/dev/null; true") == ""


def test_nobody_is_asked_with_yes(box: Box, repository: Path) -> None:
    with claudebox_terminal(box, "--yes", "--run", "sh", "-c", "echo x > .mcp.json", env=PLAIN) as opened:
        assert opened.wait() == 0
        assert TITLE in opened.seen.decode()
    assert (repository / ".mcp.json").exists()


def test_nobody_is_asked_who_sent_a_signal(box: Box, repository: Path) -> None:
    """Whoever ends a box, `timeout` for one, waits for its end and types nothing."""
    box.account.write(repository / "agent.sh", "echo x > .mcp.json; touch started; exec sleep 60\n")
    with claudebox_terminal(box, "--run", "sh", "agent.sh", env=PLAIN) as opened:
        opened.answer(r"Start\? \[[Yy]/[Nn]\] ", "y\n")
        assert comes_true((repository / "started").exists)
        opened.signal(signal.SIGTERM)
        assert opened.wait() == 128 + signal.SIGTERM
        assert TITLE in opened.seen.decode()
        assert "quarantine?" not in opened.seen.decode()


def test_symlink_on_the_way_is_not_followed(box: Box, account: Account, repository: Path) -> None:
    """Another box at work could turn a directory into one, while the user thinks about the answer."""
    account.write(account.home / "mine/.envrc", "mine\n")
    with asked(box, PLANTED) as opened:
        (repository / "sub").rename(repository / "old")
        os.symlink(account.home / "mine", repository / "sub")
        opened.type("q\n")
        opened.read_until("could not be moved")
        opened.wait()
    assert (account.home / "mine/.envrc").exists()


@pytest.mark.parametrize("attack", ["kill -s KILL 0", "kill -s KILL -- -1 0"])
def test_parent_cannot_be_killed_from_inside(box: Box, repository: Path, attack: str) -> None:
    """The program does what it can that nobody is told."""
    done = box.inside("sh", "-c", f"echo true > .envrc.local; trap '' TERM; {attack}; sleep 9")
    assert done.returncode != 0
    assert "new .envrc.local" in said(done)


STOPPED = """python3 -c 'import os, termios
os.set_blocking(2, False)
state = termios.tcgetattr(0)
state[3] &= ~(termios.ISIG | termios.ECHO)
state[6][termios.VEOF] = b"q"
termios.tcsetattr(0, termios.TCSANOW, state)
termios.tcflow(0, termios.TCOOFF)'
"""


def test_terminal_that_shows_nothing_and_loses_answers(box: Box, repository: Path) -> None:
    with asked(box, f"echo true > .envrc.local; {STOPPED}") as opened:
        opened.type("q\n")
        opened.read_until("Moved, under the same names, to")
        assert opened.wait() == 0
    assert not (repository / ".envrc.local").exists()
