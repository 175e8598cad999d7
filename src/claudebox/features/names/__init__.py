"""Tier `names`: the box reaches the hosts in a list, by name."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Launch, Plan
from claudebox.settings.table import NAMES, NETWORK, OFF, REACH, Setting
from claudebox.settings.types import HOSTS, Choice, List, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Deed
    from claudebox.process.companion import Companion


ALLOW = Setting(
    *("allow", REACH, "with --network names: let the box reach a host; *.HOST for those below it, @NAME for a group"),
    List(Text(HOSTS)),
    usage="HOST[:PORT]",
    is_daily=True,
)
ASK = Setting(
    *("ask", REACH, "with --network names: ask about a host while the box runs: off (default) or desktop"),
    Choice("desktop", OFF, default=OFF),
)


class NamesFeature(Feature):
    settings = (ALLOW, ASK)

    def applies(self, facts: Facts) -> bool:
        settings = facts.settings
        return settings[NETWORK].text == NAMES or bool(settings[ALLOW] or settings[ASK].text != OFF)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.names import decide

        if facts.settings[NETWORK].text == NAMES:
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
