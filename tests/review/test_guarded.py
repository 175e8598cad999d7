"""In an ordinary box, the directories that this host runs are layers, and the rest of the project is as ever."""

import os
import subprocess
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Box
from patience import comes_true
from review.test_box import git, layers_of, repository
from running.versions import versions
from terminal.pseudoterminal import PLAIN, Terminal
from unit.overlay.world import picture

__all__ = ["repository"]
pytestmark = [pytest.mark.req("LAND-01"), pytest.mark.attributes]

WALLS = ("--review", "off")
CHECKOUT = """
git checkout -q -b ci && echo 'on: pull_request' > .github/workflows/ci.yml && git commit -qam ci &&
git checkout -q main && git checkout -q ci && git status --short
"""


def layers_left(box: Box) -> list[str]:
    return [path.name for path in box.account.home.glob(".claudebox/instances/*/layers/*")]


def test_git_goes_over_what_is_guarded(box: Box, repository: Path) -> None:
    # As a read-only mount, it stops git half-way.
    assert box.inside("sh", "-c", CHECKOUT, options=WALLS).returncode != 0
    git(box.account, repository, "checkout", "-qf", "main")
    git(box.account, repository, "branch", "-qD", "ci")
    before = picture(repository / ".github")
    done = box.inside("sh", "-c", f"{CHECKOUT.strip()} && echo direct > direct")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert picture(repository / ".github") == before
    assert (repository / "direct").read_text() == "direct\n"
    assert "host runs   .github/workflows/ci.yml" in done.stderr
    assert "What is committed of it, git here shows as changed until it lands." in done.stderr
    assert git(box.account, repository, "status", "--short") == " M .github/workflows/ci.yml\n?? direct\n"
    assert box.claudebox("--review", "land", "--land", "safe").returncode == 0
    assert picture(repository / ".github") == before
    assert box.claudebox("--review", "land", "--land", "all").returncode == 0
    assert (repository / ".github/workflows/ci.yml").read_text() == "on: pull_request\n"
    assert git(box.account, repository, "status", "--short") == "?? direct\n"
    assert layers_of(box.account) == []


def test_several_directories_are_one_layer(box: Box, repository: Path) -> None:
    box.account.write(repository / "deep/down/.vscode/tasks.json", "{}\n")
    script = "echo x > deep/down/.vscode/new; rm .github/workflows/ci.yml; echo y > deep/down/y"
    box.sh(script)
    box.account.write(repository / ".idea/x.xml", "<x/>\n")
    box.sh("echo z > .idea/z; cat deep/down/.vscode/new")
    assert [path.name for path in layers_of(box.account)] == ["1"]
    assert "2 added, 1 deleted" in box.claudebox("--review", "list").stdout
    assert not (repository / "deep/down/.vscode/new").exists()
    assert (repository / "deep/down/y").exists()
    box.claudebox("--review", "land", "--land", "all")
    assert (repository / "deep/down/.vscode/new").exists()
    assert (repository / ".idea/z").exists()
    assert not (repository / ".github/workflows/ci.yml").exists()
    assert layers_of(box.account) == []


def test_git_itself_stays_guarded(box: Box, repository: Path) -> None:
    done = box.inside("sh", "-c", "echo evil > .git/hooks/pre-commit || git config a.b c")
    assert done.returncode != 0
    assert layers_left(box) == []


def test_project_without_such_a_directory_has_no_layer(box: Box) -> None:
    assert box.sh("echo direct > direct; ls") == "README.md\ndirect\n"
    assert list(box.account.home.glob(".claudebox/instances/*/layers")) == []
    assert (box.project / "direct").exists()


def test_box_that_changes_nothing_there_says_nothing_and_keeps_nothing(box: Box, repository: Path) -> None:
    script = "cat .github/workflows/ci.yml; touch .github/workflows/ci.yml; git status --short; echo x > src"
    for _ in range(2):
        done = box.inside("sh", "-c", script)
        assert "review" not in done.stderr
        assert layers_left(box) == []
    box.sh("echo x > .github/workflows/ci.yml")
    assert layers_left(box) == ["1"]


