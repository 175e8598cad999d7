"""A box commits what this host runs in ways that the work tree does not show: each such commit is named."""

import time
from pathlib import Path

import pytest

from conftest import Box, git, make_repository

pytestmark = [pytest.mark.req("GUARD-01")]

# `carry PARENTS PATH…` makes a commit with these files, of which there is none in the work tree.
PLUMBING = r"""
set -e
carry() {
    blob=$(echo evil | git hash-object -w --stdin)
    parents=$1; shift; export GIT_INDEX_FILE=/tmp/index; rm -f /tmp/index
    for one in $parents; do git read-tree "$one"; break; done
    printf "100755 $blob\t%s\n" "$@" | git update-index --add --index-info
    git commit-tree -m innocent $(for one in $parents; do echo "-p $one"; done) "$(git write-tree)"
    unset GIT_INDEX_FILE
}
"""
WAYS = r"""
git update-ref refs/heads/fix "$(carry "$(carry HEAD src/a)" .github/workflows/ci.yml)"
git update-ref refs/heads/orphan "$(carry '' .husky/pre-commit)"
git tag -a -m v1 v1 "$(carry HEAD deep/.vscode/tasks.json)"
git tag light "$(carry "$(carry HEAD src/b)" .mcp.json)"
git update-ref refs/hidden/x "$(carry HEAD .gitlab-ci.yml)"
git update-ref refs/heads/merge "$(carry "HEAD $(carry HEAD src/c)" Jenkinsfile)"
mkdir .idea; echo x > .idea/one.xml; git stash -qu; mkdir -p .idea; echo x > .idea/two.xml; git stash -qu
git update-ref refs/heads/far "$(carry HEAD src/d .circleci/config.yml)"
git replace refs/heads/far HEAD
echo "$(carry HEAD a/.envrc | tr a-f A-F) x" > .git/refs/heads/loud && git rev-parse -q --verify loud
mkdir -p .git/lfs; carry HEAD e/.envrc > .git/lfs/x
printf 'ref: %99s' lfs/x > .git/refs/heads/loose && git rev-parse -q --verify loose
tree=$(git rev-parse "$(carry HEAD src/.vscode/tasks.json):src")
{ printf '40755 src\0'; python3 -c "import sys; sys.stdout.buffer.write(bytes.fromhex('$tree'))"; } > /tmp/tree
git update-ref refs/heads/odd "$(git commit-tree -m x "$(git hash-object -t tree --literally -w /tmp/tree)")"
merged=$(carry HEAD d/.envrc); aborted=$(carry HEAD f/.envrc)
git checkout -q --detach HEAD && git update-ref HEAD "$(carry HEAD .travis.yml)" && git reset -q
carry HEAD b/.envrc > .git/ORIG_HEAD; echo ref: ORIG_HEAD > .git/refs/heads/led && git rev-parse -q --verify led
printf '%s\trefs/heads/tab\n' "$(carry HEAD c/.envrc)" >> .git/packed-refs && git rev-parse -q --verify tab
echo $merged > .git/AUTO_MERGE; echo ref: AUTO_MERGE > .git/refs/tags/auto && git rev-parse -q --verify auto
left=$(carry HEAD g/.envrc); zero=$(git rev-parse HEAD)
printf '%s %s a <a@b.c> 1700000000 +0000\tcheckout: moving from %s to main\n' $zero $zero $left >> .git/logs/HEAD
mkdir .git/rebase-merge; echo $aborted > .git/rebase-merge/orig-head
"""
NAMED = {
    "commit 2 of branch fix changes .github/workflows/ci.yml",
    "commit 1 of branch orphan changes .husky/pre-commit",
    "commit 1 of tag v1 changes deep/.vscode/tasks.json",
    "commit 2 of tag light changes .mcp.json",
    "commit 1 of refs/hidden/x changes .gitlab-ci.yml",
    "commit 2 of branch merge changes Jenkinsfile",
    "commit 1 of a stash changes .idea/one.xml",
    "commit 1 of a stash changes .idea/two.xml",
    "commit 1 of branch far changes .circleci/config.yml",
    "commit 1 of HEAD changes .travis.yml",
    "commit 1 of branch loud changes a/.envrc",
    "commit 2 of ORIG_HEAD changes b/.envrc",
    "commit 2 of HEAD's log changes g/.envrc",
    "commit 2 of branch tab changes c/.envrc",
    "commit 1 of AUTO_MERGE changes d/.envrc",
    "commit 1 of branch loose changes e/.envrc",
    "commit 1 of branch odd changes src/.vscode/tasks.json",
    "commit 1 of rebase-merge/orig-head changes f/.envrc",
}


