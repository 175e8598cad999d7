"""Which variables enter the box, and whom it may believe."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host.variables import JUDGED, LEADING
from claudebox.model import Plan
from claudebox.settings.table import ENV, SHOWN, Setting
from claudebox.settings.types import List, VariableName

DROP_ENV = Setting("drop_env", SHOWN, "keep a variable out", List(VariableName()), tightens=True)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.output.explanation import Answer, Question
    from claudebox.output.section import Section


class Routes(Feature):
    """Variables that say where requests go or whom to believe, or hold a credential that has to be judged."""

    def applies(self, facts: Facts) -> bool:
        users, names = facts.users, (*facts.host.environ, *(wish.name for wish in facts.settings[ENV]))
        return bool(users.leading or users.foreign or users.holds) or not (JUDGED | LEADING).isdisjoint(names)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.environment import ways

        return ways.decide(facts, draft)


class Environment(Feature):
    """All other variables."""

    settings = (DROP_ENV,)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.environment import decide

        return decide.decide(facts, draft)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import Section

        users = [one for one in plan.environment if not one.is_ours and not one.origin.is_rule("certificates")]
        names = ", ".join(f"`{variable.name}`" for variable in users) or "none"
        text = f"Of the user's variables you have: {names}. All others stayed outside.\n"
        return (Section(told=(("Environment", text),)),)

    def explain(self, question: Question) -> list[Answer]:
        from claudebox.features.environment import diagnosis

        return diagnosis.explain(question)
