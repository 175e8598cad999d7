"""What claudebox reads of commits by itself is right, and what is none is refused."""

import random
import subprocess
from pathlib import Path

import pytest

from claudebox.host.git.directory import read_refs
from claudebox.host.tree import Tree
from claudebox.overlay.history import CannotTell, History, Objects, hash_of


def git(where: Path, *words: str, text: str = "") -> list[str]:
    done = subprocess.run(["git", *words], cwd=where, input=text, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def stored(where: Path) -> dict[bytes, tuple[bytes, bytes]]:
    content = subprocess.check_output(["git", "cat-file", "--batch-all-objects", "--batch"], cwd=where)
    found = {}
    while content:
        head, _, rest = content.partition(b"\n")
        name, kind, size = head.split(b" ")
        found[bytes.fromhex(name.decode())] = kind, rest[: int(size)]
        content = rest[int(size) + 1 :]
    return found


@pytest.mark.git
@pytest.mark.parametrize(("form", "lies"), [("sha1", False), ("sha256", True)])
def test_new_commits_and_their_differences_are_right(tmp_path: Path, form: str, lies: bool) -> None:
    chance = random.Random(form)
    git(tmp_path, "init", "-q", "--bare", f"--object-format={form}")
    lines = []
    for number in range(1, 61):
        lines += [f"commit refs/heads/b{number}", f"mark :{number}"]
        lines += [f"committer a <a@b> {chance.randrange(10**9) if lies else number} +0000", "data 0"]
        parents = {max(1, number - chance.randrange(1, 7)) for _ in range(chance.choice((1, 1, 2, 3)))} - {number}
        lines += [f"{'merge' if at else 'from'} :{parent}" for at, parent in enumerate(parents)]
        for _ in range(3):
            path = "/".join(chance.choice("abc") for _ in range(chance.randrange(1, 4)))
            content = [f"M 100644 inline {path}", "data 1", chance.choice("xyz")]
            lines += [f"D {path}"] if chance.random() < 0.2 else content
    git(tmp_path, "fast-import", "--quiet", text="\n".join(lines) + "\n")
    git(tmp_path, "pack-refs", "--all")
    git(tmp_path, "update-ref", "refs/heads/b1", "refs/heads/b2")
    tips = read_refs(Tree(), str(tmp_path)).tips
    said = git(tmp_path, "for-each-ref", "--format=%(refname) %(objectname)")
    assert sorted(" ".join(pair) for pair in tips.items()) == said
    ask = stored(tmp_path).__getitem__
    objects = Objects(ask)
    for _ in range(40):
        new, *old = (bytes.fromhex(tip) for tip in chance.sample(sorted(tips.values()), chance.randrange(2, 5)))
        found, trouble = History(Objects(ask), old).find_new(new)
        exact = {*History(objects, [new]).walk()} - {*History(objects, old).walk()}
        # Dates that lie may make an old commit count as new, and never a new one as old.
        assert (trouble, exact <= {*found}, lies or exact == {*found}) == ("", True, True)
    words = ["diff-tree", "--stdin", "-r", "-c", "--root", "--no-renames", "--name-only"]
    theirs: dict[str, set[str]] = {}
    for line in git(tmp_path, *words, text="".join(f"{tip}\n" for tip in tips.values())):
        if len(line) >= 40:
            names = theirs.setdefault(line, set())
        else:
            names.add(line)
    for tip in tips.values():
        commit = objects.commit(bytes.fromhex(tip))
        trees = tuple(objects.commit(parent).tree for parent in commit.parents)
        mine = {path.decode() for path, _ in objects.differences(commit.tree, trees)}
        # A file in one parent and a directory in the other: git calls the path unchanged in a merge.
        assert mine >= theirs.get(tip, set())
        assert len(trees) > 1 or mine == theirs.get(tip, set())


NO_COMMITS = [b"", b"tree x\n\nx", b"tree\n", b"object zz\n", b"tree " + b"0" * 40 + b"\nparent y\ncommitter z\n\n"]


@pytest.mark.parametrize("content", NO_COMMITS)
@pytest.mark.parametrize("kind", [b"commit", b"tree", b"tag"])
def test_what_is_no_commit_is_refused(content: bytes, kind: bytes) -> None:
    objects = Objects(lambda _: (kind, content))
    for name in (hash_of(kind, content), b"\0" * 20):
        with pytest.raises(CannotTell):
            objects.commit(name)


def test_heads_log_names_commits(tmp_path: Path) -> None:
    """`git checkout -` goes where a line says that it came from; those of worktrees have their own."""
    now, was, left, of_worktree = ("1" * 40, "2" * 40, "3" * 40, "4" * 40)
    for place, commit in ((tmp_path, left), (tmp_path / "worktrees/one", of_worktree)):
        (place / "logs").mkdir(parents=True)
        line = f"{was} {now} a <a@b.c> 1700000000 +0000\tcheckout: moving from {commit} to main\n"
        (place / "logs/HEAD").write_text(f"{'0' * 40} {was} a <a@b.c> 1700000000 +0000\tcommit\n{line}")
    assert {*read_refs(Tree(), str(tmp_path)).tips.values()} == {now, was, left, of_worktree}