@pytest.fixture
def repository(shop: Box) -> Path:
    return make_repository(shop.account, shop.project)


def said(box: Box, script: str) -> set[str]:
    """What the whole report of a box says of commits."""
    done = box.inside("sh", "-c", PLUMBING + script, options=("--quiet",))
    assert done.returncode == 0, done.stderr
    text = box.claudebox("--report").stdout.partition("All of it:\n")[2] if done.stderr else ""
    lines = {line.strip() for line in text.splitlines()}
    return {line for line in lines if " changes " in line or "looked at" in line or "new commits" in line}


def test_every_way_to_carry_something_is_named(shop: Box, repository: Path) -> None:
    assert said(shop, WAYS) == NAMED
    assert said(shop, "git branch other fix; git tag -f light fix") == set()


# What this host runs of this project, though no name says so: what its git leads to, and what is a repository itself.
UNNAMED = r"""
git update-ref refs/heads/hook "$(carry HEAD tools/hooks/post-checkout)"
git update-ref refs/heads/module "$(carry HEAD nbstripout.py src/more.py)"
git update-ref refs/heads/package "$(carry HEAD nbstripout/__init__.py)"
git update-ref refs/heads/bare "$(carry HEAD lib/config lib/HEAD lib/refs/x lib/objects/x)"
git update-ref refs/heads/harmless "$(carry HEAD src/config/x docs/HEAD objects/x main.py x/tools/hooks/x)"
export GIT_INDEX_FILE=/tmp/index; git read-tree HEAD
printf '120000 %s\ttools\n' "$(printf src | git hash-object -w --stdin)" | git update-index --replace --index-info
git update-ref refs/heads/link "$(git commit-tree -m x -p HEAD "$(git write-tree)")"
"""
UNNAMED_ONES = {
    "commit 1 of branch hook changes tools/hooks/post-checkout",
    "commit 1 of branch module changes nbstripout.py",
    "commit 1 of branch package changes nbstripout/__init__.py",
    *(f"commit 1 of branch bare changes lib/{name}" for name in ("config", "HEAD", "objects/x")),
    "commit 1 of branch link changes tools",
    "commit 1 of branch link changes tools/hooks/pre-commit",
}


def test_what_no_name_tells_is_named(shop: Box, repository: Path) -> None:
    shop.account.write(repository / "tools/hooks/pre-commit", "#!/bin/sh\npython3 -m nbstripout\n", mode=0o755)
    shop.account.write(repository / "main.py")
    make_repository(shop.account, repository)
    git(shop.account, repository, "config", "core.hooksPath", "tools/hooks")
    assert said(shop, UNNAMED) == UNNAMED_ONES


def test_repository_in_the_project_is_looked_at(shop: Box, repository: Path) -> None:
    make_repository(shop.account, shop.account.write(repository / "vendor/lib/x").parent)
    script = 'cd vendor/lib; git update-ref refs/heads/fix "$(carry HEAD .envrc)"'
    assert said(shop, script) == {"commit 1 of branch fix of vendor/lib changes .envrc"}


def test_commits_of_a_review_are_named_when_they_arrive(shop: Box, repository: Path) -> None:
    script = PLUMBING + 'git update-ref refs/heads/fix "$(carry HEAD .envrc)"'
    done = shop.inside("sh", "-c", script, options=("--review", "--land", "all"))
    assert "  commit 1 of branch fix changes .envrc\n" in done.stderr


