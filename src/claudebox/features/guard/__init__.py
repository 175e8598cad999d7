"""What this host runs later: held while the box runs, and reported when it has ended."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Guard, Launch, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Deed


class Guarding(Feature):
    """Holds it."""

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.guard import decide

        return decide.decide(facts, draft)


class Report(Feature):
    """Looks afterwards at what has changed. What was kept in layers comes first: some of it may have landed then."""

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        guard = draft.get(Guard)
        return Contribution(steps=(Step(Step.AFTER, self),) if guard is not None and guard.roots else ())

    def after(self, launch: Launch) -> Deed:
        from claudebox.features.guard import act

        return act.after(launch)
