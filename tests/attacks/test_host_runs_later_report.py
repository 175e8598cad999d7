"""What no mount can keep an agent from leaving is named when the box has ended, and moved away on request."""

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks.conftest import TITLE, box_words, in_default, said
from conftest import AS_SOMEBODY, Account, Box, git, make_repository
from patience import comes_true
from terminal.pseudoterminal import CTRL_C, CTRL_D, PLAIN, Terminal, claudebox_terminal

pytestmark = pytest.mark.req("INST-02")

NAMED = "which a tool may obey when you use it"


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
# Git enters a submodule, and calls its hook by a short name. Nobody else can: the whole path has more than 4096 bytes.
LONG = """
top=$PWD; git init -q s; cd s; rm -r .git/hooks .git/info; touch a; git add a; git commit -qm x; head=$(git rev-parse @)
mkdir .git/hooks; cp ../evil .git/hooks/post-index-change; cd ..; name=$(printf %0200d 0)
while [ ${#PWD} -lt 3850 ]; do mkdir $name; cd $name; done
name=$(printf %0$((4070 - ${#PWD}))d 0); mkdir $name; cd $name; mv $top/s/.git .; touch a; rm -r $top/s
inner=${PWD#$top/}; cd $top; git update-index --add --cacheinfo 160000,$head,$inner
"""
# What the agent does, and what is said about it. Each of these runs code on the host, and no mount can stop it.
ATTACKS = {
    "common-directory": (
        f"{PLANT}; git config --file planted/config {EVIL}; echo ../planted > .git/commondir",
        ("new .git/commondir (git or another program would obey it there)",),
    ),
    "gitlink": (
        f"{LINK}; git add sub; git config --file sub/.git/config {EVIL}",
        ("new sub/.git", "core.fsmonitor = "),
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
            "mkdir d; cd d; for a in $(seq 2001); do mkdir -p $a/.git/objects; touch $a/.git/HEAD; done; cd ..; "
            f"{LINK}; mkdir -p a/b; mv sub a/b; git add a/b/sub; git config --file a/b/sub/.git/config {EVIL}"
        ),
        ("one repository too many",),
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
    "rebase": (REBASE, ("new .git/rebase-merge (the box began or changed",)),
    "rebase-strategy": (
        (
            f"{REBASE} echo pick $(git commit-tree -m x HEAD^{{tree}}) > git-rebase-todo; echo x/evil > strategy; "
            "mkdir $OLDPWD/git-merge-x; cp $OLDPWD/evil $OLDPWD/git-merge-x"
        ),
        ("new .git/rebase-merge (the box began or changed",),
    ),
    "directory-around-a-broken-repository": (
        (
            "git init -q --bare b; mv b/HEAD b/objects b/refs b/config .; git config --file config core.bare false; "
            f"git config --file config core.worktree .; git config --file config {EVIL}; echo x > .git/HEAD"
        ),
        ("new config (git obeys it)", "core.fsmonitor = "),
    ),
    "hook-with-too-long-a-path": (LONG, ("too deep, or cannot be listed",)),
    "rebase-symlink": (
        f"{REBASE} mv git-rebase-todo moved; ln -s moved git-rebase-todo",
        ("new .git/rebase-merge/git-rebase-todo", "-> moved"),
    ),
}


# What git did not write among its own files is taken away without a question.
MENDED = ("common-directory", "rebase-symlink")


@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in MENDED])
def test_nothing_is_run_after_the_quarantine(box: Box, account: Account, repository: Path, name: str) -> None:
    script, expected = ATTACKS[name]
    with asked(box, script) as opened:
        shown = " ".join(opened.seen.decode().partition("claudebox: ")[2].split())
        assert [words for words in (TITLE, *expected) if words not in shown] == []
        opened.type("q\n")
        opened.read_until("Moved, under the same names, to")
        assert opened.wait() == 0
    assert not ran(account, repository)


SHOWN = ("common-directory", "gitlink-of-a-gitlink", "rebase", "directory-around-a-broken-repository")


@pytest.mark.parametrize("name", in_default(ATTACKS, *SHOWN, "hook-with-too-long-a-path"))
@pytest.mark.root_repeats("shows that the attack is real, which one account does")
def test_without_a_terminal_nothing_else_is_moved(box: Box, account: Account, repository: Path, name: str) -> None:
    script, expected = ATTACKS[name]
    heard = said(box.inside("sh", "-c", script))
    assert [words for words in expected if words not in heard] == []
    assert ran(account, repository) == (name not in MENDED), "the attack is real"


@pytest.mark.root_repeats("how much is looked at does not depend on who looks")
def test_file_behind_many_others_is_not_lost(box: Box, repository: Path) -> None:
    many = "mkdir .vscode; cd .vscode; touch $(seq 3000)"
    assert "there are more files than were looked at" in said(box.inside("sh", "-c", many))


