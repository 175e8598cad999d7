"""Git in a box does its whole job, or says beforehand that it cannot and changes nothing."""

import shutil

import pytest

from conftest import Account, Box, git
from running.needs import needed

pytestmark = [pytest.mark.req("WORK-01"), pytest.mark.attributes]

WHEN = "2026-01-01T00:00:00Z"
DATES = ("--env", f"GIT_AUTHOR_DATE={WHEN}", "--env", f"GIT_COMMITTER_DATE={WHEN}")
DIRECT, GUARDED, REVIEW = ("--review", "off"), ("--review", "guarded"), ("--review",)
# After each operation: how it ended, and all that git and the files say.
OBSERVE = """
observe() {
    status=$1; shift
    echo "== $status $*"
    git status --porcelain=v2 --branch; git for-each-ref; cat .git/modules/module/HEAD; ls .git/worktrees 2>/dev/null
    find . -name .git -prune -o -type f -print | LC_ALL=C sort | xargs -d '\\n' cksum
}
"""
# On branches that differ in ordinary files. The branch `topic` changes a.txt, `side` adds b.txt.
ORDINARY = """
git checkout -q topic
git switch -q main
git checkout -q -b work
git merge -q --no-ff -m merged topic
git switch -q --detach main
git switch -q work
git cherry-pick side
git revert --no-edit HEAD
git reset -q --soft HEAD~1
git commit -q -m again
git reset -q --hard HEAD~1
git commit -q --amend -m amended
git rebase -q side
git checkout -q main
echo more >> a.txt
git stash -q
git stash pop -q
git stash push -q -u
git stash apply -q
git stash drop -q
git restore a.txt
git checkout topic -- a.txt
git reset -q
git checkout -q .
git mv a.txt c.txt
git rm -q sub/d.txt
git commit -q -m moved
git mv dir renamed
git mv renamed/one ./renamed/in .
git commit -q -m renamed
git reset -q --hard HEAD~1
git tag -a v1 -m one
git branch spare
git branch -m spare renamed
git branch -q -d renamed
git format-patch -q -o /tmp/patches main~1..main
git reset -q --hard HEAD~1
git am -q /tmp/patches/*.patch
git apply -R /tmp/patches/*.patch
git checkout -q -f main
git clean -q -f -d
git apply -R < /tmp/patches/0001-moved.patch
git reset -q --hard
git clean -q -f -d
git bisect start main main~1
git bisect reset
git notes add -m noted
git worktree add -q wt topic
git worktree remove wt
git worktree prune
touch loose; mkdir -p build; touch build/x; git clean -q -f -d
git submodule update -q
git -C module checkout -q HEAD~1
git submodule update -q --init --recursive
git fetch -q . topic
git pull -q --no-rebase . side
git pull -q --rebase . topic
git push -q . main:pushed
git gc -q
git clone -q . inner && rm -rf inner
project=$PWD && cd /tmp && git clone -q $project other
git -c advice.detachedHead=false checkout -q v1
git --no-pager -C module/.. checkout -q main
""".strip().splitlines()
# Over branches that differ in what the host runs: `ci` in {file}. Each is tried in the same state, `main`.
OVER_HELD = """
git checkout -q ci
git switch -q ci
git checkout -q -B new ci
git co ci
git -c a.b=c -C . checkout ci
git checkout ci -- .
git restore --source=ci --worktree --staged .
git reset -q --hard ci
git reset -q --keep ci
git merge -q ci
git rebase -q ci
git rebase -q --onto ci topic side
git cherry-pick ci
git cherry-pick topic ci
git revert --no-edit removed
git pull -q --no-rebase . ci
git pull -q --rebase . ci
git stash apply -q kept
git diff main ci | git apply
git diff main ci | git apply --index -
git format-patch -q --stdout ci -1 | git am -q
git bisect start ci main~1
git rm -q -r .
git rm -q '*.yml'
cd sub && git rm -q ../{file}
cd sub && git mv ../{file} here
git mv {file} moved
git switch -q --orphan empty
""".strip().splitlines()

BACK = """
git rebase --abort; git cherry-pick --abort; git bisect reset
git checkout -qf main; git reset -q --hard start; git clean -fdq; git branch -qD new
"""


@pytest.fixture
@needed("box")
def shop(user: Account) -> Box:
    """A project with a submodule, and branches that differ in ordinary files, a held file and a held directory."""
    user.write(
        user.home / ".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.org\n[alias]\n\tco = checkout -q\n"
    )
    library = user.home / "src" / "library"
    user.write(library / "l", "1\n")
    project = user.home / "src" / "shop"
    script = f"""
    set -e; export GIT_AUTHOR_DATE={WHEN} GIT_COMMITTER_DATE={WHEN}
    cd {library}; git init -q -b main; git add -A; git commit -qm one; echo 2 > l; git commit -qam two
    mkdir {project}; cd {project}; git init -q -b main
    git -c protocol.file.allow=always submodule --quiet add {library} module
    mkdir -p sub dir/in .github/workflows; echo 1 > dir/one; echo 2 > dir/in/two; echo a > a.txt; echo d > sub/d.txt
    echo 'ci: 1' > .gitlab-ci.yml; echo 'on: push' > .github/workflows/ci.yml
    git add -A; git commit -qm one; git branch start
    git checkout -qb topic; echo topic > a.txt; git commit -qam topic
    git checkout -q main; git checkout -qb side; echo b > b.txt; git add b.txt; git commit -qm side
    git checkout -q main; git checkout -qb removed; echo x > x; git add x; git commit -qm x; git reset -q --hard HEAD~1
    """
    done = user.run("sh", "-c", script)
    assert done.returncode == 0, done.stderr
    return Box(user, project)


