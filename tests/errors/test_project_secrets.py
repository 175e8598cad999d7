"""What is said where secrets of the project cannot be masked."""

from __future__ import annotations

import pytest

from claudebox.features.secrets import act, masks, memory
from claudebox.host import walk as project
from claudebox.problem import FAILED
from errors.scene import STATE_OF_SHOP, Problems, Scene, Stage


def many_secrets(scene: Scene, limit: str) -> None:
    scene.monkeypatch.setattr(masks, limit, 1)
    scene.planted("~/shop/.env: KEY=one\n~/shop/app/.env: KEY=two").plan()


def with_masked_file_that_was_moved(scene: Scene) -> Scene:
    record = f"{memory.OLD_HEADER}\0" + "4711\nvalues\nvariables of the program\n/home/alice/shop/app/.env"
    scene.planted(f"{STATE_OF_SHOP}/masked\n~/shop/a\n~/shop/b")
    path = scene.machine.root / f"home/alice/{STATE_OF_SHOP[2:]}/masked"
    path.write_text(record)
    scene.machine.uid = path.stat().st_uid
    return scene


def secret_gone_from_a_large_project(scene: Scene) -> None:
    scene.monkeypatch.setattr(project, "MOST_ENTRIES_SEARCHED", 1)
    with_masked_file_that_was_moved(scene).plan()


def secret_moved_while_it_is_looked_for(scene: Scene) -> None:
    """An agent in another box moves the directory once more, just after it was found."""
    scene.monkeypatch.setattr(memory, "find_inodes", lambda *_: {"/home/alice/shop/elsewhere/.env": 4711})
    with_masked_file_that_was_moved(scene).plan()


def secret_with_another_name_in_a_large_project(scene: Scene) -> None:
    scene.monkeypatch.setattr(project, "MOST_ENTRIES_SEARCHED", 1)
    scene.planted("~/shop/.env: KEY=one\n~/shop/b")
    env = scene.machine.root / "home/alice/shop/.env"
    (env.parent / "other").hardlink_to(env)
    scene.plan()


def memory_of_masks_is_damaged(scene: Scene) -> None:
    scene.planted(f"{STATE_OF_SHOP}/masked: half of a").plan()


def too_many_masks_to_remember(scene: Scene) -> None:
    scene.monkeypatch.setattr(memory, "FORM", memory.FORM.replace(largest=1))
    scene.planted("~/shop/.env: KEY=one\n~/shop/app/.env: KEY=two").plan()


def too_much_to_look_into(scene: Scene) -> None:
    scene.monkeypatch.setattr(masks, "MOST_BYTES", 1)
    scene.planted("~/shop/.env: KEY=one").plan()


def no_value_of_that_name(scene: Scene) -> None:
    scene.planted("~/shop/.env: PORT=1\\nDB_PASSWORD=one\\n").plan("--reveal", ".env:DB_PASS")


def no_value_in_a_key_file(scene: Scene) -> None:
    scene.planted("~/shop/.netrc: machine x password one").plan("--reveal", ".netrc:x")


def no_place_for_decoys(scene: Scene) -> None:
    plan = scene.planted("~/shop/.env: KEY=one").machine.plan()
    assert plan.state is not None
    act.beside(plan.replace(state=plan.state.replace(directory="/proc/none/.claudebox/instances/x")))


def reveal_through_a_link(scene: Scene) -> None:
    scene.planted("~/shop/.env: DB_PASSWORD=one\\n\n~/shop/dev.env -> .env").plan("--reveal", "dev.env")


PROBLEMS: Problems = {
    "project-secrets-behind-a-link": (reveal_through_a_link, FAILED),
    "project-secrets-no-place": (no_place_for_decoys, FAILED),
    "project-secrets-no-such-value": (no_value_of_that_name, FAILED),
    "project-secrets-no-values": (no_value_in_a_key_file, FAILED),
    "project-secrets-bytes": (too_much_to_look_into, FAILED),
    "project-secrets-candidates": (lambda scene: many_secrets(scene, "MOST_CANDIDATES"), FAILED),
    "project-secrets-masks": (lambda scene: many_secrets(scene, "MOST_MASKS"), FAILED),
    "project-secrets-linked": (secret_with_another_name_in_a_large_project, FAILED),
    "project-secrets-memory-damaged": (memory_of_masks_is_damaged, FAILED),
    "project-secrets-memory-full": (too_many_masks_to_remember, FAILED),
    "project-secrets-moving": (secret_moved_while_it_is_looked_for, FAILED),
    "project-secrets-moved": (secret_gone_from_a_large_project, FAILED),
}


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_says_exactly_this(name: str, stage: Stage) -> None:
    stage.check("project_secrets", name, *PROBLEMS[name])