def test_crowd_of_files_hides_nothing(shop: Box, repository: Path) -> None:
    script = """
    git update-ref refs/heads/crowd "$(carry HEAD $(seq -f .envrc.%.0f 9) $(seq -f d%.0f/.vscode/x 3000))"
    git update-ref refs/heads/crowd "$(carry crowd .github/workflows/evil.yml)"
    """
    done = shop.inside("sh", "-c", PLUMBING + script, options=("--quiet",))
    assert "commit 2 of branch crowd changes .github/workflows/evil.yml" in done.stderr
    assert " -- .envrc.1\n" in done.stderr, "how to see it"
    assert len(done.stderr.splitlines()) < 24
    whole = shop.claudebox("--report").stdout
    assert "commit 1 of branch crowd changes d3000/.vscode/x" in whole


def test_ordinary_work_is_silent(shop: Box, repository: Path) -> None:
    shop.account.write(repository / ".husky/pre-commit", "true\n")
    git(shop.account, repository, "add", "-A")
    git(shop.account, repository, "commit", "-qm", "mine")
    git(shop.account, repository, "branch", "topic2", "HEAD~1")
    script = """
    for number in 1 2 3; do echo $number > src$number; git add -A; git commit -qm $number; done
    git checkout -qb topic HEAD~2; echo y > y; git add y; git commit -qm y; git rebase -q main; git checkout -q main
    git merge -q --no-ff -m merged topic; git tag -a -m v v; echo z > z; git stash -qu; git stash pop -q; git gc -q
    git checkout -q topic2; git cherry-pick -x main~4; echo z > z; git add z; git commit -q --amend -m other
    """
    assert said(shop, script) == set()


def test_worktree_and_submodule_are_looked_at(shop: Box, repository: Path) -> None:
    account, library = shop.account, shop.account.home / "library"
    make_repository(account, account.write(library / "l").parent)
    git(account, repository, "submodule", "--quiet", "add", str(library), "lib")
    git(account, repository, "commit", "-qm", "with submodule")
    script = 'cd lib; git update-ref refs/heads/x "$(carry HEAD .envrc)"'
    assert said(shop, script) == {"commit 1 of branch x of submodule lib changes .envrc"}
    # On no ref at all: a commit of the project names it, so `git submodule update` would check it out.
    script = """
    inner=$(cd lib; carry HEAD .gitlab-ci.yml); plain=$(cd lib; carry HEAD plain)
    link() { git update-index --cacheinfo 160000,$1,lib; git update-ref $2 $(git commit-tree -m x $(git write-tree)); }
    link $plain refs/heads/silent; link $inner refs/heads/link
    link $(seq -s "" 30 | cut -c-40) refs/heads/x
    """
    line, other = sorted(said(shop, script))
    assert line.startswith("commit 1 of ")
    assert line.endswith(" of submodule lib changes .gitlab-ci.yml")
    assert other == "commit 123456789101 of a submodule was not looked at: it is missing"
    linked = account.home / "linked"
    git(account, repository, "worktree", "add", "-q", "-b", "side", str(linked))
    script = 'git update-ref refs/heads/side "$(carry HEAD .envrc)"'
    assert said(Box(account, linked), script) == {"commit 1 of branch side changes .envrc"}


def test_object_that_is_not_what_its_name_says_is_told(shop: Box, repository: Path) -> None:
    """A later box could put the real one back, and no ref would have moved."""
    script = """
    commit=$(carry HEAD .envrc); git update-ref refs/heads/lie $commit
    place() { echo .git/objects/$(echo $1 | cut -c-2)/$(echo $1 | cut -c3-); }
    chmod u+w "$(place $commit)"; cp "$(place $(git rev-parse HEAD))" "$(place $commit)"
    """
    (line,) = said(shop, script)
    assert line.startswith("not all commits of branch lie were looked at: object ")


