"""How much of the machine the box may use."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Launch, Limits


class LimitsFeature(Feature):
    def applies(self, facts: Facts) -> bool:
        settings = facts.settings
        return bool(settings.memory or settings.pids or settings.cpu)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.limits import decide

        return decide.decide(facts, draft)

    def before(self, launch: Launch) -> None:
        from claudebox.features.limits import act

        act.put_into_force(launch.get(Limits))


LIMITS = LimitsFeature()
