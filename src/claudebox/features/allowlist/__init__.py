"""Tier `allowlist`: the box reaches the hosts in a list, by name."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Launch, Plan
from claudebox.settings.table import ALLOWLIST as CHOSEN
from claudebox.settings.table import NETWORK, OFF, REACH, Setting
from claudebox.settings.types import Choice, List, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features import Answer, CheckRow, Companion, Deed, Host, Question, Section, Settings


ALLOW = Setting(
    *("allow", REACH),
    "reach this host, and only what is listed; *.HOST: those below it; @NAME: a group; implies --network allowlist",
    List(Text()),
    usage="HOST[:PORT]",
    help_in_files="with network allowlist: a host to reach; *.HOST: those below it; @NAME: a group",
    implies=(NETWORK.key, CHOSEN),
    is_daily=True,
)
ASK = Setting(
    *("ask", REACH, "with --network allowlist: ask about a host while the box runs: off (default) or desktop"),
    Choice("desktop", OFF, default=OFF),
    tightens=True,
)


class AllowlistFeature(Feature):
    settings = (ALLOW, ASK)

    def applies(self, facts: Facts) -> bool:
        settings = facts.settings
        return settings[NETWORK].text == CHOSEN or bool(settings[ALLOW] or settings[ASK].text != OFF)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.allowlist import rules

        return rules.decide(facts)

    def complete(self, facts: Facts, draft: Draft, plan: Plan) -> Plan:
        from claudebox.features.allowlist import rules

        return rules.complete(facts, plan)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import Section

        if plan.network.tier != CHOSEN:
            return (Section(key="network", value={"allowed": []}),)
        from claudebox.features.allowlist import rules

        return (rules.section(plan),)

    def explain(self, question: Question) -> list[Answer]:
        from claudebox.features.allowlist import diagnosis

        return diagnosis.explain(question)

    def check(self, host: Host, settings: Settings) -> list[CheckRow]:
        from claudebox.features.allowlist import diagnosis

        return diagnosis.check(host, settings)

    def beside(self, launch: Launch) -> Companion:
        from claudebox.features.allowlist import act

        return act.beside(launch)

    def inside(self, launch: Launch, life: int, others_end: int) -> None:
        from claudebox.features.allowlist import act

        act.inside(launch, life, others_end)

    def after(self, launch: Launch) -> Deed:
        from claudebox.features.allowlist import act

        return act.after(launch)


ALLOWLIST = AllowlistFeature()
