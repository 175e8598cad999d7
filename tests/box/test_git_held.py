"""What git cannot do in a box because its own files are held: it changes nothing, and says why."""

import os
import shlex
from pathlib import Path

import pytest

from conftest import Box, git, make_repository

pytestmark = pytest.mark.req("WORK-01")

TRY = """
try() { "$@" >/tmp/out 2>&1; echo "$? $*"; grep -q '^claudebox: ' /tmp/out || cat /tmp/out; }
state() { git for-each-ref; git status --porcelain; cat .git/config; git worktree list; ls -R .git/worktrees; }
state > /tmp/before 2>&1
"""
REVIEWS = [("--review", "off"), ("--review",)]
SAME = "state > /tmp/after 2>&1; diff /tmp/before /tmp/after"


@pytest.fixture
def shop(shop: Box) -> Box:
    make_repository(shop.account, shop.project)
    for name in ("other", "spare"):
        git(shop.account, shop.project, "branch", name)
    return shop


def tries(box: Box, *commands: str, options: tuple[str, ...] = ()) -> list[str]:
    """How each command ends, and what it says if that is not claudebox's. Nothing of git may have changed."""
    script = TRY + "\n".join(f"try {command}" for command in commands) + f"\n{SAME}"
    return box.sh(script, options=options).splitlines()


def test_what_would_write_the_configuration_does_not_begin(shop: Box) -> None:
    commands = [
        "git remote add far https://example.org/x",
        "git branch -u other",
        "git branch --track new other",
        "git push -u . main:pushed",
        "git checkout -q -b new --track other",
        "git worktree add --track -b new wt other",
        "git sparse-checkout set src",
        "git submodule add ./x x",
    ]
    assert tries(shop, *commands) == [f"1 {command}" for command in commands]
    # As before, git itself says that it cannot: it has changed nothing. The reason comes after it.
    done = shop.inside("sh", "-c", "git config a.b c; echo $?; git -C /tmp init -q own && git -C /tmp/own config a.b c")
    assert done.stdout == "4\n"
    assert "Device or resource busy\nclaudebox: this box holds .git/config read-only" in done.stderr
    assert "git -c NAME=VALUE" in done.stderr


def test_branches_are_renamed_and_deleted_without_a_word(shop: Box) -> None:
    """Git itself fails at its configuration, which says nothing of these branches, after it has done the job."""
    git(shop.account, shop.project, "config", "branch.other.description", "kept")
    script = "git branch -m spare renamed && git branch -d renamed && git branch -c main copy && git branch"
    done = shop.inside("sh", "-c", script)
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, ["  copy", "* main", "  other"]), done.stderr
    assert "config" not in done.stderr.partition("copied")[2]
    assert tries(shop, "git branch -m other renamed") == ["1 git branch -m other renamed"]


def test_messages_of_older_and_newer_git_are_known(shop: Box) -> None:
    """The newer ones begin with a small letter. Whichever is installed, here it says both, one after the other."""
    script = r"""
    mkdir /tmp/bin
    printf '%s\n' '#!/bin/sh' '{ said=$(/usr/bin/git "$@" 2>&1 >&3); status=$?; } 3>&1' \
        'printf "%s\n" "$said" | sed "s/\(fatal\|warning\): ./\1: $LETTER/" >&2; exit $status' > /tmp/bin/git
    chmod +x /tmp/bin/git
    export PATH=/etc/claudebox/bin:/tmp/bin:/usr/bin:/bin
    for LETTER in B b; do
        export LETTER
        git branch -m spare renamed && git branch -m renamed spare || exit
        git branch -c main copy && git branch -qD copy || exit
        ! /tmp/bin/git branch -m spare spare2 && git branch -m spare2 spare || exit
    done
    """
    done = shop.inside("sh", "-c", script)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("fatal")]
    assert said == [f"fatal: {letter}ranch is renamed, but update of config-file failed" for letter in "Bb"]


@pytest.mark.req("GIT-03")
def test_worktree_that_the_box_does_not_see_is_not_pruned(shop: Box) -> None:
    """Git would forget it, and with it the index and what was checked out."""
    outside = shop.account.home / "trees" / "linked"
    git(shop.account, shop.project, "worktree", "add", "-q", "-b", "side", str(outside))
    assert tries(shop, "git worktree prune", f"git worktree remove {outside}") == [
        "1 git worktree prune",
        f"1 git worktree remove {outside}",
    ]
    assert git(shop.account, outside, "status", "--porcelain") == ""
    # One of its own is pruned.
    shop.sh(
        "git worktree add -q /tmp/own -b own && rm -r /tmp/own && ! git worktree prune && git worktree remove /tmp/own"
    )
    assert git(shop.account, outside, "status", "--porcelain") == ""


@pytest.mark.req("GIT-03")
def test_worktree_of_an_earlier_box_is_removed_whole_or_not_at_all(shop: Box) -> None:
    place = ".claude/worktrees/one"
    shop.sh(f"git worktree add -q {place} -b one && echo work > {place}/work")
    assert tries(shop, f"git worktree remove --force {place}", "git worktree remove -f one") == [
        f"1 git worktree remove --force {place}",
        "1 git worktree remove -f one",
    ]
    assert (shop.project / place / "work").read_text() == "work\n"
    git(shop.account, shop.project, "worktree", "remove", "--force", place)
    shop.sh(f"git worktree add -q {place} one && git worktree remove {place} && git worktree prune")
    assert not (shop.project / place).exists()