def test_many_commits_hide_nothing_and_take_no_longer(shop: Box, repository: Path) -> None:
    script = r"""
    { echo reset refs/heads/many; for number in $(seq 100000); do
        printf 'commit refs/heads/many\ncommitter a <a@b> %s +0000\ndata 1\nx\n' $((1000000000 + number))
        [ $number != 50000 ] || printf 'M 100644 inline .envrc\ndata 1\nx\n'
    done; } | git fast-import --quiet
    """
    before = time.monotonic()
    assert said(shop, "true") == set()
    empty = time.monotonic() - before
    done = said(shop, script + "date +%s > ended")
    assert time.time() - int((repository / "ended").read_text()) < 15 + 3 * empty
    assert "branch many changes .envrc" in done
    assert any(line.startswith("not all commits of branch many were looked at: ") for line in done)


def test_directories_in_each_other_many_times_hide_nothing_and_take_no_longer(shop: Box, repository: Path) -> None:
    script = r"""
    blob=$(echo x | git hash-object -w --stdin); tree=$(printf "100644 blob $blob\t.envrc\n" | git mktree)
    for level in 1 2 3 4 5 6 7 8 9; do
        tree=$(for name in 1 2 3 4 5 6 7 8 9; do printf "040000 tree $tree\t$name\n"; done | git mktree)
    done
    tree=$( (git ls-tree $tree; printf "100644 blob $blob\tlefthook.yml\n") | git mktree)
    git update-ref refs/heads/bomb "$(git commit-tree -m x -p "$(git commit-tree -m x $tree)" "HEAD^{tree}")"
    """
    before = time.monotonic()
    found = said(shop, script)
    assert any(line.startswith("not all commits of branch bomb") for line in found)
    assert "commit 1 of branch bomb changes lefthook.yml" in found
    assert time.monotonic() - before < 30


def test_commit_that_comes_later_is_looked_at_then(shop: Box, repository: Path) -> None:
    """A ref, or a commit of the project, names it before it is there: for a submodule, too."""
    account, library = shop.account, shop.account.home / "library"
    make_repository(account, account.write(library / "l").parent)
    git(account, repository, "submodule", "--quiet", "add", str(library), "lib")
    git(account, repository, "commit", "-qm", "with submodule")
    first = """
    git update-ref refs/heads/x "$(carry HEAD .gitlab-ci.yml)"
    link=$(cd lib; carry HEAD .envrc)
    git update-index --cacheinfo 160000,$link,lib; git commit -qm up
    mkdir data; tip=$(git rev-parse x); mv .git/objects/$(echo $tip | sed 's|^..|&/|') data/own
    mv .git/modules/lib/objects/$(echo $link | sed 's|^..|&/|') data/lib; echo $tip $link > data/names
    """
    told = said(shop, first)
    tip, link = (repository / "data/names").read_text().split()
    assert told == {
        f"not all commits of branch x were looked at: object {tip:.12} is missing",
        f"commit {link:.12} of a submodule was not looked at: it is missing",
    }
    assert said(shop, "true") == set()
    back = """
    read tip link < data/names; place() { echo $1/$(echo $2 | sed 's|^..|&/|'); }
    mkdir -p .git/objects/$(echo $tip | cut -c1-2) .git/modules/lib/objects/$(echo $link | cut -c1-2)
    mv data/own $(place .git/objects $tip); mv data/lib $(place .git/modules/lib/objects $link)
    """
    assert said(shop, back) == {
        "commit 1 of branch x changes .gitlab-ci.yml",
        f"commit 1 of {link} of submodule lib changes .envrc",
    }


@pytest.mark.parametrize("digits", [40, 64])
def test_ref_of_no_object_hides_nothing(shop: Box, repository: Path, digits: int) -> None:
    """Neither one that is as long as names of the other hash, nor one that has moved since the box before."""
    for number, path in enumerate((".circleci/config.yml", ".travis.yml"), 1):
        script = f"""
        printf %0{digits}d {number} > .git/AAA_HEAD
        git update-ref refs/heads/fix{number} "$(carry HEAD {path})"
        """
        named = {f"commit 1 of branch fix{number} changes {path}"}
        ref = f"not all commits of AAA_HEAD were looked at: object {0:012} is missing"
        assert said(shop, script) == {*named, ref}
