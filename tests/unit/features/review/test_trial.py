"""A refusal that a box can bring about is not remembered: all later boxes would have no layers."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from claudebox.features.review import act
from claudebox.model import BY_DEFAULT, Covered, Review
from claudebox.problem import Problem
from unit.layers.world import make_world

pytestmark = pytest.mark.req("LAND-01")


@pytest.mark.parametrize(
    ("number", "is_remembered"),
    [
        (errno.EOPNOTSUPP, True),
        (errno.EPERM, True),
        (errno.ENOSPC, False),
        (errno.EDQUOT, False),
        (errno.EBUSY, False),
        (errno.ENOMEM, False),
    ],
)
@pytest.mark.parametrize("how", ["attributes", "mount"])
def test_only_what_holds_for_good_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, number: int, is_remembered: bool
) -> None:
    trial = tmp_path / "layer-trial"
    covered = (Covered("/nonexistent", (0, 0)),)
    review = Review(BY_DEFAULT, "ask", "/nonexistent", "/nonexistent", (str(trial), b"refused"), covered)

    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    if how == "attributes":
        layer = make_world(tmp_path, {}).layer
        monkeypatch.setattr(os, "setxattr", refuse)
        with pytest.raises(Problem):
            act._require_attributes(layer, review)
    else:
        monkeypatch.setattr("ctypes.get_errno", lambda: number)
        act._refused("/nonexistent", review, (b"x", b"/nonexistent", b"overlay", 0, b""))
    assert trial.exists() == is_remembered
