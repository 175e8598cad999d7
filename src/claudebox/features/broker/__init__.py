"""The broker (`--auth broker`): Claude's credential stays outside."""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Broker, Launch, Plan
from claudebox.settings.table import AUTH, PASSTHROUGH, REACH, Setting
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
        said = facts.settings[AUTH].text
        # With --auth none, a box has nothing with which it could ask for more.
        return said == CHOSEN or (said == PASSTHROUGH and bool(facts.settings[AUTH_LIMITS]))

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        if facts.settings[AUTH].text != CHOSEN:
            limit = facts.settings[AUTH_LIMITS][0]
            what = f"{limit.origin.shown}: only the broker counts requests, and this box would have the login itself"
            raise Problem(what, "choose: --auth broker, or leave the limit out")
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
