"""Other coding agents than Claude."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.settings.table import CLAUDE, PROGRAM


class Agents(Feature):
    def applies(self, facts: Facts) -> bool:
        return facts.starts_agent and facts.settings[PROGRAM].text != CLAUDE

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.agents import decide

        return decide.decide(facts, draft)
