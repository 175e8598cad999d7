"""Files of Git LFS in a box, without git-lfs: git never stops half-way, and commits what git-lfs would."""

from __future__ import annotations

import hashlib

import pytest

from conftest import Box, git, make_repository

pytestmark = pytest.mark.req("WORK-01")

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
def shop(shop: Box) -> Box:
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


def test_content_is_committed_as_a_pointer_and_kept(shop: Box) -> None:
    script = (
        "rm x.bin && git checkout -q x.bin && cat x.bin && printf 'new \\0 content\\n' > x.bin && git commit -qam two"
    )
    assert shop.sh(f"{script} && git status --short") == OLD.decode()
    assert git(shop.account, shop.project, "cat-file", "blob", "main:x.bin") == pointer(NEW)
    assert (shop.project / place(NEW)).read_bytes() == NEW


def test_content_that_is_not_here_stays_a_pointer(shop: Box) -> None:
    script = "git checkout -q far && cat x.bin && git status --short && git checkout -q main && git status --short"
    done = shop.inside("sh", "-c", script)
    assert (done.returncode, done.stdout) == (0, pointer(b"elsewhere")), done.stderr
