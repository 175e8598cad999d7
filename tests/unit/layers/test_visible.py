"""What can be mounted on in a layer: nothing that a symlink, a whiteout or a replaced directory hides."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claudebox.layers.visible import DIRECTORY, NOTHING, PLAIN_FILE, kind_seen
from unit.layers.world import make_world

pytestmark = [pytest.mark.req("LAND-01"), pytest.mark.attributes]


def test_what_a_box_sees(tmp_path: Path) -> None:
    world = make_world(tmp_path, dict.fromkeys(("a/f", "b/f", "c/f", "d/f", "e/f", "g/f", "h"), "x\n"))
    world.whiteout("b")
    world.opaque("c")
    os.symlink("/tmp", world.upper / "d")
    world.write("e/f")
    world.whiteout("g/f")
    (world.upper / "h").mkdir()
    seen = {
        name: kind_seen(str(world.project), world.layer.upper, name)
        for name in ("a", "a/f", "b/f", "c/f", "d/f", "e/f", "g/f", "h", "nothing/x")
    }
    assert seen == {
        "a": DIRECTORY,
        "a/f": PLAIN_FILE,
        "b/f": NOTHING,
        "c/f": NOTHING,
        "d/f": NOTHING,
        "e/f": PLAIN_FILE,
        "g/f": NOTHING,
        "h": DIRECTORY,
        "nothing/x": NOTHING,
    }