# What appears where nothing was, so that there was nothing to mount over; with words of the whole report.
CONFIG = "printf '[core]\\nbare=false\\nworktree=..\\nfsmonitor=x\\n'"
NEW_PLACES = {
    f"mkdir -p e/objects e/refs; ln -s refs/heads/x e/HEAD; {CONFIG} > e/config": "new e core.",
    f"mkdir -p f/refs; ln -s /usr f/objects; cp .git/HEAD f; {CONFIG} > f/config": "new f core.",
    "mkdir -p g c/objects c/refs; cp .git/HEAD g; echo ../c > g/commondir": "new g ../c",
    "git init -q n; git -C n config protocol.ext.allow always": "new n/.git protocol.ext.allow",
    "git init -q o; git -C o config core.worktree $HOME": "new o/.git core.worktree = ",
    "git init -q p; git -C p remote add x 'ext::sh -c x'": "new p/.git remote.x.url = ext::",
    "git worktree add -q t; echo ~/.git > .git/worktrees/t/gitdir": "new .git/worktrees/t/gitdir",
    "mkdir -p x/y; git init -q --bare x/y; cp evil x/y/hooks/post-commit": "new x/y hooks/post-commit",
    "mkdir .vscode; echo '{}' > .vscode/tasks.json": "new .vscode/tasks.json",
    "mkdir sub; echo true > sub/.envrc": "new sub/.envrc",
    "echo '{}' > .mcp.json; touch lefthook.yml": "new .mcp.json new lefthook.yml",
    "mkdir -p .claude/skills/x; echo hi > .claude/skills/x/SKILL.md": "new .claude/skills/x/SKILL.md",
    "mkdir -p .github/workflows; touch .github/workflows/x.yml": "new .github/workflows/x.yml",
    "mkdir -p a/.unknown; echo > a/.unknown/tool": "new a/.unknown/tool",
    "ln -s src .helix; ln -s ~/.bashrc rc": "new .helix -> src new rc -> ",
    "mkdir -p a/b; ln -s ../.. a/b/up; ln -s up/../.x a/b/rc": "new a/b/rc -> ",
    "git init -q .git/refs/y; ln -s .git/refs/y api": "new api -> .git/refs/y in git's own directory",
    "ln -s .git/no/where other": "new other -> .git/no/where in git's own directory",
    "ln -s /etc/shadow shadow; ln -s shadow also": "new shadow -> /etc/shadow",
    "mkdir -p objects x/.hg; touch HEAD; echo > x/.hg/hgrc": "new x/.hg/hgrc",
    "mkdir -p y/.hg .pijul; echo > y/.hg/hgrc-not-shared; echo > .pijul/config": "new .pijul/config new y/.hg/hgrc-not",
    "mkdir -p .git/remotes; echo URL: ext::x > .git/remotes/origin": "new .git/remotes/origin",
    "echo x > .git/info/grafts; echo x > .git/config.worktree": "new .git/config.worktree new .git/info/grafts",
    "echo /elsewhere > .git/objects/info/alternates": "new .git/objects/info/alternates",
    "git replace HEAD $(git commit-tree -m other HEAD^{tree})": "to undo: git replace -d",
    "echo evil >> src/main.py; git update-index --skip-worktree src/main.py": "changed .git/index src/main.py",
}


def test_what_appears_is_named_and_what_git_did_not_write_is_gone(box: Box, repository: Path) -> None:
    box.inside("sh", "-c", "\n".join(f"({script})" for script in NEW_PLACES))
    whole = " ".join(box.claudebox("--report").stdout.split())
    assert [words for words in NEW_PLACES.values() if any(part not in whole for part in words.split(" new "))] == []
    gone = ("config.worktree", "info/grafts", "objects/info/alternates")
    assert [name for name in gone if (repository / ".git" / name).exists()] == []


def test_directory_of_the_project_lends_objects(box: Box, account: Account, repository: Path) -> None:
    """Nobody compares the objects in there with their names. A clone that the user has made so stays as it is."""
    shared = repository / "shared"
    git(account, repository, "clone", "-q", "--shared", ".", str(shared))
    lend = "mkdir -p data/objects; echo $PWD/data/objects > .git/objects/info/alternates"
    heard = said(box.inside("sh", "-c", f"git -C shared log -1 && {lend}", options=("--quiet",)))
    assert "new .git/objects/info/alternates" in heard
    assert "shared" not in heard
    assert not (repository / ".git/objects/info/alternates").exists()
    assert git(account, shared, "fsck") == ""


