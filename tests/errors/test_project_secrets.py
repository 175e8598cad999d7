"""What is said where secrets of the project cannot be masked."""

from __future__ import annotations

import os

from claudebox import files
from claudebox.errors import FAILED
from claudebox.features.secrets import act, decide, finding, keeper
from claudebox.host import walk
from claudebox.model import Launch
from errors.scene import Problems, Scene


def too_many_in_the_root(scene: Scene) -> None:
    scene.monkeypatch.setattr(finding, "MOST_MASKS", 1)
    scene.planted("~/shop/.env: KEY=hunter2one\n~/shop/prod.env: KEY=hunter2two").plan()


def no_value_of_that_name(scene: Scene) -> None:
    scene.planted("~/shop/.env: PORT=1\\nDB_PASSWORD=hunter2one\\n").plan("--reveal", ".env:DB_PASS")


def no_value_in_a_key_file(scene: Scene) -> None:
    scene.planted("~/shop/.netrc: machine x password hunter2one").plan("--reveal", ".netrc:other")


def no_place_for_decoys(scene: Scene) -> None:
    plan = scene.planted("~/shop/.env: KEY=hunter2one").machine.plan()
    assert plan.state is not None
    act.beside(Launch(plan.replace(state=plan.state.replace(directory="/proc/self"))))


def reveal_through_a_link(scene: Scene) -> None:
    scene.planted("~/shop/.env: DB_PASSWORD=hunter2one\\n\n~/shop/dev.env -> .env").plan("--reveal", "dev.env")


def another_name_not_found(scene: Scene) -> None:
    scene.planted("~/shop/.env: KEY=hunter2one")
    env = scene.machine.root / "home/alice/shop/.env"
    os.link(env, env.parent / "notes.txt")
    scene.monkeypatch.setattr(walk, "MOST_ENTRIES_SEARCHED", 0)
    scene.plan()


def too_many_directories(scene: Scene) -> None:
    scene.monkeypatch.setattr(walk, "MOST_DIRECTORIES", 2)
    scene.planted("~/shop/data/1/2/3/x: 1").plan()


def too_many_closed(scene: Scene) -> None:
    scene.monkeypatch.setattr(walk, "DEEPEST", 2)
    scene.monkeypatch.setattr(decide, "MOST_CLOSED", 0)
    scene.planted("~/shop/data/1/x: 1").plan()


def keeping(scene: Scene) -> act.Keeping:
    judging = scene.machine.plan().get(decide.Judging)
    assert judging is not None
    return act.Keeping(str(scene.machine.root), "/", "/", {}, (), judging, 2, False)


def no_inotify(scene: Scene) -> None:
    given = keeping(scene)
    scene.monkeypatch.setattr(keeper, "c_call", lambda *_: -1)
    keeper.Hand(given, 2)


def no_watch(scene: Scene) -> None:
    given, call = keeping(scene).replace(project="/tmp"), files.c_call
    refusing = lambda name, *words: -1 if name == "inotify_add_watch" else call(name, *words)  # noqa: E731
    scene.monkeypatch.setattr(keeper, "c_call", refusing)
    keeper.Hand(given, 2)


def no_way_into_the_box(scene: Scene) -> None:
    hand = keeper.Hand(keeping(scene), 2)
    scene.monkeypatch.setattr(keeper, "c_call", lambda *_: -1)
    hand.enter("/proc/self/ns/mnt")


def no_mask(scene: Scene) -> None:
    hand = keeper.Hand(keeping(scene), 2)
    hand.decoys = os.open(scene.machine.root, os.O_PATH)
    (scene.machine.root / "0").touch()
    scene.monkeypatch.setattr(keeper, "c_call", lambda *_: -1)
    scene.monkeypatch.setattr(hand, "places_of", lambda _: [hand.decoys])
    (scene.machine.root / ".env").touch()
    hand.cover("/home/.env", 0)


def keeper_says(scene: Scene, said: bytes) -> None:
    plan = scene.planted("~/shop/.env: KEY=hunter2one").machine.plan()
    scene.monkeypatch.setattr(os, "write", lambda *_: 0)
    scene.monkeypatch.setattr(os, "read", lambda *_: said)
    launch = Launch(plan)
    launch.keep(act.Kept("/", 2))
    act.made(launch, "/proc/1/root")


def keeper_ended(scene: Scene) -> None:
    keeper_says(scene, b"")


def keeper_failed(scene: Scene) -> None:
    keeper_says(scene, b"the kernel does not\0claudebox --check")


PROBLEMS: Problems = {
    "project-secrets-keeper-inotify": (no_inotify, FAILED),
    "project-secrets-keeper-watch": (no_watch, FAILED),
    "project-secrets-keeper-box": (no_way_into_the_box, FAILED),
    "project-secrets-keeper-mask": (no_mask, FAILED),
    "project-secrets-keeper-ended": (keeper_ended, FAILED),
    "project-secrets-keeper-failed": (keeper_failed, FAILED),
    "project-secrets-another-name": (another_name_not_found, FAILED),
    "project-secrets-directories": (too_many_directories, FAILED),
    "project-secrets-deep": (too_many_closed, FAILED),
    "project-secrets-behind-a-link": (reveal_through_a_link, FAILED),
    "project-secrets-no-place": (no_place_for_decoys, FAILED),
    "project-secrets-no-such-value": (no_value_of_that_name, FAILED),
    "project-secrets-no-values": (no_value_in_a_key_file, FAILED),
    "project-secrets-masks": (too_many_in_the_root, FAILED),
}
