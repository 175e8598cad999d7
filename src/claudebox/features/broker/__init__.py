"""The broker (`--auth broker`): Claude's credential stays outside."""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Broker, Launch, Plan
from claudebox.settings.table import AUTH, OFF, ON, REACH, Setting
from claudebox.settings.table import BROKER as CHOSEN
from claudebox.settings.types import Choice, Limit, List

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features import Companion, Deed, Section


AUTH_LIMITS = Setting(
    *("auth_limit", REACH, "the most that a box may ask of the broker: requests, tokens, streams or minutes"),
    List(Limit("requests", "tokens", "streams", "minutes")),
    called="auth_limits",
    tightens=True,
)
BROKER_FETCH = Setting(
    *("broker_fetch", REACH),
    "whether the API may fetch for a box with the broker (web search, MCP servers, URLs): off with allowlist and none",
    Choice(ON, OFF, default=OFF),
    tightens=True,
)


class BrokerFeature(Feature):
    settings = (AUTH_LIMITS, BROKER_FETCH)

    def applies(self, facts: Facts) -> bool:
        return facts.settings[AUTH].text == CHOSEN or facts.settings[BROKER_FETCH].origin.is_typed

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        if facts.settings[AUTH].text != CHOSEN:
            what = f"{BROKER_FETCH.option} has no meaning with --auth {facts.settings[AUTH].text}"
            raise Problem(what, f"--auth {CHOSEN}")
        from claudebox.features.broker import credential

        return credential.decide(facts, draft)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import Section

        broker = plan.get(Broker)
        if broker is None:
            return (Section(key="broker"),)
        from claudebox.features.broker import credential

        return credential.sections(broker, plan.person.home)

    def beside(self, launch: Launch) -> Companion:
        from claudebox.features.broker import credential

        return credential.beside(launch)

    def made(self, launch: Launch, root: str) -> Deed:
        from claudebox.features.broker import credential

        return credential.made(launch, root)


BROKER = BrokerFeature()