def test_what_does_not_exist_yet_is_held_and_the_rest_lands(box: Box, repository: Path) -> None:
    box.account.write(repository / ".claude/notes.md", "notes\n")
    box.account.write(repository / ".cursor/rules/a.md", "a\n")
    script = """
    echo '{"hooks": {}}' > .claude/settings.local.json; echo '{}' > .cursor/mcp.json
    mkdir .claude/hooks .github/actions; echo x > .claude/hooks/x; echo x > .github/actions/x
    mkdir .claude/skills .claude/rules; echo 'do it' > .claude/skills/do.md; echo r > .claude/rules/r.md
    echo bug > .github/BUG.md; rm .cursor/rules/a.md
    """
    done = box.inside("sh", "-c", script)
    found = {str(path.relative_to(repository)) for path in repository.rglob("*") if ".git/" not in f"{path}/"}
    assert {".claude/rules/r.md", ".github/BUG.md", ".claude/notes.md"} <= found
    held = {".claude/settings.local.json", ".cursor/mcp.json", ".claude/hooks", ".github/actions", ".claude/skills"}
    assert found.isdisjoint(held)
    assert not (repository / ".cursor/rules/a.md").exists()
    words = " ".join(done.stderr.split())
    assert "review 1: 5 added" in words
    # What an agent obeys is named, as in a box without layers.
    assert ".claude/rules/r.md" in words
    assert "keep or quarantine" not in words
    box.claudebox("--review", "land", "--land", "all")
    assert (repository / ".claude/settings.local.json").exists()
    assert layers_left(box) == []


