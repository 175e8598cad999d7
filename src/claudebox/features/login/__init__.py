"""Claude's login in the box (`--auth passthrough`)."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Launch, Login, Plan
from claudebox.paths import shorten_home
from claudebox.settings.table import AUTH, PASSTHROUGH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.output.section import Section


class LoginFeature(Feature):
    def applies(self, facts: Facts) -> bool:
        return facts.install is not None and facts.settings[AUTH].text == PASSTHROUGH

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.login import sharing

        return sharing.decide(facts, draft)

    def complete(self, facts: Facts, draft: Draft, plan: Plan) -> Plan:
        from claudebox.features.login import sharing

        return sharing.complete(facts, plan)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import Row, Section

        login = plan.get(Login)
        if login is None:
            return (Section(key="login"),)
        enters = f"{shorten_home(login.file, plan.person.home)} enters: Claude can use it" if login.file else ""
        return (Section(rows=(Row("login", words=enters),), key="login", value={"file": login.file or None}),)

    def before(self, launch: Launch) -> None:
        from claudebox.features.login import sharing

        sharing.before(launch)


LOGIN = LoginFeature()
