"""The broker (`--auth broker`): Claude's credential stays outside."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Broker, Launch, Plan
from claudebox.settings.table import AUTH, REACH, Setting
from claudebox.settings.table import BROKER as CHOSEN
from claudebox.settings.types import Limit, List

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features import Companion, Deed, Section


AUTH_LIMITS = Setting(
    *("auth_limit", REACH, "the most that a box may ask of the broker: requests, tokens, streams or minutes"),
    List(Limit("requests", "tokens", "streams", "minutes")),
    called="auth_limits",
    tightens=True,
)


class BrokerFeature(Feature):
    settings = (AUTH_LIMITS,)

    def applies(self, facts: Facts) -> bool:
        return facts.settings[AUTH].text == CHOSEN

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.broker import credential

        return credential.decide(facts, draft)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import Section

        broker = plan.get(Broker)
        if broker is None:
            return (Section(key="broker"),)
        from claudebox.features.broker import credential

        return (credential.section(broker, plan.person.home),)

    def beside(self, launch: Launch) -> Companion:
        from claudebox.features.broker import credential

        return credential.beside(launch)

    def made(self, launch: Launch, root: str) -> Deed:
        from claudebox.features.broker import credential

        return credential.made(launch, root)


BROKER = BrokerFeature()