def test_next_box_goes_on_and_another_at_the_same_time_does_not(box: Box, repository: Path) -> None:
    box.sh("echo one > .github/workflows/ci.yml")
    done = box.inside("cat", ".github/workflows/ci.yml")
    assert done.stdout == "one\n"
    assert "goes on with what was kept as review 1" in done.stderr
    # Nothing has changed since, so there is nothing to ask.
    assert "claudebox: review 1 still waits: claudebox --review land 1\n" in done.stderr
    assert "host runs" not in done.stderr
    command = (CLAUDEBOX, "--yes", "--run", "sh", "-c", "cat .github/workflows/ci.yml; touch ready; read line")
    with box.account.running(*command, cwd=box.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert comes_true((repository / "ready").exists)
        assert box.sh("cat .github/workflows/ci.yml; echo two > .github/workflows/ci.yml") == "on: push\n"
        assert first.communicate("\n")[0] == "one\n"
    assert sorted(layers_left(box)) == ["1", "2"]
    assert (repository / ".github/workflows/ci.yml").read_text() == "on: push\n"


def test_deletion_that_was_kept_is_not_asked_about_again(box: Box, repository: Path) -> None:
    """The kernel marks what stands for deleted files when it mounts the layer again."""
    box.account.write(repository / ".github/workflows/other.yml", "on: push\n")
    box.sh("rm .github/workflows/*")
    for _ in range(2):
        assert "claudebox: review 1 still waits" in box.inside("true").stderr
    assert "host runs" in box.inside("sh", "-c", "rm -r .github/workflows").stderr


def test_worktrees_are_on_this_host_at_once(box: Box, repository: Path) -> None:
    box.account.write(repository / ".claude/settings.json", "{}\n")
    # The launch makes the directory for them where there is Claude, and takes it away if nothing is in it.
    claude = box.account.write(box.account.home / "bin/claude", "#!/bin/sh\n", 0o755)
    box.account.environ["CLAUDEBOX_CLAUDE"] = str(claude)
    box.sh("ls .claude/worktrees")
    assert not (repository / ".claude/worktrees").exists()
    script = "git worktree add -q .claude/worktrees/side -b side && cd .claude/worktrees/side && echo x > x && "
    script += "git add x && git commit -qm x && git status --short && echo evil > ../../settings.json"
    done = box.inside("sh", "-c", script)
    assert done.stdout == ""
    # A worktree has the files of the project once more, and these are no news.
    assert "the box has left this" not in done.stderr
    side = repository / ".claude/worktrees/side"
    assert (side / "x").read_text() == "x\n"
    assert git(box.account, side, "status", "--short") == ""
    assert (repository / ".claude/settings.json").read_text() == "{}\n"
    # In the next box, what is guarded in them is guarded, and git works there.
    done = box.inside("sh", "-c", "cd .claude/worktrees/side; echo evil > .git; echo ci > .github/workflows/ci.yml; :")
    assert "Read-only file system" in done.stderr
    assert (side / ".github/workflows/ci.yml").read_text() == "on: push\n"
    words = " ".join(done.stderr.split())
    assert ".claude/worktrees/side/.github/workflows/ci.yml" in words
    box.sh(
        "git -C .claude/worktrees/side checkout -qf . && git worktree remove --force .claude/worktrees/side; git status"
    )


def test_what_somebody_opens_is_direct(box: Box, repository: Path) -> None:
    box.account.write(repository / ".vscode/settings.json", "{}\n")
    script = "echo open > .vscode/settings.json; echo held > .vscode/tasks.json; echo x > .github/workflows/ci.yml"
    box.sh(script, options=("--writable", ".vscode/settings.json", "--writable", ".github"))
    assert (repository / ".vscode/settings.json").read_text() == "open\n"
    assert not (repository / ".vscode/tasks.json").exists()
    assert (repository / ".github/workflows/ci.yml").read_text() == "x\n"


def test_user_is_asked_about_what_this_host_runs(box: Box, repository: Path) -> None:
    script = "echo x > .github/workflows/ci.yml; echo y > .github/BUG.md"
    opened = Terminal(box.account, (CLAUDEBOX, "--run", "sh", "-c", script), cwd=box.project, env=PLAIN)
    opened.read_until(r"lands later +\.github")
    opened.answer(r"Start\? ", "y\n")
    opened.read_until(r"host runs   \.github/workflows/ci\.yml")
    opened.read_until(r"Land although this host runs it, choose, show, keep or discard\? \[k\] ")
    assert (repository / ".github/BUG.md").exists()
    opened.type("a\n")
    opened.read_until(r"Landed: 1 \w+\.")
    assert opened.process.wait(60) == 0
    assert (repository / ".github/workflows/ci.yml").read_text() == "x\n"
    assert layers_left(box) == []


def test_what_git_is_led_to_is_held_under_any_name(box: Box, repository: Path) -> None:
    """Neither a hook in a directory of the project, nor one in a directory of a tool, lands by itself."""
    for name in ("tools/hooks", ".github/scripts"):
        box.account.write(repository / name / "pre-commit", "#!/bin/sh\n", 0o755)
    git(box.account, repository, "config", "core.hooksPath", ".github/scripts")
    (repository / ".git/hooks").rename(repository / "old-hooks")
    (repository / ".git/hooks").symlink_to("../tools/hooks")
    script = "for d in tools/hooks .github/scripts; do echo evil >> $d/pre-commit; echo evil > $d/new; done; "
    script += "rm .git/hooks; echo x > .github/workflows/ci.yml"
    done = box.inside("sh", "-c", script)
    # In a directory of a tool it is read-only, and the rest of that directory is a layer.
    assert "review 1: 1 added, 2 changed" in done.stderr
    for name in ("tools/hooks", ".github/scripts"):
        assert (repository / name / "pre-commit").read_text() == "#!/bin/sh\n"
        assert not (repository / name / "new").exists()
    box.claudebox("--review", "land", "--land", "safe")
    assert not (repository / "tools/hooks/new").exists()


def test_change_through_a_hard_link_is_told(box: Box, repository: Path) -> None:
    """No layer lies over the other name of a file, and the agent can remove that name when it has used it."""
    os.link(repository / ".github/workflows/ci.yml", repository / "other")
    done = box.inside("sh", "-c", "echo evil >> other; rm other")
    assert "changed .github/workflows/ci.yml" in done.stderr


@pytest.mark.parametrize("bwrap", versions("bwrap"))
@pytest.mark.exhaustive("the default run has layers with this system's bwrap")
def test_every_bwrap_shows_layers_and_what_is_direct_in_them(box: Box, repository: Path, bwrap: str) -> None:
    box.account.write(repository / ".claude/worktrees/file", "x\n")
    script = "echo one > .github/workflows/ci.yml; echo {} > .claude/settings.json; echo y > .claude/worktrees/file"
    box.sh(script, env={"CLAUDEBOX_BWRAP": bwrap})
    assert (repository / ".github/workflows/ci.yml").read_text() == "on: push\n"
    assert not (repository / ".claude/settings.json").exists()
    assert (repository / ".claude/worktrees/file").read_text() == "y\n"


def test_killed_claudebox_lands_nothing_and_loses_nothing(box: Box, repository: Path) -> None:
    before = picture(repository / ".github")
    script = "echo evil > .github/workflows/ci.yml; echo bug > .github/BUG.md; touch ready; read line"
    words = (CLAUDEBOX, "--yes", "--run", "sh", "-c", script)
    with box.account.running(*words, cwd=box.project, stdin=subprocess.PIPE):
        assert comes_true((repository / "ready").exists)
    assert picture(repository / ".github") == before
    # The next box goes on with it, and at its end what nobody runs lands.
    assert box.sh("cat .github/workflows/ci.yml .github/BUG.md") == "evil\nbug\n"
    assert (repository / ".github/BUG.md").exists()
    assert (repository / ".github/workflows/ci.yml").read_text() == "on: push\n"
