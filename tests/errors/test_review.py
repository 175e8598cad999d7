"""What is said of layers that cannot be made, taken, landed or discarded."""

import os

from claudebox import files
from claudebox.commands import review as reviewing
from claudebox.commands import show
from claudebox.model import BY_DEFAULT, Covered, Origin, Review
from claudebox.overlay import landing, mounting, review, store
from claudebox.overlay.changes import Baseline
from claudebox.overlay.history import Carried
from claudebox.overlay.landing import land, recover
from claudebox.overlay.store import Layer
from errors.scene import Problems, Scene
from saying import parse
from unit.overlay.world import World, make_world

NOWHERE = Layer("3", "/nonexistent/3", "/home/alice/shop", "", Baseline(0, {}))
OVERLAY = "30 1 0:30 / / rw,relatime - overlay overlay rw"


def with_layers(scene: Scene, *layers: Layer) -> Scene:
    scene.monkeypatch.setattr(reviewing, "read_host", lambda: scene.machine.host())
    scene.monkeypatch.setattr(store, "list_layers", lambda *_: list(layers))
    return scene


def tend(scene: Scene, *words: str) -> None:
    reviewing.tend_layers(parse(["--review", *words]))


def refused_to_discard(scene: Scene) -> None:
    with_layers(scene, NOWHERE)
    scene.monkeypatch.setattr(store, "lock", lambda _: 9)
    scene.monkeypatch.setattr(reviewing, "says_yes", lambda _: False)
    tend(scene, "discard")


def nobody_to_ask(scene: Scene) -> None:
    with_layers(scene, NOWHERE)
    scene.monkeypatch.setattr(store, "lock", lambda _: 9)
    scene.monkeypatch.setattr(reviewing, "can_ask", lambda: False)
    tend(scene, "land")


def world_of(scene: Scene) -> World:
    return make_world(scene.machine.root / "world", {"a": "a\n"})


def changed_meanwhile(scene: Scene) -> None:
    world = world_of(scene)
    world.write("a", "b\n")
    chosen = world.changes()
    (world.project / "a").write_text("c\n")
    land(world.layer, chosen, 0)


def cannot_be_undone(scene: Scene) -> None:
    """Somebody removed the directory in which half of the landing lies."""
    world = world_of(scene)
    scene.monkeypatch.chdir(world.layer.directory)
    layer = world.layer.replace(directory=".")
    os.mkdir("stage")
    row = '["sub/a", "deleted", "file", 0, 0, [1, 1, 1, 1, 1, 1]]'
    journal = f'{{"phase": "landing", "stage": "./stage", "operations": [[{row}, null]]}}'
    files.write_whole(layer.journal, journal.encode())
    recover(layer)


def cannot_be_put_in_order(scene: Scene) -> None:
    world = world_of(scene)
    files.write_whole(world.layer.journal, b'{"phase": "staging", "stage": "/nonexistent/stage", "operations": []}')
    recover(world.layer)


def is_not_undone(scene: Scene) -> None:
    world = world_of(scene)
    files.write_whole(world.layer.journal, b"{}")
    store.discard(world.layer)


def is_not_emptied(scene: Scene) -> None:
    world = world_of(scene)
    world.write("new")
    scene.monkeypatch.setattr(landing, "note", fail_for_want_of_room)
    world.land()


def fail_for_want_of_room(*_: object) -> None:
    raise OSError(28, "No space left on device")


def dry_run(scene: Scene) -> None:
    scene.monkeypatch.setattr(show, "read_host", lambda: scene.machine.host())
    show.show_dry_run(parse(["--dry-run", "--review", "--run", "true"]))


def review_of(path: str, origin: Origin) -> Review:
    return Review(origin, "ask", "/nonexistent", "/home/alice/shop", (Covered(path, (0, 0)),))


WHOLE = review_of("/home/alice/shop", Origin.of_option("--review"))
GUARDED = review_of("/home/alice/shop/.github", Origin.of_option("--review"))
CARRIED = Carried(entries=frozenset({b"x"}))


def no_mount(review: Review) -> None:
    words = (b"claudebox:0", b"/nonexistent", b"overlay", 0, b"")
    raise mounting._refused(review.covered[0].path, review, words)


def refused_by_apparmor(scene: Scene) -> None:
    scene.planted("/proc/sys/kernel/apparmor_restrict_unprivileged_userns: 1").plan("--review")


PROBLEMS: Problems = {
    "review-and-apparmor": refused_by_apparmor,
    "review-as-a-command": dry_run,
    "review-changed-meanwhile": changed_meanwhile,
    "review-in-use": lambda scene: tend(with_layers(scene, NOWHERE), "discard", "3"),
    "review-no-attributes": lambda _: mounting._require_attributes(NOWHERE.upper, WHOLE),
    "review-no-layer": lambda _: store.make_layer("/dev/null/layers", "/home/alice/shop", ""),
    "review-no-mount": lambda _: no_mount(WHOLE),
    "review-no-mount-of-a-part": lambda _: no_mount(GUARDED),
    "review-no-project": lambda _: mounting._cover(0, review_of("/nonexistent", BY_DEFAULT), "/", "/", ""),
    "review-no-place": lambda _: mounting._make_directory("/proc/worktrees"),
    "review-no-note": lambda _: review._note("/proc/x/instances/y/reports", Carried(entries=frozenset({b"x"}))),
    "review-no-such": lambda scene: tend(with_layers(scene, NOWHERE), "show", "4"),
    "review-nobody-to-ask": nobody_to_ask,
    "review-not-undone": is_not_undone,
    "review-not-discarded": refused_to_discard,
    "review-nothing-kept": lambda scene: tend(with_layers(scene), "show"),
    "review-on-an-overlay": lambda scene: scene.planted(f"/proc/self/mountinfo: {OVERLAY}").plan("--review"),
    "review-without-project": lambda _: NOWHERE.read(),
    "review-stays": lambda _: store.discard(NOWHERE),
    "review-undone": cannot_be_undone,
    "review-not-in-order": cannot_be_put_in_order,
    "review-not-emptied": is_not_emptied,
    "review-which": lambda scene: tend(with_layers(scene, NOWHERE, NOWHERE.replace(number="4")), "show"),
    "review-without-state": lambda scene: scene.planted("~/.claudebox: a file").plan("--review", "--run", "true"),
}
