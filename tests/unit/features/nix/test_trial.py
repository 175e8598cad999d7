"""What a trial of the Nix daemon says: that its builds are closed only if nothing else can be the reason."""

from __future__ import annotations

import pytest

from claudebox.features.nix.trial import CLOSED, OPEN, UNKNOWN, judge

pytestmark = pytest.mark.req("NIXG-01")


@pytest.mark.parametrize(
    ("copied", "copied_its_own", "outcome"),
    [
        ([False, False], True, CLOSED),
        ([True, False], True, OPEN),
        ([False, True], True, OPEN),
        ([None, True], None, OPEN),
        ([None, False], True, UNKNOWN),
        ([False, False], False, UNKNOWN),
        ([False, False], None, UNKNOWN),
        ([None, None], None, UNKNOWN),
    ],
)
def test_judgement(copied: list[bool | None], copied_its_own: bool | None, outcome: str) -> None:
    assert judge(copied, copied_its_own) == outcome
