"""What a box has written in its home, which is gone with it."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Launch, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Deed


class Vanished(Feature):
    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        return Contribution(steps=(Step(Step.MADE, self),))

    def made(self, launch: Launch, root: str) -> Deed:
        from claudebox.features.vanished import act

        return act.made(launch, root)
