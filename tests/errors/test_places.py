"""What is said of the places where claudebox keeps its files."""

from __future__ import annotations

import os

import pytest

from claudebox import moving, settling
from claudebox.host import Host
from claudebox.problem import FAILED, Problem
from claudebox.remembered import write
from claudebox.settings.words import parse
from claudebox.state import Apart, find_state
from claudebox.whereabouts import NOTE, Note
from errors.scene import Problems, Scene, Stage

APART = Apart("/data/c/claudebox", "/data/s/claudebox", "/data/x/claudebox")
HOME = Apart(*["/home/alice/.claudebox"] * 3)
THERE = "/data/c/claudebox/\n/data/s/claudebox/\n/data/x/claudebox/\n"


def note(text: bytes) -> str:
    return "~/.local/state/claudebox/places: " + text.decode().replace("\n", "\\n") + "\n"


def noted(now: Apart = APART, before: Apart | None = None) -> str:
    return note(write(NOTE, Note(now, before).lines()))


def found(scene: Scene, tree: str, **environ: str) -> None:
    scene.machine.uid = os.getuid()
    find_state(scene.planted(tree).with_environ(**environ).machine.host())


def moved(scene: Scene, tree: str, word: str, *, yes: bool = True) -> None:
    """The machine is made up, and what is moved lies on it; nothing runs there."""
    scene.machine.uid = os.getuid()
    host = scene.planted(tree).machine.host()
    scene.monkeypatch.setattr(moving, "read_host", lambda: host)
    scene.monkeypatch.setattr(moving, "require_no_box", lambda *_: None)
    scene.monkeypatch.setattr(moving, "show", lambda _: None)
    scene.monkeypatch.setattr(moving, "says_yes", lambda _: False)
    moving.tend_places(parse(["--places", word, *(["--yes"] if yes else [])]))


def moved_where_something_is(scene: Scene) -> None:
    kept = {"/home/alice/.claudebox": ["config.toml"]}
    scene.monkeypatch.setattr(moving, "_names", lambda path: kept.get(path, []))
    scene.monkeypatch.setattr(os.path, "lexists", lambda _: True)
    moved(scene, "~/.claudebox/config.toml", "xdg")


def moved_with_a_link(scene: Scene) -> None:
    kept = {"/home/alice/.claudebox": ["config.toml"]}
    scene.monkeypatch.setattr(moving, "_names", lambda path: kept.get(path, []))
    scene.monkeypatch.setattr(os.path, "lexists", lambda _: False)
    scene.monkeypatch.setattr(os.path, "islink", lambda _: True)
    scene.monkeypatch.setattr(os, "readlink", lambda _: "../dotfiles/claudebox.toml")
    moved(scene, "~/.claudebox/config.toml", "xdg")


def moved_on_a_full_disk(scene: Scene) -> None:
    def refuse(_: object) -> None:
        raise OSError(28, os.strerror(28), "/home/alice/.local/state/claudebox/instances")

    scene.monkeypatch.setattr(moving, "_check", lambda _: None)
    scene.monkeypatch.setattr(moving, "_note_move", refuse)
    moved(scene, "~/.claudebox/", "xdg")


def moved_between_others(scene: Scene) -> None:
    moved(scene, noted(APART, APART.replace(state="/data/t/claudebox")), "home")


def noted_by_another_user(scene: Scene) -> None:
    scene.machine.owners["/home/alice/.local/state/claudebox/places"] = 4711
    found(scene, THERE + noted())


def first_host(scene: Scene) -> Host:
    scene.machine.uid = os.getuid()
    (scene.machine.root / "data").mkdir()
    return scene.with_environ(XDG_STATE_HOME="/data").machine.host()


def cannot_be_made(scene: Scene) -> None:
    def refuse(path: str) -> None:
        raise OSError(30, os.strerror(30), path)

    host = first_host(scene)
    scene.monkeypatch.setattr(settling, "make_private", refuse)
    settling.settle(host)


def noted_by_another(scene: Scene) -> None:
    host = first_host(scene)
    there: list[str] = []
    scene.monkeypatch.setattr(settling, "write_whole", lambda path, _: there.append(path))
    scene.monkeypatch.setattr(settling, "_rename_if_free", lambda *_: True)
    settling._note_first(host, APART)


def box_came_up(scene: Scene) -> None:
    """A box starts between the question and the note."""
    looked: list[None] = []

    def second_time(*_: object) -> None:
        looked.append(None)
        if len(looked) > 1:
            raise Problem("a box is running (process 1)", "end it first; then: claudebox --places xdg")

    scene.monkeypatch.setattr(moving, "_check", lambda _: None)
    scene.monkeypatch.setattr(moving, "_note_move", lambda _: None)
    restored: list[object] = []
    scene.monkeypatch.setattr(moving, "_write_note", lambda _, former: restored.append(former))
    scene.machine.uid = os.getuid()
    host = scene.planted("~/.claudebox/").machine.host()
    scene.monkeypatch.setattr(moving, "read_host", lambda: host)
    scene.monkeypatch.setattr(moving, "show", lambda _: None)
    scene.monkeypatch.setattr(moving, "require_no_box", second_time)
    try:
        moving.tend_places(parse(["--places", "xdg", "--yes"]))
    finally:
        assert restored == [None]


PROBLEMS: Problems = {
    "place-relative": (lambda scene: found(scene, "", XDG_CONFIG_HOME="config"), FAILED),
    "place-in-the-project": (lambda scene: found(scene, "", XDG_STATE_HOME="/home/alice/shop/.state"), FAILED),
    "place-missing": (lambda scene: found(scene, noted()), FAILED),
    "place-damaged": (lambda scene: found(scene, note(b"x")), FAILED),
    "place-of-another-user": (noted_by_another_user, FAILED),
    "place-twice": (lambda scene: found(scene, THERE + noted() + "~/.claudebox/"), FAILED),
    "place-of-unread-settings": (
        lambda scene: found(scene, "~/.claudebox/\n~/.config/claudebox/config.toml"),
        FAILED,
    ),
    "place-of-settings-beside-yours": (
        lambda scene: found(scene, "~/.claudebox/config.toml\n~/.config/claudebox/config.toml"),
        FAILED,
    ),
    "place-of-settings-by-an-agent": (
        lambda scene: found(
            scene, "~/.claudebox/\n~/shop/x/claudebox/config.toml", XDG_CONFIG_HOME="/home/alice/shop/x"
        ),
        FAILED,
    ),
    "place-of-somebody-else": (
        lambda scene: found(scene, "/data/claudebox/README.md", XDG_CACHE_HOME="/data"),
        FAILED,
    ),
    "place-between-two": (lambda scene: found(scene, THERE + noted(APART, HOME)), FAILED),
    "place-cannot-be-made": (cannot_be_made, FAILED),
    "place-noted-by-another": (noted_by_another, FAILED),
    "move-not-wanted": (lambda scene: moved(scene, "", "xdg", yes=False), FAILED),
    "move-where-something-is": (moved_where_something_is, FAILED),
    "move-with-a-link": (moved_with_a_link, FAILED),
    "move-on-a-full-disk": (moved_on_a_full_disk, FAILED),
    "move-between-others": (moved_between_others, FAILED),
    "move-beside-a-box": (box_came_up, FAILED),
}


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_says_exactly_this(name: str, stage: Stage) -> None:
    stage.check("places", name, *PROBLEMS[name])
