"""In which order a launch does what its Plan lists."""

from pathlib import Path

import pytest

from claudebox.features import Feature
from claudebox.model import Launch, Step
from claudebox.process.companion import Companion
from claudebox.sandbox import launch
from hosts.machine import EVERYONE, TREES, Machine


class Enough(Exception):
    """The launch has come as far as the test wants."""


def test_what_runs_beside_the_box_is_not_limited_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the box's scope of memory, an agent could have the broker killed while it renews the login."""
    machine = Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    done: list[str] = []

    class Limited(Feature):
        def before(self, _: Launch) -> None:
            done.append("limits")
            raise Enough

    class Beside(Feature):
        def beside(self, _: Launch) -> Companion:
            done.append("broker")
            return Companion(-1)

    plan = machine.plan().replace(steps=(Step(Step.BEFORE, Limited()), Step(Step.BESIDE, Beside())))
    for name in ("check_standard_streams", "seal_standard_input"):
        monkeypatch.setattr(launch, name, lambda: None)
    monkeypatch.setattr(launch, "prepare", lambda _: None)
    with pytest.raises(Enough):
        launch.launch(Launch(plan))
    assert done == ["broker", "limits"]
