"""At a terminal, the user is asked what lands when the box has ended."""

import json
import re
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Box
from review.test_box import git, layers_of, repository
from terminal.pseudoterminal import CTRL_C, PLAIN, Terminal

__all__ = ["repository"]
pytestmark = [pytest.mark.req("LAND-01"), pytest.mark.attributes]

QUESTION = r"keep or discard\? \[k\] "
SCRIPT = "echo x > fine; echo x > .envrc; rm -r old; git checkout -qb feature; git add fine; git commit -qm fine; :"


def start(box: Box, script: str = SCRIPT) -> Terminal:
    command = (CLAUDEBOX, "--review", "--run", "sh", "-c", script)
    opened = Terminal(box.account, command, cwd=box.project, env=PLAIN)
    opened.answer(r"Start\? ", "y\n")
    return opened


def test_user_chooses_and_moves_the_branches(box: Box, repository: Path) -> None:
    opened = start(box)
    opened.read_until(r"deleted     old/ \(2 files\)")
    opened.read_until(r"host runs   \.envrc")
    opened.answer(QUESTION, "choose\n")
    opened.read_until(r"1 \[ \] added    \.envrc")
    opened.read_until(r"2 \[x\] added    fine")
    opened.answer(r"b: back\) ", "2\n")
    opened.read_until(r"Landed: 1 \w+\.")
    opened.read_until(r"feature: new, 1 commit")
    opened.answer(r"Move the branches here, too\? \[y/N\] ", "y\n")
    opened.read_until(r"Moved\.")
    opened.read_until(r"kept as review 1")
    assert opened.process.wait(60) == 0
    assert (repository / "old/one").exists()
    assert git(box.account, repository, "status", "--short") == ""
    assert git(box.account, repository, "log", "--format=%s", "HEAD").splitlines()[0] == "fine"
    assert git(box.account, repository, "symbolic-ref", "--short", "HEAD") == "feature\n"


def test_question_mark_says_what_each_word_does(box: Box, repository: Path) -> None:
    opened = start(box)
    opened.answer(QUESTION, "?\n")
    for word in ("land", "all", "choose", "show", "keep", "discard"):
        opened.read_until(rf"\n  {word} +[a-z]")
    opened.answer(QUESTION, "k\n")
    assert opened.process.wait(60) == 0


def test_discard_says_what_it_did(box: Box, repository: Path) -> None:
    box.inside("sh", "-c", SCRIPT, options=("--review",))
    done = box.claudebox("--review", "discard", "--yes")
    said = f"Review 1 is discarded: what it held of {repository} is gone.\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", said)


def test_number_that_is_not_in_the_list_lands_nothing(box: Box, repository: Path) -> None:
    opened = start(box)
    opened.answer(QUESTION, "choose\n")
    for wrong in ("99\n", "fine\n", "2 fine\n"):
        opened.answer(r"b: back\) ", wrong)
        opened.read_until(r"Answer with numbers of the list: 1 to \d\.")
    opened.answer(r"b: back\) ", "b\n")
    opened.answer(QUESTION, "k\n")
    assert opened.process.wait(60) == 0
    assert not (repository / "fine").exists()
    assert "refs/claudebox" not in git(box.account, repository, "for-each-ref")


def test_commits_alone_are_not_chosen_by_number(box: Box, repository: Path) -> None:
    opened = start(box, "git commit -qm alone --allow-empty")
    opened.read_until(r"no files")
    opened.answer(r"Land the commits, show, keep or discard\? \[k\] ", "choose\n")
    opened.read_until(r"Answer with a word of the question")
    opened.answer(QUESTION, "land\n")
    seen = opened.read_until(r"main: 1 commit further")
    assert "Nothing landed" not in seen.string
    opened.answer(r"too\? \[y/N\] ", "y\n")
    opened.read_until(r"Moved\.")
    assert opened.process.wait(60) == 0
    assert git(box.account, repository, "log", "--format=%s", "HEAD").splitlines()[0] == "alone"


def test_size_of_a_layer_is_counted_to_the_end(box: Box, repository: Path) -> None:
    """The kernel leaves a directory that only root can look into."""
    for _ in range(2):
        done = box.claudebox("--review", "--yes", "--run", "sh", "-c", "echo x >> fine; rm -rf old")
        assert "kept as review 1" in done.stderr
    assert (repository / "fine").exists() is False
    assert re.match(r" +1 +\d+B  1 added, 2 deleted\n", box.claudebox("--review", "list").stdout)
    assert json.loads(box.claudebox("--instances", "--json").stdout)["instances"][0]["is_whole"]


def test_program_of_the_project_is_not_used(box: Box, repository: Path) -> None:
    """A project has its programs on PATH, as with direnv: git and the pager must not come from there."""
    ran = box.account.home / "ran"
    for name in ("git", "less"):
        box.account.write(repository / "bin" / name, f"#!/bin/sh\ntouch {ran}\ncat\n", 0o755)
    env = {"PATH": f"{repository}/bin:{box.account.environ['PATH']}"}
    assert box.account.run("less", input="x", env=env).stdout == "x"
    assert ran.exists()
    ran.unlink()
    command = (
        CLAUDEBOX,
        "--review",
        "--run",
        "sh",
        "-c",
        "echo shown > fine; /usr/bin/git commit -qam x --allow-empty",
    )
    opened = Terminal(box.account, command, cwd=box.project, env=env)
    opened.answer(r"Start\? ", "y\n")
    opened.answer(QUESTION, "s\n")
    opened.read_until(r"\+shown")
    opened.answer(QUESTION, "all\n")
    opened.read_until(r"main: 1 commit further")
    opened.answer(r"too\? \[y/N\] ", "n\n")
    opened.process.wait(60)
    assert not ran.exists()


def test_discarding_needs_a_second_yes(box: Box, repository: Path) -> None:
    opened = start(box)
    opened.answer(QUESTION, "d\n")
    opened.answer(r"cannot be undone\. \[y/N\] ", "n\n")
    opened.answer(QUESTION, "d\n")
    opened.answer(r"cannot be undone\. \[y/N\] ", "y\n")
    opened.read_until(r"Discarded\.")
    opened.process.wait(60)
    assert layers_of(box.account) == []
    assert not (repository / "fine").exists()


@pytest.mark.parametrize("keys", ["\n", "k\n", CTRL_C])
def test_whoever_does_not_answer_keeps_it(box: Box, repository: Path, keys: str) -> None:
    opened = start(box)
    opened.answer(QUESTION, keys)
    opened.read_until(r"kept as review 1")
    opened.process.wait(60)
    assert [path.name for path in layers_of(box.account)] == ["1"]
    assert not (repository / "fine").exists()
