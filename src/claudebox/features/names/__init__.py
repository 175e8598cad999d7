"""Tier `names`: the box reaches the hosts in a list, by name."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Launch, Plan
from claudebox.settings.table import NAMES, OFF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Deed
    from claudebox.process.companion import Companion


class NamesFeature(Feature):
    def applies(self, facts: Facts) -> bool:
        settings = facts.settings
        return settings.network.text == NAMES or bool(settings.allow or settings.ask.text != OFF)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.names import decide

        if facts.settings.network.text == NAMES:
            return decide.decide(facts, draft)
        return decide.refuse_without_effect(facts, draft)

    def complete(self, facts: Facts, draft: Draft, plan: Plan) -> Plan:
        from claudebox.features.names import decide

        return decide.complete(plan)

    def beside(self, launch: Launch) -> Companion:
        from claudebox.features.names import act

        return act.beside(launch)

    def inside(self, launch: Launch, life: int, others_end: int) -> None:
        from claudebox.features.names import act

        act.inside(launch, life, others_end)

    def after(self, launch: Launch) -> Deed:
        from claudebox.features.names import act

        return act.after(launch)


ALLOWLIST = NamesFeature()