def observed(box: Box, script: str, *options: str) -> list[str]:
    """What each of the operations does in one box, as one text for each."""
    done = box.inside("sh", "-c", script, options=(*DATES, *options))
    assert done.returncode == 0, done.stderr
    return done.stdout.split("== ")[1:]


def script_of(operations: list[str], back: str = ":") -> str:
    lines = [f'({line}) >/tmp/out 2>&1; observe $? "{line}"; ({back}) >/tmp/out 2>&1' for line in operations]
    return OBSERVE + "\n".join(lines) + "\n:"


def in_each_mode(box: Box, script: str, *modes: tuple[str, ...]) -> list[list[str]]:
    """Try the same in boxes of several kinds, each time from the same start."""
    start = box.account.home / "start"
    shutil.copytree(box.project, start, symlinks=True)
    box.account.own(start)
    found = []
    for mode in modes:
        found.append(observed(box, script, *mode))
        box.claudebox("--review", "discard", "--yes")
        shutil.rmtree(box.project)
        shutil.copytree(start, box.project, symlinks=True)
        box.account.own(box.project)
    return found


@pytest.mark.req("LAND-01")
def test_same_operations_give_the_same_in_every_kind_of_box(shop: Box) -> None:
    direct, guarded, review = in_each_mode(shop, script_of(ORDINARY), DIRECT, GUARDED, REVIEW)
    assert len(ORDINARY) >= 30
    assert [one.splitlines()[0] for one in direct if not one.startswith("0 ")] == []
    assert guarded == direct
    assert review == direct


def make_branch(box: Box, file: str) -> None:
    """A branch `ci` that changes a file, `removed` that has taken it away, and a stash that changes it."""
    script = f"""
    set -e; export GIT_AUTHOR_DATE={WHEN} GIT_COMMITTER_DATE={WHEN}
    git checkout -qb ci; echo changed > {file}; git commit -qam ci
    git checkout -q removed; git rm -q {file}; git commit -qm removed
    git checkout -q main; echo stashed > {file}; git tag kept $(git stash create); git checkout -q {file}
    """
    done = box.account.run("sh", "-c", script, cwd=box.project)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("file", "mode"),
    [
        (".gitlab-ci.yml", DIRECT),
        pytest.param(".gitlab-ci.yml", GUARDED, marks=pytest.mark.exhaustive("a single file is held there, too")),
        (".github/workflows/ci.yml", DIRECT),
    ],
)
def test_what_would_stop_half_way_does_not_begin(shop: Box, file: str, mode: tuple[str, ...]) -> None:
    make_branch(shop, file)
    operations = [line.replace("{file}", file) for line in OVER_HELD]
    saying = "grep -q 'was not started.*read-only' /tmp/out || cat /tmp/out"
    lines = [f"({line}) >/tmp/out 2>&1; observe $? x; {saying}" for line in operations]
    script = OBSERVE + "observe 1 x\n" + "\n".join(lines)
    done = shop.inside("sh", "-c", script, options=(*DATES, *mode))
    assert done.returncode == 0, done.stderr
    start, *others = done.stdout.split("== ")[1:]
    assert len(others) == len(OVER_HELD)
    assert {line: what for line, what in zip(OVER_HELD, others, strict=True) if what != start} == {}
    assert git(shop.account, shop.project, "status", "--porcelain") == ""


def test_branch_that_is_not_named_is_looked_at(shop: Box) -> None:
    make_branch(shop, ".gitlab-ci.yml")
    git(shop.account, shop.project, "branch", "-q", "-u", "ci")
    script = (
        "for command in 'rebase' 'merge' 'pull --rebase' 'pull --no-rebase'; do git $command 2>&1 | head -n 1; done"
    )
    said = shop.sh(f"{script}; git checkout -q topic; git checkout - | tail -n 1").splitlines()
    assert [line.split('"')[1] for line in said if "was not started" in line] == [
        "git rebase",
        "git merge",
        "git pull",
        "git pull",
    ]
    assert git(shop.account, shop.project, "status", "--porcelain", "-b") == "## main...ci [behind 1]\n"


@pytest.mark.req("LAND-01")
@pytest.mark.parametrize(
    ("file", "modes"),
    [
        (".github/workflows/ci.yml", (GUARDED,)),
        pytest.param(".github/workflows/ci.yml", (REVIEW,), marks=pytest.mark.exhaustive("layers all the same")),
        pytest.param(".gitlab-ci.yml", (REVIEW,), marks=pytest.mark.exhaustive("a project that is a layer holds none")),
    ],
)
def test_over_layers_git_does_its_whole_job(shop: Box, file: str, modes: tuple[tuple[str, ...], ...]) -> None:
    """What a host without a box does is what happens in it."""
    make_branch(shop, file)
    # A directory that is a layer cannot be removed: git goes on without a word, but the directory stays.
    left_out = ("git rm", "cd sub", "git switch -q --orphan")
    operations = [line.replace("{file}", file) for line in OVER_HELD if not line.startswith(left_out)]
    script = script_of(operations, BACK)
    found = in_each_mode(shop, script, *modes)
    environ = {"GIT_AUTHOR_DATE": WHEN, "GIT_COMMITTER_DATE": WHEN, "TMPDIR": str(shop.account.home)}
    host = shop.account.run("sh", "-c", script, cwd=shop.project, env=environ)
    for one in found:
        assert one == host.stdout.split("== ")[1:]
