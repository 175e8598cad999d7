"""What is said when a layer ends: words that are true."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claudebox.features.review.end import BEHIND, kept_text, question
from claudebox.features.review.judge import Item
from claudebox.layers import store
from claudebox.layers.changes import ADDED, CHANGED, DELETED, DIRECTORY, FILE, MODE, Change
from claudebox.view.review import landed_text

pytestmark = pytest.mark.req("LAND-01")
FINE, RUN = Item(Change("a", ADDED, FILE)), Item(Change(".envrc", ADDED, FILE), "direnv runs it")
CONFLICT = Item(Change("c", CHANGED, FILE, is_conflict=True))


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([FINE], "Land, choose, "),
        ([FINE, CONFLICT], "Land, choose, "),
        ([FINE, RUN], "Land (without what this host runs), all, choose, "),
        ([RUN], "Land what this host runs, choose, "),
        ([RUN, CONFLICT], "Land what this host runs, choose, "),
        ([CONFLICT], "Choose, "),
        ([], "Land the commits, "),
    ],
)
def test_question_says_what_would_land(items: list[Item], words: str) -> None:
    assert question(items, has_commits=True) == f"{words}show, keep or discard? [k] "


def test_question_offers_no_commits_where_there_are_none() -> None:
    """There is a stash, for example, or a repository that the box has cloned."""
    assert question([], has_commits=False) == "Show, keep or discard? [k] "


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([], "Nothing landed."),
        ([Change("d", ADDED, DIRECTORY), Change("d/e", ADDED, DIRECTORY), Change("d/e/f", ADDED, FILE)], "Landed: 1."),
        ([Change("d", DELETED, DIRECTORY, gone=7), Change("f", DELETED, FILE)], "Landed: 8."),
        ([Change("d", ADDED, DIRECTORY)], "Landed: 1 directory."),
        ([Change("d", ADDED, DIRECTORY), Change("e", MODE, DIRECTORY)], "Landed: 2 directories."),
    ],
)
def test_files_are_counted_and_not_their_directories(changes: list[Change], text: str) -> None:
    assert landed_text(changes) == f"{text}\n"


@pytest.mark.parametrize("note", ["logs/HEAD", "index"])
def test_git_is_mentioned_only_if_something_was_committed(tmp_path: Path, note: str) -> None:
    project = tmp_path / "project"
    for name in (".github", ".git/objects", ".git/refs", ".git/logs"):
        (project / name).mkdir(parents=True)
    (project / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (project / ".git" / note).write_text("x")
    os.utime(project / ".git" / note, (1, 1))
    layer = store.make_layer(str(tmp_path / "layers"), str(project), "", (".github",))
    assert BEHIND not in kept_text(layer)
    (project / ".git" / note).write_text("x\ny\n")
    assert BEHIND in kept_text(layer)
