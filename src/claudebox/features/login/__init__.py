"""Claude's login in the box (`--auth passthrough`)."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Launch, Plan
from claudebox.settings.table import AUTH, PASSTHROUGH


class LoginFeature(Feature):
    def applies(self, facts: Facts) -> bool:
        return facts.install is not None and facts.settings[AUTH].text == PASSTHROUGH

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.login import decide

        return decide.decide(facts, draft)

    def complete(self, facts: Facts, draft: Draft, plan: Plan) -> Plan:
        from claudebox.features.login import decide

        return decide.complete(facts, plan)

    def before(self, launch: Launch) -> None:
        from claudebox.features.login import act

        act.before(launch)


LOGIN = LoginFeature()
