"""In which order a launch does what its Plan lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from claudebox import launch
from claudebox.model import Step
from hosts.machine import EVERYONE, TREES, Machine


class Enough(Exception):
    """The launch has come as far as the test wants."""


def test_what_runs_beside_the_box_is_not_limited_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the box's scope of memory, an agent could have the broker killed while it renews the login."""
    machine = Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    plan = machine.plan().replace(steps=(Step(Step.BEFORE, "limits"), Step(Step.BESIDE, "broker")))
    done: list[str] = []

    def act(feature: str, moment: str, *_: object) -> object:
        done.append(feature)
        if moment == Step.BEFORE:
            raise Enough
        return plan, None

    monkeypatch.setattr(launch, "act", act)
    for name in ("check_standard_streams", "seal_standard_input"):
        monkeypatch.setattr(launch, name, lambda: None)
    monkeypatch.setattr(launch, "prepare", lambda _: None)
    with pytest.raises(Enough):
        launch.launch(plan)
    assert done == ["broker", "limits"]