@pytest.mark.parametrize("script", ["rm -rf .git", "rm -rf .git/objects/*", "rm .git/HEAD"])
@pytest.mark.root_repeats("what is named does not depend on who looks")
def test_repository_that_is_destroyed_is_named_first(box: Box, repository: Path, script: str) -> None:
    heard = said(box.inside("sh", "-c", f"touch .mcp.json; {script}"))
    assert f"{TITLE}: 1 gone .git (the repository is broken" in heard


def test_what_a_forge_runs_is_named_where_no_layer_holds_it(box: Box, account: Account, repository: Path) -> None:
    for name in (".github/README.md", ".gitlab/README.md"):
        account.write(repository / name)
    script = "mkdir .github/extensions .gitlab/duo; touch .github/extensions/x .gitlab/duo/y.md .github/z.md"
    heard = said(box.inside("sh", "-c", script, options=("--review", "off")))
    assert "1 new .github/extensions/x, .gitlab/duo/y.md (" in heard
    assert "z.md" not in heard


# Many things of one kind, so that one is not seen.
CROWDS = {
    "names": "for a in .fleet .helix .idea .nova .theia .zed; do mkdir $a; touch $a/x; done",
    "dots": "touch $(seq -f .a%.0f 2000)",
    "endings": "touch $(seq -f a%.0f.code-workspace 2000)",
    "directories": "for a in $(seq 300); do mkdir -p a$a/.vscode; touch a$a/.vscode/x; done",
    "files": "for a in $(seq 11); do mkdir -p n$a/.idea; (cd n$a/.idea; touch $(seq 2000)); done",
    "stars": "touch .dir-locals1 .dir-locals2 .dir-locals3",
    "repositories": "for a in $(seq 12); do git init -q vendor/$a; git -C vendor/$a config core.pager x; done",
}


@pytest.mark.parametrize("name", CROWDS)
@pytest.mark.root_repeats("what is shown does not depend on who looks")
def test_crowd_hides_nothing(box: Box, repository: Path, name: str) -> None:
    planted = """
    mkdir -p .vscode deep/er .git/sequencer; git init -q src; git -C src config core.fsmonitor x
    touch .vscode/tasks.json deep/er/.mcp.json proj.sublime-project .git/sequencer/x
    """
    names = (".vscode/tasks.json", "src/.git", "deep/er/.mcp.json", "proj.sublime-project", ".git/sequencer")
    done = box.inside("sh", "-c", f"{CROWDS[name]}; {planted}", options=("--quiet",))
    lines = done.stderr.splitlines()
    assert (len(lines) < 24, max(map(len, lines)) <= 80) == (True, True), done.stderr
    assert [name for name in names if name not in said(done)] == []


# A hook that starts a program of Python takes what lies in the root for it.
HOOKS = {
    "#!/bin/sh\nexec python3 -mpre_commit hook-impl\n": "pre_commit.py",
    "#!/bin/sh\npython3 -m nbstripout.cli x\n": "nbstripout",
    "#!/bin/sh\npython3 -um platform\n": "below platform/",
}


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.root_repeats("what is named does not depend on who looks")
def test_what_hooks_run_besides_themselves_is_named(box: Box, account: Account, repository: Path, hook: str) -> None:
    script = "echo x > pre_commit.py; mkdir nbstripout; echo x > nbstripout/__init__.py; echo '{}' > package.json"
    script += "; echo x > platform/__init__.py"  # which makes a module of a directory that was there
    account.write(repository / "platform/README.md")
    undo = "rm -r pre_commit.py nbstripout platform/__init__.py"
    assert said(box.inside("sh", "-c", f"{script}; {undo}")) == "", "without a hook"
    account.write(repository / ".git/hooks/pre-commit", hook, 0o755)
    heard = said(box.inside("sh", "-c", f"{script}; echo '[]' > package.json"))
    assert HOOKS[hook] in heard.partition("(a hook or git's configuration runs")[0]
    assert "changed package.json (tools that your commit hooks run obey it)" in heard


def test_every_way_to_hooks_and_every_manifest_count(box: Box, account: Account, repository: Path) -> None:
    """A manager's own files say what its hooks run, and a repository in the project has hooks of its own."""
    inner = make_repository(account, account.write(repository / "vendor/lib/tox.ini").parent)
    account.write(inner / ".git/hooks/pre-commit", "#!/bin/sh\n", 0o755)
    account.write(repository / ".husky/pre-commit", "python3 -m black\n", 0o755)
    account.write(repository / "lefthook.yml", "pre-commit:\n  jobs:\n    - run: python -m ruff\n")
    names = (
        "pyproject.toml",
        "setup.cfg",
        "tox.ini",
        "vendor/lib/tox.ini",
        "black.py",
        "ruff.py",
        "vendor/lib/ruff.py",
    )
    box.inside("sh", "-c", f"for one in {' '.join(names)}; do echo x >> $one; done")
    whole = box.claudebox("--report").stdout
    assert [name for name in names if f" {name}\n" not in whole] == []


