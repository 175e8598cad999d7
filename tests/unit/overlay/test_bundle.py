"""Branches come from a bundle whose pack git has checked, and whose list of branches anybody may have written."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from claudebox.overlay import bundle
from claudebox.overlay.bundle import GitFailed, Repository
from claudebox.overlay.store import Layer
from unit.overlay.world import make_world

pytestmark = [pytest.mark.req("LAND-01"), pytest.mark.git]

IDENTITY = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
ENVIRON = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent", **IDENTITY}


def git(where: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=where, env=ENVIRON, check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Pair:
    """A repository of the host, and the box's."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        world = make_world(tmp_path, {})
        self.host, self.box, self.layer = world.project, tmp_path / "box", world.layer
        git(self.host, "init", "-qb", "main")
        git(self.host, "commit", "-q", "--allow-empty", "-m", "one")
        git(tmp_path, "clone", "-q", str(self.host), str(self.box))
        program = shutil.which("git")
        assert program is not None
        self.repository = Repository(program, f"{self.host}/.git", str(self.host))
        self.header: dict[str, str] = {}
        monkeypatch.setattr(bundle, "_make_bundle", self.pack)

    def pack(self, layer: Layer, _: Repository) -> None:
        """Pack what the box has, and write something else into the header, as a box with a descriptor could."""
        os.mkdir(layer.out)
        git(self.box, "bundle", "create", "-q", f"{layer.out}/bundle", "--branches", "--not", "--remotes")
        file = Path(layer.out, "bundle")
        header, end, pack = file.read_bytes().partition(b"\n\n")
        for old, new in self.header.items():
            assert old.encode() in header
            header = header.replace(old.encode(), new.encode())
        file.write_bytes(header + end + pack)

    def fetch(self) -> set[str]:
        bundle.fetch_commits(self.layer, self.repository)
        return self.refs()

    def refs(self) -> set[str]:
        return set(git(self.host, "for-each-ref", "--format=%(refname)").split())


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    return Pair(tmp_path, monkeypatch)


def test_branches_that_the_box_no_longer_has_are_gone(pair: Pair) -> None:
    """Also if one of them stands where a new one needs a directory."""
    git(pair.box, "checkout", "-qb", "a")
    git(pair.box, "commit", "-q", "--allow-empty", "-m", "two")
    assert pair.fetch() == {"refs/heads/main", "refs/claudebox/1/a"}
    git(pair.box, "branch", "-qm", "a", "a/b")
    git(pair.box, "commit", "-q", "--allow-empty", "-m", "three")
    assert pair.fetch() == {"refs/heads/main", "refs/claudebox/1/a/b"}
    git(pair.host, "fsck", "--strict")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("refs/heads/more", "refs/heads/../../heads/main"),
        ("refs/heads/more", "refs/heads/more.lock"),
        ("{more}", "0" * 40),
        ("{more}", "{holed}"),
        ("# v2 git bundle", "of another kind"),
    ],
    ids=["a name that leads out", "a name that git has not", "no commit", "a commit with a hole", "no bundle"],
)
def test_list_of_branches_is_not_trusted(pair: Pair, old: str, new: str) -> None:
    git(pair.box, "checkout", "-qb", "more")
    git(pair.box, "commit", "-q", "--allow-empty", "-m", "two")
    # An object that nothing leads to, and that leads to one that was removed, as `git prune` may leave it.
    (pair.host / "x").write_text("x\n")
    git(pair.host, "add", "x")
    tree = git(pair.host, "write-tree")
    known = {"more": git(pair.box, "rev-parse", "more"), "holed": git(pair.host, "commit-tree", "-m", "x", tree)}
    (pair.host / f".git/objects/{tree[:2]}/{tree[2:]}").unlink()
    pair.header = {old.format(**known): new.format(**known)}
    before = git(pair.host, "rev-parse", "main")
    with pytest.raises(GitFailed):
        pair.fetch()
    assert pair.refs() == {"refs/heads/main"}
    assert git(pair.host, "rev-parse", "main") == before
    assert not os.path.lexists(pair.layer.out)
