"""Other coding agents than Claude."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Plan
from claudebox.settings.table import CLAUDE, PROGRAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.output.section import Section

RULE = "agent"


class Agents(Feature):
    def applies(self, facts: Facts) -> bool:
        return facts.starts_agent and facts.settings[PROGRAM].text != CLAUDE

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.agents import decide

        return decide.decide(facts, draft)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import READ_ONLY, WRITABLE, Section

        if not any(mount.origin.is_rule(RULE) for mount in plan.mounts):
            return ()
        name = plan.program.title
        return (Section(adds=((WRITABLE, f"{name}'s state"), (READ_ONLY, name))),)