# The report is kept.


def test_report_that_nobody_saw_is_shown_by_the_next_start(box: Box, account: Account, repository: Path) -> None:
    """The window was closed: nobody was there to read it."""
    flood = "for a in $(seq 15); do d=$d/$(seq -s a 70); done; mkdir -p .$d; (cd .$d; touch $(seq -f .t%.0f 1900))"
    account.write(repository / "agent.sh", f"trap '' HUP; touch started; {flood}; sleep 1; echo x > .mcp.json\n")
    with claudebox_terminal(box, "--yes", "--run", "sh", "agent.sh", env=PLAIN) as opened:
        assert comes_true((repository / "started").exists)
        opened.hang_up()
        opened.process.wait(30)
    assert ".mcp.json" in box.claudebox("--report").stdout
    heard = said(box.inside("true"))
    assert heard.startswith("claudebox: what an earlier box left, which perhaps nobody has seen:")
    assert ".mcp.json" in heard
    assert len(heard) < 5000
    assert said(box.inside("true")) == "", "once is enough"
    assert ".mcp.json" in box.claudebox("--report").stdout


COMMIT = "git add .mcp.json; git -c user.name=x -c user.email=x commit -qm x"


def test_box_whose_end_nobody_looked_at_is_looked_at_by_the_next_start(
    box: Box, account: Account, repository: Path
) -> None:
    account.write(account.home / ".claudebox/config.toml")  # without any state, nothing is kept
    account.write(repository / "agent.sh", f"echo x > .mcp.json; {COMMIT}; touch started; exec sleep 60\n")
    with account.running(*box_words(box, "sh", "agent.sh"), cwd=repository) as process:
        assert comes_true((repository / "started").exists)
        assert said(box.inside("true")) == "", "it still runs"
        process.kill()
        process.wait(30)
    heard = said(box.inside("true"))
    assert "claudebox was killed during an earlier box" in heard
    assert "new .mcp.json" in heard
    assert "commit 1 of branch main changes .mcp.json" in heard
    assert said(box.inside("true")) == "", "once is enough"


def test_repositories_in_the_project_are_looked_at(box: Box, account: Account, repository: Path) -> None:
    for name in ("a", "b"):
        make_repository(account, account.write(repository / f"vendor/{name}/x").parent)
    script = "git -C vendor/a update-index --skip-worktree x; rm -rf vendor/b/.git/objects/*"
    heard = said(box.inside("sh", "-c", script))
    assert "gone vendor/b/.git (the repository is broken" in heard
    assert "changed vendor/a/.git/index (git status hides changes of these) x" in heard


def test_directory_that_is_too_deep_is_named(box: Box, repository: Path) -> None:
    deep = "/".join(map(str, range(1, 41)))
    box.inside("mkdir", "-p", deep)
    heard = " ".join(box.claudebox("--report").stdout.split())
    assert "/40 (too deep, or cannot be listed: nothing in it was looked at)" in heard


def test_worktree_that_the_user_adds_meanwhile_is_no_news(box: Box, account: Account, repository: Path) -> None:
    account.write(repository / "agent.sh", "touch started; until test -e added; do sleep 0.02; done\n")
    with claudebox_terminal(box, "--yes", "--run", "sh", "agent.sh", env=PLAIN) as opened:
        assert comes_true((repository / "started").exists)
        git(account, repository, "worktree", "add", "-q", str(account.home / "tree"))
        account.write(repository / "added")
        opened.wait()
        assert "claudebox: taken" not in opened.seen.decode()


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
touch .eslintcache .coverage .gitignore .env.example .python-version .editorconfig
mkdir -p .claude/rules; echo > .claude/rules/x.md
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


def test_what_is_merely_named_is_one_line(box: Box, repository: Path) -> None:
    heard = said(
        box.inside("sh", "-ec", "echo 'all:' > Makefile; echo > setup.py; touch .toolrc .other; touch flake.nix")
    )
    assert f"{NAMED}: 1 new .other, .toolrc (some tool may obey it)" in heard
    assert TITLE not in heard
    assert "Makefile" not in heard


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
        shown = opened.read_until(r"(?s)1 \.mcp\.json.*quarantine\?.*\[k\] ").group()
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
        opened.read_until("As before the box again: .git/config")
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
    box.account.write(repository / "agent.sh", f"echo x > .mcp.json; {COMMIT}; touch started; exec sleep 60\n")
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
        opened.read_until("was not moved")
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