@pytest.mark.parametrize("options", REVIEWS)
def test_worktree_that_would_vanish_is_not_made(shop: Box, options: tuple[str, ...]) -> None:
    other = shop.account.home / "elsewhere"
    other.mkdir()
    shop.account.own(other)
    commands = ["git worktree add ../x", "git worktree add ~/x -b x", "git worktree add -b x ../../y other"]
    expected = [f"1 {command}".replace("~", str(shop.account.home)) for command in commands]
    assert tries(shop, *commands, options=options) == expected
    shop.sh(
        "git worktree add -q ../../elsewhere/x && git worktree add -q in && git worktree add -q /tmp/z",
        options=(*options, "--mount-rw", str(other)),
    )
    assert (other / "x" / "README.md").exists()


def test_git_that_says_so_is_first_and_cannot_be_changed(shop: Box) -> None:
    """What git itself starts calls git itself."""
    seen = shop.sh("command -v git; git -c alias.which='!command -v git' which").splitlines()
    assert (seen[0], seen[1] != seen[0]) == ("/etc/claudebox/bin/git", True)
    assert shop.inside("sh", "-c", "echo x > /etc/claudebox/bin/git || rm /etc/claudebox/bin/git").returncode != 0


@pytest.mark.req("GIT-03")
def test_submodules_that_are_here_are_updated(shop: Box) -> None:
    account, project = shop.account, shop.project
    library = account.home / "library"
    make_repository(account, account.write(library / "l", "1\n").parent, "one")
    git(account, library, "commit", "-q", "--allow-empty", "-m", "two")
    git(account, project, "submodule", "--quiet", "add", str(library), "lib")
    git(account, project, "commit", "-qm", "with submodule")
    script = """
    git -C lib checkout -q HEAD~1 && git submodule update --init && git submodule status | cut -c1
    git -C lib log --format=%s -1
    """
    done = shop.inside("sh", "-c", script)
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, [" ", "two"]), done.stderr
    git(account, project, "submodule", "deinit", "-q", "-f", "lib")
    assert tries(shop, "git submodule update --init") == ["1 git submodule update --init"]


def test_names_of_held_files_are_data(shop: Box) -> None:
    """They are written into a script: what a project calls its files is never run, not even in the box."""
    name = "$(touch ran)'`touch ran`\"; touch ran.code-workspace"
    shop.account.write(shop.project / name, "{}\n")
    git(shop.account, shop.project, "add", "-A")
    git(shop.account, shop.project, "commit", "-qm", "strange")
    assert tries(shop, "git checkout HEAD~1") == ["1 git checkout HEAD~1"]
    assert not os.path.lexists(shop.project / "ran")
    done = shop.inside("sh", "-c", f"git rm {shlex.quote(name)}")
    assert (done.returncode, name in done.stderr) == (1, True)
    assert Path(shop.project, name).exists()


def test_change_of_the_users_own_in_a_held_file_is_left_alone(shop: Box) -> None:
    """Git would throw it away half-way: first it writes what is not held."""
    shop.account.write(shop.project / ".gitlab-ci.yml", "one\n")
    git(shop.account, shop.project, "add", "-A")
    git(shop.account, shop.project, "commit", "-qm", "ci")
    shop.account.write(shop.project / ".gitlab-ci.yml", "two\n")
    shop.account.write(shop.project / "README.md", "changed\n")
    commands = ["git stash", "git reset -q --hard", "git checkout .", "git restore .", "git checkout -f main"]
    assert tries(shop, *commands) == [f"1 {command}" for command in commands]
    done = shop.inside("sh", "-c", "git restore README.md && git switch -q -c new && git status --short")
    assert (done.returncode, done.stdout) == (0, " M .gitlab-ci.yml\n"), done.stderr


def test_masked_file_is_not_cleaned_half_way(shop: Box) -> None:
    shop.account.write(shop.project / ".env", "PASSWORD=hunter2-hunter2\n")
    assert tries(shop, "git clean -f -d -x", "git stash --all") == ["1 git clean -f -d -x", "1 git stash --all"]
    assert shop.sh("touch a && git clean -f -d -x -e .env && git stash -u && ls -A").splitlines()[-2:] == [
        ".git",
        "README.md",
    ]


@pytest.mark.parametrize("options", REVIEWS)
def test_files_are_moved_where_the_kernel_renames_none(shop: Box, options: tuple[str, ...]) -> None:
    """Above what is held, directories are mounts; in a layer, directories of the host cannot be renamed."""
    names = ("deep/.vscode/tasks.json", "deep/x y", "deep/dir/in/z", "other/.vscode/tasks.json", "other/a", "plain/b")
    for name in names:
        shop.account.write(shop.project / name, f"{name} has a line\n")
    git(shop.account, shop.project, "add", "-A")
    git(shop.account, shop.project, "commit", "-qm", "more")
    script = """
    (cd deep && git mv "x y" ../other) && git mv deep/dir other/a . && git mv dir/in plain/moved
    git commit -qm moved && git show --format= --name-status && git status --short
    """
    moved = {"deep/x y": "other/x y", "deep/dir/in/z": "plain/moved/z", "other/a": "a"}
    expected = [f"R100\t{old}\t{new}" for old, new in sorted(moved.items(), key=lambda pair: pair[0])]
    assert sorted(shop.sh(script, options=options).splitlines()) == sorted(expected)
