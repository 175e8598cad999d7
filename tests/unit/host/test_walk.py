"""The one walk over the project."""

import os
from pathlib import Path

import pytest

from claudebox.host import walk as walking
from claudebox.host.tree import Tree
from claudebox.host.walk import (
    BEYOND,
    DIRECTORY,
    FILE,
    LINK,
    OTHER,
    UNREAD,
    Entry,
    NameFilter,
    list_directory,
    walk_project,
)

WANTED = NameFilter(frozenset({".git", ".netrc"}), (".env",), (".pem",))


def walk(root: Path, wanted: NameFilter = WANTED) -> set[tuple[str, str]]:
    return {(entry.path, entry.kind) for entry in walk_project(Tree(str(root)), "/p", wanted)}


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / "p" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "p" / path).write_text("x")


def test_finds_by_name_beginning_and_end(tmp_path: Path) -> None:
    make(tmp_path, "README.md", ".netrc", ".env.local", "certs/a.pem", "certs/a.crt", "a.netrc", "x.env")
    expected = {("/p/.netrc", FILE), ("/p/.env.local", FILE), ("/p/certs/a.pem", FILE)}
    assert walk(tmp_path) == expected


def test_says_what_it_is_and_follows_no_symlink(tmp_path: Path) -> None:
    make(tmp_path, ".env", "dir/.env", ".env.d/inner.pem")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.pem").write_text("x")
    (tmp_path / "p" / "out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "p" / "loop").symlink_to(".")
    (tmp_path / "p" / ".env.link").symlink_to("/etc/shadow")
    os.mkfifo(tmp_path / "p" / ".env.pipe")
    assert walk(tmp_path) == {
        ("/p/.env", FILE),
        ("/p/dir/.env", FILE),
        ("/p/.env.d", DIRECTORY),
        ("/p/.env.d/inner.pem", FILE),
        ("/p/.env.link", LINK),
        ("/p/.env.pipe", OTHER),
        ("/p/out", LINK),
        ("/p/loop", LINK),
    }


def test_skipped_directory_is_seen_but_not_entered(tmp_path: Path) -> None:
    make(tmp_path, ".git/a.pem", "node_modules/x/.env", "sub/.git/b.pem")
    assert walk(tmp_path) == {("/p/.git", DIRECTORY), ("/p/sub/.git", DIRECTORY)}


def test_nearest_first(tmp_path: Path) -> None:
    make(tmp_path, "a/b/c/.env", "z/.env", ".env")
    found = walk_project(Tree(str(tmp_path)), "/p", WANTED)
    assert [entry.path for entry in found] == ["/p/.env", "/p/z/.env", "/p/a/b/c/.env"]


def test_too_deep_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "DEEPEST", 3)
    make(tmp_path, "1/2/.env", "1/2/3/.env")
    assert walk(tmp_path) == {("/p/1/2/.env", FILE), ("/p/1/2/3", UNREAD)}


def test_too_many_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "MOST_DIRECTORIES", 3)
    make(tmp_path, ".env", *(f"{number}/.env" for number in range(5)))
    found = walk_project(Tree(str(tmp_path)), "/p", WANTED)
    assert len(found) == 4
    assert [entry.kind for entry in found if entry.kind in (UNREAD, BEYOND)] == [BEYOND]


def test_project_that_cannot_be_listed_is_said(tmp_path: Path) -> None:
    assert walk(tmp_path) == {("/p", UNREAD)}


def test_two_who_look_share_a_walk(tmp_path: Path) -> None:
    make(tmp_path, "env", "mise.toml", "x.pem")
    secrets, guard = NameFilter(suffixes=(".pem",)), NameFilter(frozenset({"mise.toml"}))
    found = walk_project(Tree(str(tmp_path)), "/p", secrets | guard)
    assert {entry.name for entry in found} == {"mise.toml", "x.pem"}
    assert Entry("/p/x.pem", FILE) in found


def test_finds_words_and_whatever_is_written_in_capitals(tmp_path: Path) -> None:
    make(tmp_path, "Makefile", "my-SECRET.yml", "KEY.PEM", ".Netrc", "other.yml", "bare")
    wanted = NameFilter(frozenset({"Makefile", ".netrc"}), suffixes=(".pem",), words=("secret",))
    expected = {"/p/Makefile", "/p/my-SECRET.yml", "/p/KEY.PEM", "/p/.Netrc"}
    assert {path for path, _ in walk(tmp_path, wanted)} == expected
    assert {entry.path for entry in list_directory(Tree(str(tmp_path)), "/p", wanted)} == expected


def test_finds_every_file_below_a_directory_however_names_are_spelled(tmp_path: Path) -> None:
    make(tmp_path, "a/.aws/sso/cache/x.json", "a/x.json", ".Deploy_Key", "deploy-key", "b/.x_y.pem")
    wanted = NameFilter(frozenset({"deploy-key"}), suffixes=(".pem",), directories=frozenset({".aws"}))
    below = {"/p/a/.aws", "/p/a/.aws/sso", "/p/a/.aws/sso/cache", "/p/a/.aws/sso/cache/x.json"}
    expected = {*below, "/p/.Deploy_Key", "/p/deploy-key", "/p/b/.x_y.pem"}
    assert {path for path, _ in walk(tmp_path, wanted)} == expected


def test_directory_with_very_many_files_is_seen_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "MOST_AT_ONCE", 2)
    make(tmp_path, *(f"{number}.pem" for number in range(5)), "d/x.pem")
    assert len(walk(tmp_path)) == 6
