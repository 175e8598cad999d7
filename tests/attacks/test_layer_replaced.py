"""Something takes a layer away, or puts another in its place, before bwrap binds the project: nothing starts."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import Box
from patience import comes_true

pytestmark = pytest.mark.req("LAND-01")

BWRAP = shutil.which("bwrap") or "/usr/bin/bwrap"
# What the process that becomes bwrap could find, if somebody else had made mounts there.
DEEDS = {
    "taken-away": 'cd / && umount -l "$project"',
    "another-overlay": (
        "mkdir -p /tmp/u /tmp/w; "
        'mount -t overlay other -o lowerdir="$project",upperdir=/tmp/u,workdir=/tmp/w,userxattr "$project"'
    ),
    "a-directory-of-it": 'mount --bind "$project/sub" "$project"',
    "something-else": 'mount --rbind /usr "$project"',
}


def with_bwrap_after(box: Box, deed: str) -> Box:
    script = f'#!/bin/sh\nproject={box.project}\n{deed} || exit 99\nexec {BWRAP} "$@"\n'
    path = box.account.write(box.account.home / "standins" / "bwrap", script, 0o755)
    box.account.environ["CLAUDEBOX_BWRAP"] = str(path)
    return box


def test_layer_that_stays_is_accepted(box: Box) -> None:
    assert with_bwrap_after(box, "true").sh("echo x > x; echo started", options=("--review",)) == "started\n"
    assert not (box.project / "x").exists()


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize(("place", "options"), [("", ("--review",)), ("/.github", ())], ids=["project", "guarded"])
@pytest.mark.root_differs("root may replace any layer")
def test_box_does_not_start_without_its_layer(box: Box, deed: str, place: str, options: tuple[str, ...]) -> None:
    """Without it, bwrap would bind the host's own directory, writable."""
    box.account.write(box.project / f".{place}/sub/file", "x\n")
    prefix = "mount -t tmpfs tmpfs /tmp && " if deed == "another-overlay" else ""
    aimed = prefix + DEEDS[deed].replace("$project", f"$project{place}")
    done = with_bwrap_after(box, aimed).inside("touch", f".{place}/started", options=options)
    assert done.returncode == 125, done.stderr
    assert "is not what it was when claudebox looked at it" in " ".join(done.stderr.split())
    assert not (box.project / f".{place}/started").exists()


@pytest.mark.parametrize("leaves", ["nothing", "a file"])
def test_layer_that_this_host_takes_away_is_missed(box: Box, leaves: str) -> None:
    """Whoever removes a directory, as `git switch` does, takes away the layer that lies over it in the box."""
    workflow = box.account.write(box.project / ".github/workflow", "on: push\n")
    evil = "mkdir -p .github; echo on: evil > .github/workflow" if leaves == "a file" else "true"
    script = f"touch ready; until [ -e go ]; do sleep 0.05; done; {evil}"
    with ThreadPoolExecutor() as pool:
        running = pool.submit(box.inside, "sh", "-c", script)
        assert comes_true((box.project / "ready").exists)
        workflow.unlink()
        workflow.parent.rmdir()
        box.account.write(box.project / ".github/workflow", "on: push\n")
        box.account.write(box.project / "go")
        done = running.result()
    assert (workflow.read_text() == "on: evil\n") == (leaves == "a file"), "the attack is real"
    assert "no layer was over it" in done.stderr
    assert ("changed .github/workflow" in done.stderr) == (leaves == "a file")
    assert "no layer was over it" in box.claudebox("--report").stdout


def test_directory_in_a_layer_that_is_direct_is_itself(box: Box) -> None:
    """What is bound over the layer of `.claude` has to be the host's directory of worktrees, and no other."""
    box.account.write(box.project / ".claude/worktrees/file", "x\n")
    box.account.write(box.project / ".claude/other/file", "x\n")
    worktrees = '"$project/.claude/worktrees"'
    assert with_bwrap_after(box, "true").inside("touch", ".claude/worktrees/started").returncode == 0
    assert (box.project / ".claude/worktrees/started").exists()
    for deed in (f"umount -l {worktrees}", f'mount --bind "$project/.claude/other" {worktrees}'):
        done = with_bwrap_after(box, deed).inside("true")
        assert done.returncode == 125, done.stderr
