"""The network of the box: the host's, the internet alone, or none."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Launch, Plan
from claudebox.settings.table import FULL, NETWORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.host import Host
    from claudebox.output.explanation import Answer, Question
    from claudebox.output.section import Section
    from claudebox.process.trial import CheckRow
    from claudebox.settings import Settings


class NetworkFeature(Feature):
    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        if facts.settings[NETWORK].text == FULL:
            from claudebox.features.network import decide

            return decide.decide(facts, draft)
        from claudebox.features.network import uplink

        return uplink.decide(facts, draft)

    def complete(self, facts: Facts, draft: Draft, plan: Plan) -> Plan:
        if plan.network.is_hosts:
            return plan
        from claudebox.features.network import uplink

        return uplink.complete(facts, plan)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.features.network import decide

        return decide.show(plan)

    def explain(self, question: Question) -> list[Answer]:
        from claudebox.features.network import diagnosis

        return diagnosis.explain(question)

    def check(self, host: Host, settings: Settings) -> list[CheckRow]:
        from claudebox.features.network import diagnosis

        return diagnosis.check(host, settings)

    def inside(self, launch: Launch, life: int, others_end: int) -> None:
        from claudebox.features.network import uplink

        uplink.inside(launch, life, others_end)


NETWORK_FEATURE = NetworkFeature()
